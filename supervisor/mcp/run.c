/* Runs in: the supervisor.   Owns: runs of tools, and what they ended with if it is kept.
 * A tool may be on the stack whenever a holder leaves, so a run that nobody holds is then
 * stopped by the next turn of the loop. */
#include "supervisor/mcp/run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include <event2/event.h>

#include "policy/config.h"
#include "policy/why.h"
#include "supervisor/approvals.h"
#include "supervisor/audit.h"
#include "supervisor/engine/engine.h"
#include "supervisor/gate.h"
#include "supervisor/mcp/jsonout.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/outcome.h"
#include "supervisor/mcp/permission.h"
#include "supervisor/mcp/question.h"
#include "supervisor/mcp/task.h"
#include "supervisor/xalloc.h"

struct mcp_run {
	LIST_ENTRY(mcp_run) link;
	struct mcp *mcp;
	struct tenant *tenant;
	const struct tool *tool;
	enum mcp_method method;
	struct tool_run *tool_run;	/* NULL: not started, or over */
	unsigned int holders;
	unsigned int depth;		/* of calls into the tool and from it */
	unsigned int abilities;
	enum cancel_reason reason;	/* for when nobody holds it any more */
	bool is_over, keeps, parked;
	LIST_HEAD(, mcp_audience) audience;	/* the youngest first */
	struct mcp_task *task;
	struct mcp_outcome *outcome;	/* NULL: not over, or not kept */
	struct mcp_ask ask;
	bool ask_is_new;		/* nobody has been told of it */
	const struct mcp_audience *asked;	/* who has; NULL: none, or it left */
	json_t *early;			/* answers from before it asked; NULL: none */
	const struct config *config;	/* held since it started; NULL: has not */
	struct permission *permission;	/* that it waits for; NULL: none */
	struct event *soon;
};

/* A call that was made, and may not be before somebody has agreed to it. */
struct permission {
	struct tool_host host;
	json_t *arguments;
	char *item;
	bool waits;			/* for an operator; else its own user is asked */
};

struct mcp_run *
mcp_run_new(struct mcp *mcp, struct tenant *tenant, const struct tool *tool,
	    enum mcp_method method)
{
	struct mcp_run *run = xcalloc(1, sizeof(*run));

	run->mcp = mcp;
	run->tenant = tenant;
	tenant_hold(tenant);
	run->tool = tool;
	run->method = method;
	run->holders = 1;
	LIST_INIT(&run->audience);
	LIST_INSERT_HEAD(mcp_runs(mcp), run, link);
	return run;
}

static void
forget_permission(struct mcp_run *run)
{
	struct permission *permission = run->permission;

	if (!permission)
		return;
	run->permission = NULL;
	if (permission->waits)
		approvals_unwatch(gate_approvals(permission->host.gate), run);
	json_decref(permission->arguments);
	free(permission->item);
	free(permission);
}

static void
free_run(struct mcp_run *run)
{
	struct tool_run *tool_run = run->tool_run;

	assert(run->depth == 0 && LIST_EMPTY(&run->audience));
	run->tool_run = NULL;
	run->is_over = true;
	if (tool_run)
		run->tool->cancel(tool_run, run->reason);
	LIST_REMOVE(run, link);
	if (run->soon)
		event_free(run->soon);
	forget_permission(run);
	config_free(run->config);
	mcp_outcome_free(run->outcome);
	mcp_ask_clear(&run->ask);
	json_decref(run->early);
	tenant_release(run->tenant);
	free(run);
}

void
mcp_runs_free(struct mcp_runs *runs)
{
	struct mcp_run *run;

	while ((run = LIST_FIRST(runs))) {
		run->reason = CANCEL_SHUTDOWN;
		free_run(run);
	}
}

static void on_soon(evutil_socket_t fd, short what, void *arg);

static void
wake_soon(struct mcp_run *run)
{
	static const struct timeval now;

	if (!run->soon)
		run->soon = xalloc_check(evtimer_new(mcp_base(run->mcp), on_soon, run));
	evtimer_add(run->soon, &now);
}

void
mcp_run_hold(struct mcp_run *run)
{
	run->holders++;
}

void
mcp_run_release(struct mcp_run *run, enum cancel_reason reason)
{
	assert(run->holders > 0);
	if (--run->holders > 0)
		return;
	run->reason = reason;
	if (run->depth == 0)
		free_run(run);
	else if (!run->is_over)
		wake_soon(run);		/* its tool is on the stack */
}

static void
enter(struct mcp_run *run)
{
	run->depth++;
}

/* The last thing that is done with a run in a callback. */
static void
leave(struct mcp_run *run)
{
	if (--run->depth == 0 && run->holders == 0 && run->is_over)
		free_run(run);
}

/* ---- the audience ---- */

