/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. Decisions without I/O. */
#include "policy/rules.h"

#include <stdio.h>
#include <string.h>

#include "policy/config.h"

const char *
policy_verdict_name(enum policy_verdict verdict)
{
	static const char *const names[] = { "", "allow", "approve", "deny" };

	return names[verdict];
}

enum policy_verdict
policy_preset_verdict(const struct config *config, uint32_t said, enum policy_verdict standard)
{
	if (said != POLICY_UNSAID)
		return (enum policy_verdict)said;
	if (config->policy.preset == POLICY_PRESET_OPEN)
		return POLICY_ALLOW;
	return config->policy.preset == POLICY_PRESET_STRICT ? POLICY_APPROVE : standard;
}

enum policy_verdict
policy_tool(const struct config *config, const char *tool)
{
	if (strcmp(tool, "run_script") == 0)
		return policy_preset_verdict(config, config->policy.run_script, POLICY_ALLOW);
	if (strcmp(tool, "run_repl") == 0)
		return policy_preset_verdict(config, config->policy.run_repl, POLICY_ALLOW);
	if (strcmp(tool, "install_package") == 0)
		return policy_preset_verdict(config, config->policy.install_package,
					     POLICY_APPROVE);
	return POLICY_ALLOW;
}

bool
policy_is(const struct policy_subject *subject, const char *word)
{
	if (strcmp(word, subject->principal) == 0)
		return true;
	if (strncmp(word, "user:", 5) == 0)
		return subject->user && strcmp(word + 5, subject->user) == 0;
	if (strncmp(word, "group:", 6) != 0)
		return false;
	for (size_t i = 0; i < subject->n_groups; i++)
		if (strcmp(word + 6, subject->group[i]) == 0)
			return true;
	return false;
}

bool
policy_is_any(const struct policy_subject *subject, const struct config_list *words)
{
	for (size_t i = 0; i < words->n; i++)
		if (policy_is(subject, words->item[i]))
			return true;
	return false;
}

static bool
has_word(const struct config_list *words, const char *word)
{
	for (size_t i = 0; i < words->n; i++)
		if (strcmp(words->item[i], word) == 0)
			return true;
	return false;
}

bool
policy_asks_session(const struct config *config)
{
	return has_word(&config->policy.approvers, "self");
}

/* Nobody but the session's user may approve. */
static bool
policy_only_session(const struct config *config)
{
	return policy_asks_session(config) && config->policy.approvers.n == 1;
}

bool
policy_waits_for(const struct config *config, const char *id, char *text_r, size_t size)
{
	snprintf(text_r, size, "waits for an approval: mcp-python approve %s", id);
	return !policy_only_session(config);
}

void
policy_say_who_approves(const struct config *config, const char *id, char *text_r, size_t size)
{
	if (policy_only_session(config))
		snprintf(text_r, size, "%s has to be approved by the session's user, who cannot be "
			 "asked here; make the call where that is possible, such as by mcp-python "
			 "run at a terminal", id);
	else
		snprintf(text_r, size, "%s has to be approved by an operator (mcp-python approve "
			 "%s); make the same call again once it is", id, id);
}

/* The subject's name on the host, or the name that the proxy gave; NULL: none. */
static const char *
name_of(const struct policy_subject *subject)
{
	return strncmp(subject->principal, "user:", 5) == 0 ? subject->principal + 5
							    : subject->user;
}

/* Compares names only: a token or a JWT's subject has no name. */
static bool
are_the_same(const struct policy_subject *a, const struct policy_subject *b)
{
	const char *one = name_of(a), *other = name_of(b);

	return strcmp(a->principal, b->principal) == 0 || (one && other && strcmp(one, other) == 0);
}

bool
policy_may_approve(const struct config *config, const struct policy_subject *approver,
		   const struct policy_subject *requester)
{
	if (are_the_same(approver, requester))
		return policy_asks_session(config);
	return policy_is_any(approver, &config->policy.approvers);
}

bool
policy_allows_input(const struct config *config)
{
	if (config->policy.input)
		return config->policy.input == POLICY_INPUT_ALLOW;
	return config->policy.preset == POLICY_PRESET_OPEN;
}

bool
policy_allows_profile(const struct config *config, const char *profile)
{
	return config->policy.profiles.n == 0 || has_word(&config->policy.profiles, profile);
}
