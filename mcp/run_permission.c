/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the arguments of a run that waits for approval, and the open
 * question to a person. */
#include "mcp/run_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/approvals.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "govern/writer.h"
#include "mcp/context.h"
#include "mcp/permission.h"
#include "mcp/run.h"
#include "policy/rules.h"

#define UNWRITTEN "denied: the use of the approval cannot be written down, so nothing was run: tell " \
	"the operator"

/* A call that was made, and that must be approved before it runs. */
struct permission {
	struct tool_host host;
	json_t *arguments;
	char *item;
	struct writing_wait noted;	/* it waits until the use of its approval is in the file */
	bool waits;			/* an operator decides; otherwise the client's own user is
					 * asked */
};

void
run_forget_permission(struct mcp_run *run)
{
	struct permission *permission = run->permission;

	if (!permission)
		return;
	run->permission = NULL;
	writing_unwait(&permission->noted);
	if (permission->waits)
		approvals_unwatch(gate_approvals(permission->host.gate),
				  tenant_principal(run->tenant), run);
	json_decref(permission->arguments);
	free(permission->item);
	free(permission);
}

void
run_refuse(struct mcp_run *run, const struct tool_host *host, const char *text)
{
	audit_write(gate_audit(host->gate), AUDIT_DENIED, tenant_principal(run->tenant), NULL,
		    json_pack("{s:s,s:s}", "tool", run->tool->name, "why", text));
	permission_refuse(host, run->tool, TOOL_DENIED, text);
}

static void
run_permission_finish(struct mcp_run *run, bool granted, const char *text)
{
	struct tool_host host = run->permission->host;
	json_t *arguments = json_incref(run->permission->arguments);

	run_forget_permission(run);
	run_enter(run);
	if (granted)
		run_start_tool(run, &host, arguments);
	else
		run_refuse(run, &host, text);
	json_decref(arguments);
	run_leave(run);
}

static void
run_permission_on_noted(void *arg, int error)
{
	run_permission_finish(arg, error == 0, UNWRITTEN);
}

/* Starts the run, once the use of its approval is in the file, or refuses it: the decision has been
 * made. The run may be gone afterwards. */
static void
run_permission_settle(struct mcp_run *run, bool granted, const char *text)
{
	struct permission *permission = run->permission;
	struct approvals *approvals = gate_approvals(permission->host.gate);
	int r = 0;

	permission->waits = false;
	(void)mcp_run_become_job(run, NULL);
	permission->noted = (struct writing_wait){ .on_written = run_permission_on_noted,
						   .arg = run };
	if (granted && approvals)
		r = approvals_sync(approvals, &permission->noted);
	if (r != -EINPROGRESS)
		run_permission_finish(run, granted && r == 0, r < 0 ? UNWRITTEN : text);
}

/* Refuses a call because the same call was refused not long ago. */
static void
run_permission_deny(struct mcp_run *run, const char *why)
{
	char text[sizeof(((struct why *)NULL)->text) + sizeof("denied: ")];

	snprintf(text, sizeof(text), "denied: %s", why);
	run_permission_settle(run, false, text);
}

static void
run_permission_on_decided(void *arg, const struct approval_decision *decision)
{
	const enum approval_state state = decision->state;
	struct mcp_run *run = arg;
	struct permission *permission = run->permission;
	int used = state == APPROVAL_GRANTED ? permission_use(&permission->host, permission->item)
					     : 0;
	char text[512] = "denied: ";

	if (used < 0)
		snprintf(text, sizeof(text), UNWRITTEN);
	else if (state == APPROVAL_GRANTED && !used)
		snprintf(text, sizeof(text), "denied: the approval was for one call, and another "
			 "one like it was made first; make the call again");
	else
		approval_say_decision(decision, "this call", text + strlen(text),
				      sizeof(text) - strlen(text));
	run_permission_settle(run, used > 0, text);
}