void
mcp_run_join(struct mcp_run *run, struct mcp_audience *audience)
{
	assert(!audience->run && !run->is_over);
	audience->run = run;
	run->abilities = audience->abilities;
	LIST_INSERT_HEAD(&run->audience, audience, link);
	mcp_run_hold(run);
}

/* The youngest of those that can be asked. */
static struct mcp_audience *
whom_to_ask(struct mcp_run *run)
{
	struct mcp_audience *audience;

	LIST_FOREACH(audience, &run->audience, link)
		if (audience->type->on_ask)
			return audience;
	return NULL;
}

static void
take_out(struct mcp_audience *audience)
{
	LIST_REMOVE(audience, link);
	audience->run = NULL;
}

void
mcp_run_leave(struct mcp_audience *audience, enum cancel_reason reason)
{
	struct mcp_run *run = audience->run;

	if (!run)
		return;
	take_out(audience);
	if (run->asked == audience && run->ask.n > 0 && !run->parked) {
		run->asked = NULL;
		run->ask_is_new = true;
		wake_soon(run);
	}
	mcp_run_release(run, reason);
}

void
mcp_run_set_parked(struct mcp_run *run, bool parked)
{
	run->parked = parked;
}

/* Whoever is told may leave. */
#define TELL(run, member, ...)                                                           \
	do {                                                                             \
		struct mcp_audience *next_, *at_ = LIST_FIRST(&(run)->audience);         \
		for (; at_; at_ = next_) {                                               \
			next_ = LIST_NEXT(at_, link);                                    \
			if (at_->type->member)                                           \
				at_->type->member(at_, __VA_ARGS__);                     \
		}                                                                        \
	} while (0)

/* ---- what the tool says ---- */

static void
on_tool_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct mcp_run *run = arg;

	enter(run);
	TELL(run, on_output, stream, bytes, len);
	leave(run);
}

static void
on_tool_progress(void *arg, const struct tool_progress *progress)
{
	struct mcp_run *run = arg;

	enter(run);
	TELL(run, on_progress, progress);
	leave(run);
}

static void
on_tool_log(void *arg, const struct tool_log *log)
{
	struct mcp_run *run = arg;

	enter(run);
	TELL(run, on_log, log);
	leave(run);
}

static int
on_tool_ask(void *arg, const struct tool_question *question, size_t n, const char *state)
{
	struct mcp_run *run = arg;
	int r = -EINVAL;

	if (run->tool->reply)
		r = mcp_ask_open(&run->ask, question, n, state, run->abilities);
	if (r < 0)
		return r;
	run->ask_is_new = true;
	wake_soon(run);
	return 0;
}

int
mcp_run_become_task(struct mcp_run *run, const char *status)
{
	int r;

	if (run->task) {
		mcp_task_set_status(run->task, status);
		return 0;
	}
	if (!(run->abilities & CLIENT_TAKES_TASKS))
		return -EOPNOTSUPP;
	enter(run);
	r = mcp_task_new(run, status);
	if (r == 0)
		TELL(run, on_task, run->task);
	leave(run);
	return r;
}

static int
on_tool_task(void *arg, const char *status)
{
	return mcp_run_become_task(arg, status);
}

static void
end(struct mcp_run *run, const struct tool_answer *answer, const struct tool_failure *failure)
{
	struct mcp_audience *audience;

	enter(run);
	run->tool_run = NULL;
	run->is_over = true;
	mcp_ask_clear(&run->ask);
	forget_permission(run);
	if (run->keeps)
		run->outcome = mcp_outcome_new(answer, failure);
	while ((audience = LIST_FIRST(&run->audience))) {
		take_out(audience);
		audience->type->on_end(audience, answer, failure);
		mcp_run_release(run, CANCEL_BY_CLIENT);
	}
	leave(run);
}

static void
on_tool_answer(void *arg, const struct tool_answer *answer)
{
	end(arg, answer, NULL);
}

static void
on_tool_fail(void *arg, const struct tool_failure *failure)
{
	end(arg, NULL, failure);
}

/* ---- permission ---- */

static void
start_tool(struct mcp_run *run, const struct tool_host *host, const json_t *arguments)
{
	struct tool_run *tool_run = run->tool->start(host, arguments);

	if (!run->is_over)
		run->tool_run = tool_run;
}

static void
refuse(struct mcp_run *run, const struct tool_host *host, const char *text)
{
	audit_write(gate_audit(host->gate), AUDIT_DENIED, tenant_principal(run->tenant), NULL,
		    json_pack("{s:s,s:s}", "tool", run->tool->name, "why", text));
	permission_refuse(host, run->tool, TOOL_DENIED, text);
}

