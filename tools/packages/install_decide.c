/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Compares a resolved set with policy, and asks the people who have to approve it. */
#include "tools/packages/install_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "govern/approvals.h"
#include "policy/config.h"
#include "policy/rules.h"
#include "tools/packages/consent.h"
#include "tools/sets/store.h"

void
install_deny(struct install *install, const char *why)
{
	struct install_result result = { .status = INSTALL_DENIED, .packages = install->set,
					 .advisories = install->advisories, .message = why };

	install_record(install, AUDIT_PACKAGE_REFUSED, why);
	install_finish(install, &result);
}

/* The set is allowed: it exists already, or is made now. */
static void
install_decide_proceed(struct install *install)
{
	const char *store = install->host.config->packages.store;
	json_t *manifest = store_manifest(store, install->name);

	if (!manifest) {
		install_make(install);
		return;
	}
	json_decref(manifest);
	store_remember(store, install->request, install->name);
	install_succeed(install, true);
}

static void
decide_on_decided(void *arg, const struct approval_decision *decision)
{
	struct install *install = arg;
	const struct tool_host *host = &install->host;
	char message[INSTALL_MESSAGE_MAX];

	(void)host->on_job(host->arg, NULL);
	if (decision->state == APPROVAL_GRANTED) {
		install_decide_proceed(install);
		return;
	}
	approval_say_decision(decision, "these packages", message, sizeof(message));
	install_deny(install, message);
}

void
install_waiting(const struct install *install, struct install_result *result_r)
{
	*result_r = (struct install_result){ .status = INSTALL_APPROVAL_PENDING,
					     .packages = install->set,
					     .advisories = install->advisories,
					     .approval_id = approval_id(install->approval) };
}

/* Waits for the decision as a task or a job. False: neither can be. */
static bool
decide_can_wait(const struct install *install, const char *text)
{
	const struct tool_host *host = &install->host;
	char waits[TOOL_WAITS_MAX];

	return host->on_task(host->arg, text) == 0 ||
	       (policy_waits_for(host->config, approval_id(install->approval), waits,
				 sizeof(waits)) && host->on_job(host->arg, waits) == 0);
}

/* Asks operators. A task or a job waits for them; any other call is answered at once, and must be
 * repeated later. */
static void
decide_ask_operator(struct install *install, const char *why)
{
	struct install_result result;
	const struct approval *approval;
	char message[INSTALL_MESSAGE_MAX], who[INSTALL_MESSAGE_MAX / 2];
	struct why trouble = { .text = "" };

	if (consent_ask(install->consent, NULL, NULL, &approval, &trouble) < 0) {
		snprintf(message, sizeof(message), "%s, and %s", why, trouble.text);
		install_deny(install, message);
		return;
	}
	install->approval = approval;
	policy_say_who_approves(install->host.config, approval_id(approval), who, sizeof(who));
	snprintf(message, sizeof(message), "%s: %s", why, who);
	if (decide_can_wait(install, message) &&
	    consent_ask(install->consent, decide_on_decided, install, &approval, &trouble) == 0)
		return;
	install_waiting(install, &result);
	result.message = message;
	install_finish(install, &result);
}

/* May this tenant have exactly this set? */
void
install_decide(struct install *install)
{
	enum policy_verdict *each = xcalloc(json_array_size(install->set), sizeof(*each)), verdict;
	struct why why = { .text = "" };

	install->advisories = consent_advisories(&install->host, install->set);
	verdict = consent_decide(&install->host, install->set, install->advisories, each, &why);
	if (verdict == POLICY_APPROVE)
		install->consent = consent_new(&install->host, install->set, each,
					       install->reason);
	free(each);
	if (verdict == POLICY_ALLOW || (install->consent && consent_is_given(install->consent)))
		install_decide_proceed(install);
	else if (verdict != POLICY_APPROVE || consent_is_denied(install->consent, &why))
		install_deny(install, why.text);
	else if (!consent_ask_session(install->consent))
		decide_ask_operator(install, why.text);
}

void
install_reply(struct install *install, const struct tool_reply *reply)
{
	if (consent_take_reply(install->consent, reply))
		install_decide_proceed(install);
	else
		install_deny(install, "the session's user did not agree to these packages");
}