void
run_take_permission(struct mcp_run *run, const struct tool_reply *reply)
{
	struct permission *permission = run->permission;
	bool given = permission_is_given(reply);

	int r = given ? permission_grant(&permission->host, run->tool, permission->item,
					 permission->arguments) : 0;

	run_permission_settle(run, given && r >= 0, r < 0 ? UNWRITTEN
				     : "denied: the session's user did not agree");
}

/* Asks the client's own user, by a form. */
static bool
run_permission_ask_session(struct mcp_run *run)
{
	struct tool_question question;
	int r;

	if (!permission_question(&run->permission->host, run->tool,
				 run->permission->arguments, &question))
		return false;
	r = mcp_ask_open(&run->ask, &question, 1, NULL, run->abilities);
	permission_question_done(&question);
	if (r < 0)
		return false;
	run->ask_is_new = true;
	run_wake(run);
	return true;
}

/* Is there a job that waits for the approval of this very call? Then the call is answered as that
 * one was. The run may be gone afterwards. */
static bool
run_permission_waits_already(struct mcp_run *run)
{
	struct permission *permission = run->permission;
	struct tool_host job;
	struct mcp_run *other;

	LIST_FOREACH(other, &run->mcp->runs, link)
		if (other->job && other->permission && other->tenant == run->tenant &&
		    strcmp(other->permission->item, permission->item) == 0)
			break;
	if (!other || run->stays)
		return false;
	run_make_host(other, true, &job);
	run->tool->answer_job(NULL, &job, other->waits, &permission->host);
	return true;
}

/* Waits for the decision as a task or a job. False: neither can be. */
static bool
run_permission_can_wait(struct mcp_run *run, const char *id, const char *text)
{
	char waits[TOOL_WAITS_MAX];

	if (mcp_run_become_task(run, text) == 0)
		return true;
	if (!policy_waits_for(run->permission->host.config, id, waits, sizeof(waits)) ||
	    mcp_run_become_job(run, waits) < 0)
		return false;
	run_make_host(run, true, &run->permission->host);
	return true;
}

/* Asks an operator. A task or a job waits for the decision; any other call is answered at once, and
 * must be repeated later. */
static void
run_permission_ask_operator(struct mcp_run *run)
{
	struct permission *permission = run->permission;
	const struct approval *approval;
	struct why why = { .field = "" };
	char text[512], who[400];
	int r = permission_ask(&permission->host, run->tool, permission->item,
			       permission->arguments, NULL, NULL, &approval, &why);

	if (r < 0) {
		run_refuse(run, &permission->host, why.text);
		return;
	}
	policy_say_who_approves(permission->host.config, approval_id(approval), who, sizeof(who));
	snprintf(text, sizeof(text), "approval_pending: %s", who);
	if (run_permission_waits_already(run))
		return;
	if (run_permission_can_wait(run, approval_id(approval), text)) {
		permission->waits = true;
		(void)permission_ask(&permission->host, run->tool, permission->item,
				     permission->arguments, run_permission_on_decided, run,
				     &approval, &why);
		return;
	}
	permission_refuse(&permission->host, run->tool, TOOL_APPROVAL_PENDING, text);
}

void
run_ask_permission(struct mcp_run *run, const struct tool_host *host, const json_t *arguments)
{
	struct permission *permission = xcalloc(1, sizeof(*permission));
	struct why why = { .field = "" };
	int used;

	permission->host = *host;
	permission->arguments = permission_bind(host, run->tool, arguments);
	permission->item = permission_item(run->tool, permission->arguments);
	run->permission = permission;
	used = permission_use(host, permission->item);
	if (used != 0)
		run_permission_settle(run, used > 0, UNWRITTEN);
	else if (permission_is_denied(host, run->tool, permission->item, &why))
		run_permission_deny(run, why.text);
	else if (!permission_by_session(host) || !run_permission_ask_session(run))
		run_permission_ask_operator(run);
}