/* Somebody has agreed, or not. The run may be gone afterwards. */
static void
settle(struct mcp_run *run, bool granted, const char *text)
{
	struct permission *permission = run->permission;
	struct tool_host host = permission->host;
	json_t *arguments = json_incref(permission->arguments);

	permission->waits = false;
	forget_permission(run);
	enter(run);
	host.is_task = run->task;
	if (granted)
		start_tool(run, &host, arguments);
	else
		refuse(run, &host, text);
	json_decref(arguments);
	leave(run);
}

static void
on_decided(void *arg, enum approval_state state, const char *reason)
{
	struct mcp_run *run = arg;
	struct permission *permission = run->permission;
	bool granted = state == APPROVAL_GRANTED &&
		       permission_use(&permission->host, permission->item);
	char text[512];

	if (state == APPROVAL_GRANTED && !granted)
		snprintf(text, sizeof(text), "denied: the approval was for one call, and another "
			 "one like it was made first; make the call again");
	else
		snprintf(text, sizeof(text), "denied: the request for an approval is %s%s%.300s",
			 approval_state_name(state), reason ? ": " : "", reason ? reason : "");
	settle(run, granted, text);
}

static void
take_permission(struct mcp_run *run, const struct tool_reply *reply)
{
	struct permission *permission = run->permission;
	bool given = permission_is_given(reply);

	if (given)
		permission_grant(&permission->host, run->tool, permission->item,
				 permission->arguments);
	settle(run, given, "denied: the session's user did not agree");
}

/* The session's own user, by a form. */
static bool
ask_session(struct mcp_run *run)
{
	struct tool_question question;
	int r;

	permission_question(run->tool, run->permission->arguments, &question);
	r = mcp_ask_open(&run->ask, &question, 1, NULL, run->abilities);
	permission_question_done(&question);
	if (r < 0)
		return false;
	run->ask_is_new = true;
	wake_soon(run);
	return true;
}

/* An operator. A task waits for the decision; any other call is answered at once, and made
 * again later. */
static void
ask_operator(struct mcp_run *run)
{
	struct permission *permission = run->permission;
	const struct approval *approval;
	struct why why = { .field = "" };
	char text[256];
	int r = permission_ask(&permission->host, run->tool, permission->item,
			       permission->arguments, NULL, NULL, &approval, &why);

	if (r < 0) {
		refuse(run, &permission->host, why.text);
		return;
	}
	snprintf(text, sizeof(text), "approval_pending: %s has to be approved by an operator; "
		 "make the same call again once it is", approval_id(approval));
	if (mcp_run_become_task(run, text) == 0) {
		permission->waits = true;
		(void)permission_ask(&permission->host, run->tool, permission->item,
				     permission->arguments, on_decided, run, &approval, &why);
		return;
	}
	permission_refuse(&permission->host, run->tool, TOOL_APPROVAL_PENDING, text);
}

static void
ask_permission(struct mcp_run *run, const struct tool_host *host, const json_t *arguments)
{
	struct permission *permission = xcalloc(1, sizeof(*permission));

	permission->host = *host;
	permission->arguments = json_incref((json_t *)arguments);
	permission->item = permission_item(run->tool, arguments);
	run->permission = permission;
	if (permission_use(host, permission->item))
		settle(run, true, NULL);
	else if (!permission_by_session(host) || !ask_session(run))
		ask_operator(run);
}

void
mcp_run_start(struct mcp_run *run, const json_t *arguments, bool wants_output)
{
	struct tool_host host;

	mcp_host(run->mcp, run->tenant, &host);
	run->config = host.config;
	host.client = run->abilities;
	host.is_task = run->task;
	host.on_output = wants_output ? on_tool_output : NULL;
	host.on_progress = on_tool_progress;
	host.on_log = on_tool_log;
	host.on_ask = on_tool_ask;
	host.on_task = on_tool_task;
	host.on_answer = on_tool_answer;
	host.on_fail = on_tool_fail;
	host.arg = run;
	enter(run);
	switch (permission_verdict(&host, run->tool)) {
	case POLICY_UNSAID:
	case POLICY_ALLOW:
		start_tool(run, &host, arguments);
		break;
	case POLICY_APPROVE:
		ask_permission(run, &host, arguments);
		break;
	case POLICY_DENY:
		refuse(run, &host, "denied: policy does not let you use this tool");
		break;
	}
	leave(run);
}

/* ---- questions ---- */

static void
give_replies(struct mcp_run *run)
{
	struct tool_reply reply[QUESTIONS_MAX];
	struct mcp_ask ask = run->ask;

	run->ask = (struct mcp_ask){ .n = 0 };
	for (size_t i = 0; i < ask.n; i++)
		reply[i] = (struct tool_reply){ .key = ask.question[i].key,
						.action = ask.question[i].action,
						.content = ask.question[i].content };
	enter(run);
	if (run->permission)
		take_permission(run, &reply[0]);
	else
		run->tool->reply(run->tool_run, reply, ask.n, ask.state);
	leave(run);
	mcp_ask_clear(&ask);
}

