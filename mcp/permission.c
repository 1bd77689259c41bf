/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Makes from a call the item that has to be approved.
 * Reads:   arguments of a client, hostile; the tool has not checked them yet. */
#include "mcp/permission.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/trace.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "policy/shown.h"

/* Arguments that are not part of the item: they change how a call is made, not what it does. */
static const char *const not_approved[] = { "idempotency_key", BACKGROUND_ARGUMENT };

/* The profile that the arguments name; NULL: none. A call in a session uses the session's profile,
 * and a version of Python is looked for in all profiles. */
static const char *
permission_profile_of(const struct tool_host *host, const json_t *arguments)
{
	const json_t *named = json_object_get(arguments, "profile");

	if (named)
		return json_string_value(named);
	if (json_object_get(arguments, "session") ||
	    json_object_get(arguments, "python_version"))
		return NULL;
	return *tenant_profile(host->tenant) ? tenant_profile(host->tenant)
					     : host->config->profile[0].name;
}

static enum policy_verdict
judge(const struct tool_host *host, const struct tool *tool,
      const json_t *arguments, struct why *why_r)
{
	enum policy_verdict verdict;
	const char *profile;

	if (!host->gate || !tool->policy)
		return POLICY_ALLOW;
	if (gate_identify(host->gate, tenant_principal(host->tenant), NULL, why_r) < 0)
		return POLICY_DENY;
	verdict = policy_tool(host->config, tool->policy);
	if (verdict == POLICY_DENY) {
		why_say(why_r, 0, "", "denied: policy does not let you use this tool");
		return verdict;
	}
	/* The profile is checked before any approval. The tool refuses unknown profiles. */
	profile = permission_profile_of(host, arguments);
	if (profile && config_find_profile(host->config, profile) &&
	    !policy_allows_profile(host->config, profile)) {
		why_say(why_r, 0, "profile", "denied: the profile %s is not among those that "
			"policy lets you use", profile);
		return POLICY_DENY;
	}
	if (verdict == POLICY_APPROVE && strcmp(tool->policy, "install_package") == 0)
		return POLICY_ALLOW;
	return verdict;
}

enum policy_verdict
permission_verdict(const struct tool_host *host, const struct tool *tool,
		   const json_t *arguments, struct why *why_r)
{
	enum policy_verdict verdict = judge(host, tool, arguments, why_r);

	trace_line(0, "decision=policy tool=%s verdict=%s", tool->name,
		   policy_verdict_name(verdict));
	return verdict;
}

static json_t *
what_counts(const json_t *arguments)
{
	json_t *copy = xalloc_check(json_copy((json_t *)arguments));

	for (size_t i = 0; i < sizeof(not_approved) / sizeof(not_approved[0]); i++)
		json_object_del(copy, not_approved[i]);
	return copy;
}

json_t *
permission_bind(const struct tool_host *host, const struct tool *tool, const json_t *arguments)
{
	return tool->bind ? tool->bind(host, arguments, false) : json_incref((json_t *)arguments);
}

/* What people see of a call. */
static json_t *
permission_shown(const struct tool_host *host, const struct tool *tool, const json_t *arguments)
{
	json_auto_t *bound = tool->bind ? tool->bind(host, arguments, true)
					: json_incref((json_t *)arguments);

	return what_counts(bound);
}

char *
permission_item(const struct tool *tool, const json_t *arguments)
{
	json_auto_t *counts = what_counts(arguments);
	own_mem char *text = xalloc_check(json_dumps(counts, JSON_COMPACT | JSON_SORT_KEYS));
	char hash[CHAIN_DIGITS + 1];

	chain_hash(text, strlen(text), hash);
	return xasprintf("%s %s", tool->name, hash);
}

int
permission_use(const struct tool_host *host, const char *item)
{
	struct approvals *approvals = gate_approvals(host->gate);

	return approvals ? approvals_use(approvals, tenant_principal(host->tenant), item) : 0;
}

bool
permission_by_session(const struct tool_host *host)
{
	return policy_asks_session(host->config) && (host->client & CLIENT_ELICITS);
}

/* ---- the form ---- */

bool
permission_question(const struct tool_host *host, const struct tool *tool,
		    const json_t *arguments, struct tool_question *question_r)
{
	json_auto_t *shown = permission_shown(host, tool, arguments);
	char *message = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&message, &len));
	bool fits;

	fprintf(to, "May %s be called with these arguments?\n\nEach line that begins with \""
		SHOWN_MARK "\" is the caller's and not this server's, but for the sha256, bytes and "
		"begins of files, and not_approved. What is not named has its default.\n\n",
		tool->name);
	fits = shown_write(to, shown, &shown_in_form);
	xassert(fclose(to) == 0);
	if (!fits) {
		free(message);
		return false;
	}
	*question_r = (struct tool_question){
		.key = "permission",
		.kind = QUESTION_ELICIT,
		.message = message,
		.schema = "{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\","
			  "\"title\":\"Allow this call\"}},\"required\":[\"allow\"]}",
	};
	return true;
}

void
permission_question_done(struct tool_question *question)
{
	free((char *)question->message);
}

bool
permission_is_given(const struct tool_reply *reply)
{
	return reply->action == REPLY_ACCEPT &&
	       json_is_true(json_object_get(reply->content, "allow"));
}

/* ---- asking ---- */

static void
permission_fill(const struct tool_host *host, const struct tool *tool, const char *const *item,
		json_t *shown, struct approval_request *request_r)
{
	*request_r = (struct approval_request){
		.requester = gate_subject(host->gate, tenant_principal(host->tenant)),
		.config = host->config,
		.tool = tool->name,
		.item = item,
		.n_items = 1,
		.once = true,
		.shown = shown,
	};
}

bool
permission_is_denied(const struct tool_host *host, const struct tool *tool, const char *item,
		     struct why *why_r)
{
	const struct approvals *approvals = gate_approvals(host->gate);
	struct approval_request request;

	permission_fill(host, tool, &item, NULL, &request);
	return approvals && approvals_check_denied(approvals, &request, why_r) < 0;
}

int
permission_grant(const struct tool_host *host, const struct tool *tool, const char *item,
		 const json_t *arguments)
{
	struct approvals *approvals = gate_approvals(host->gate);
	json_auto_t *shown = permission_shown(host, tool, arguments);
	struct approval_request request;

	permission_fill(host, tool, &item, shown, &request);
	if (!approvals)
		return 0;
	approvals_grant_by_session(approvals, &request, false);
	return permission_use(host, item);
}

int
permission_ask(const struct tool_host *host, const struct tool *tool, const char *item,
	       const json_t *arguments,
	       void (*on_decided)(void *arg, const struct approval_decision *decision),
	       void *arg, const struct approval **approval_r, struct why *why_r)
{
	struct approvals *approvals = gate_approvals(host->gate);
	json_auto_t *shown = NULL;
	struct approval_request request;

	if (!approvals)
		return why_say(why_r, -EDQUOT, "", "no person can be asked here");
	shown = permission_shown(host, tool, arguments);
	permission_fill(host, tool, &item, shown, &request);
	return approvals_ask(approvals, &request, on_decided, arg, approval_r, why_r);
}

void
permission_refuse(const struct tool_host *host, const struct tool *tool, const char *reason,
		  const char *text)
{
	if (tool->refuse)
		tool->refuse(reason, text, host);
	else
		tool_refuse(host, text);
}