static void
take_early(struct mcp_run *run)
{
	json_t *early = run->early;

	run->early = NULL;
	for (size_t i = 0; early && i < run->ask.n; i++)
		(void)mcp_run_reply(run, i,
				    json_object_get(early, run->ask.question[i].key));
	json_decref(early);
}

/* What could not be done while the tool was on the stack. */
static void
on_soon(evutil_socket_t fd, short what, void *arg)
{
	struct mcp_run *run = arg;
	struct mcp_audience *audience;

	(void)fd;
	(void)what;
	if (run->holders == 0) {
		free_run(run);
		return;
	}
	if (run->is_over || run->ask.n == 0)
		return;
	if (mcp_run_unanswered(run) == 0) {
		give_replies(run);
		return;
	}
	if (!run->ask_is_new)
		return;
	run->ask_is_new = false;
	/* What came before the question was asked is no answer to who has to have seen it. */
	if (!run->permission)
		take_early(run);
	if (mcp_run_unanswered(run) == 0)
		return;			/* the loop comes back for the replies */
	audience = whom_to_ask(run);
	run->asked = audience;
	if (audience)
		audience->type->on_ask(audience);
	else
		mcp_run_give_up(run);
}

const struct mcp_question *
mcp_run_questions(const struct mcp_run *run, size_t *n_r)
{
	*n_r = run->ask.n;
	return run->ask.question;
}

void
mcp_run_write_questions(const struct mcp_run *run, const struct revision *revision,
			struct jsonout *out)
{
	jsonout_open(out, '{');
	for (size_t i = 0; i < run->ask.n; i++) {
		const struct mcp_question *question = &run->ask.question[i];

		if (question->answered)
			continue;
		jsonout_key(out, question->key);
		jsonout_open(out, '{');
		mcp_question_write(question, revision, out);
		jsonout_close(out, '}');
	}
	jsonout_close(out, '}');
}

size_t
mcp_run_unanswered(const struct mcp_run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->ask.n; i++)
		n += !run->ask.question[i].answered;
	return n;
}

bool
mcp_run_reply(struct mcp_run *run, size_t i, const json_t *result)
{
	assert(i < run->ask.n);
	if (!mcp_question_answer(&run->ask.question[i], result))
		return false;
	if (mcp_run_unanswered(run) == 0)
		wake_soon(run);
	return true;
}

void
mcp_run_give_up_one(struct mcp_run *run, size_t i)
{
	struct mcp_question *question = &run->ask.question[i];

	if (i >= run->ask.n || question->answered)
		return;
	question->answered = true;
	question->action = REPLY_CANCEL;
	if (mcp_run_unanswered(run) == 0)
		wake_soon(run);
}

void
mcp_run_give_up(struct mcp_run *run)
{
	for (size_t i = 0; i < run->ask.n; i++)
		mcp_run_give_up_one(run, i);
}

/* ---- small things ---- */

void
mcp_run_keep(struct mcp_run *run)
{
	assert(!run->is_over);
	run->keeps = true;
}

bool
mcp_run_is_kept(const struct mcp_run *run)
{
	return run->keeps;
}

void
mcp_run_set_early(struct mcp_run *run, const json_t *responses)
{
	if (json_is_object(responses) && run->tool->reply)
		run->early = xalloc_check(json_deep_copy(responses));
}

size_t
mcp_run_askers(const struct mcp_run *run)
{
	const struct mcp_audience *audience;
	size_t n = 0;

	LIST_FOREACH(audience, &run->audience, link)
		n += audience->type->on_ask != NULL;
	return n;
}

bool
mcp_run_is_over(const struct mcp_run *run)
{
	return run->is_over;
}

void
mcp_run_outcome(const struct mcp_run *run, const struct tool_answer **answer_r,
		const struct tool_failure **failure_r, size_t *bytes_r)
{
	mcp_outcome_read(run->outcome, answer_r, failure_r, bytes_r);
}

unsigned int
mcp_run_abilities(const struct mcp_run *run)
{
	return run->abilities;
}

struct mcp *
mcp_run_mcp(const struct mcp_run *run)
{
	return run->mcp;
}

struct tenant *
mcp_run_tenant(const struct mcp_run *run)
{
	return run->tenant;
}

const struct tool *
mcp_run_tool(const struct mcp_run *run)
{
	return run->tool;
}

enum mcp_method
mcp_run_method(const struct mcp_run *run)
{
	return run->method;
}

struct mcp_task *
mcp_run_task(const struct mcp_run *run)
{
	return run->task;
}

void
mcp_run_set_task(struct mcp_run *run, struct mcp_task *task)
{
	run->task = task;
}
