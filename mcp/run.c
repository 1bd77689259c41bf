/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: runs of tools, and their results if those are kept.
 * A function of the tool may be on the stack when the last holder leaves. Then the next turn of the
 * loop stops the run. */
#include "mcp/run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/catalog.h"
#include "mcp/client_tools.h"
#include "mcp/context.h"
#include "mcp/outcome.h"
#include "mcp/permission.h"
#include "mcp/run_parts.h"
#include "mcp/task.h"
#include "policy/config.h"

bool
mcp_run_has_room(struct tenant *tenant, size_t bytes)
{
	return bytes < RUN_LONG || tenant_charge(tenant, 0) + bytes <= RUNS_BYTES_MAX;
}

struct mcp_run *
mcp_run_new(struct mcp *mcp, struct tenant *tenant, const struct tool *tool,
	    enum mcp_method method, size_t bytes)
{
	struct mcp_run *run = xcalloc(1, sizeof(*run));

	run->mcp = mcp;
	run->tenant = tenant;
	tenant_hold(tenant);
	tenant_charge(tenant, (int64_t)bytes);
	run->tool = tool;
	run->method = method;
	run->bytes = bytes;
	run->holders = 1;
	LIST_INIT(&run->audience);
	LIST_INSERT_HEAD(&mcp->runs, run, link);
	return run;
}

static void
run_set_over(struct mcp_run *run)
{
	if (!run->is_over)
		tenant_charge(run->tenant, -(int64_t)run->bytes);
	run->is_over = true;
}

static void
run_stop_clock(struct mcp_run *run)
{
	if (run->long_now)
		event_free(run->long_now);
	run->long_now = NULL;
}

static void
run_free_run(struct mcp_run *run)
{
	struct tool_run *tool_run = run->tool_run;

	assert(run->depth == 0 && LIST_EMPTY(&run->audience));
	run->tool_run = NULL;
	run_set_over(run);
	if (tool_run)
		run->tool->cancel(tool_run, run->reason);
	LIST_REMOVE(run, link);
	run_stop_clock(run);
	if (run->soon)
		event_free(run->soon);
	run_forget_permission(run);
	config_free(run->config);
	mcp_outcome_free(run->outcome);
	free(run->waits);
	mcp_ask_clear(&run->ask);
	json_decref(run->early);
	client_tools_release(run->client_tools);
	tenant_release(run->tenant);
	free(run);
}

static void run_take_out(struct mcp_audience *audience);

void
mcp_runs_free(struct mcp_runs *runs)
{
	struct mcp_run *run;

	while ((run = LIST_FIRST(runs))) {
		if (run->job)
			run_take_out(run->job);
		run->reason = CANCEL_SHUTDOWN;
		run_free_run(run);
	}
}

static void run_on_soon(evutil_socket_t fd, short what, void *arg);

void
run_wake(struct mcp_run *run)
{
	static const struct timeval now;

	if (!run->soon)
		run->soon = xalloc_check(evtimer_new(run->mcp->options.base, run_on_soon, run));
	evtimer_add(run->soon, &now);
}

void
mcp_run_release(struct mcp_run *run, enum cancel_reason reason)
{
	assert(run->holders > 0);
	if (--run->holders > 0)
		return;
	run->reason = reason;
	if (run->depth == 0)
		run_free_run(run);
	else if (!run->is_over)
		run_wake(run);		/* a function of its tool is on the stack */
}

void
run_enter(struct mcp_run *run)
{
	run->depth++;
}

/* Must be the last use of the run in a callback. */
void
run_leave(struct mcp_run *run)
{
	if (--run->depth == 0 && run->holders == 0 && run->is_over)
		run_free_run(run);
}

/* ---- the audience ---- */

void
mcp_run_join(struct mcp_run *run, struct mcp_audience *audience)
{
	assert(!audience->run && !run->is_over);
	audience->run = run;
	/* The client tools of a run are those of the client that has started it, not of this one.
	 */
	run->abilities = run->job ? 0 : audience->abilities |
			 (run->client_tools ? CLIENT_HAS_TOOLS : 0);
	LIST_INSERT_HEAD(&run->audience, audience, link);
	run->holders++;
}

static void
run_take_out(struct mcp_audience *audience)
{
	if (audience->run->job == audience)
		audience->run->job = NULL;
	if (audience->run->asked == audience)
		audience->run->asked = NULL;
	LIST_REMOVE(audience, link);
	audience->run = NULL;
}

void
mcp_run_leave(struct mcp_audience *audience, enum cancel_reason reason)
{
	struct mcp_run *run = audience->run;
	bool was_asked = run && run->asked == audience;

	if (!run)
		return;
	run_take_out(audience);
	if (was_asked && !run->parked)
		run_ask_again(run);
	mcp_run_release(run, reason);
}

/* Calls a member of each audience. A callback may make its audience leave. */
#define TELL(run, member, ...)                                                           \
	do {                                                                             \
		struct mcp_audience *next_, *at_ = LIST_FIRST(&(run)->audience);         \
		for (; at_; at_ = next_) {                                               \
			next_ = LIST_NEXT(at_, link);                                    \
			if (at_->type->member)                                           \
				at_->type->member(at_, __VA_ARGS__);                     \
		}                                                                        \
	} while (0)

/* ---- reports of the tool ---- */

static void
on_tool_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct mcp_run *run = arg;

	run_enter(run);
	TELL(run, on_output, stream, bytes, len);
	run_leave(run);
}

static void
on_tool_progress(void *arg, const struct tool_progress *progress)
{
	struct mcp_run *run = arg;

	run_enter(run);
	TELL(run, on_progress, progress);
	run_leave(run);
}

static void
on_tool_log(void *arg, const struct tool_log *log)
{
	struct mcp_run *run = arg;

	run_enter(run);
	TELL(run, on_log, log);
	run_leave(run);
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
	run_wake(run);
	return 0;
}

static bool
on_tool_withdraw(void *arg, const char *key)
{
	struct mcp_run *run = arg;
	bool told;

	run_enter(run);
	told = run_withdraw(run, key);
	run_leave(run);
	return told;
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
	run_enter(run);
	r = mcp_task_new(run, status);
	if (r == 0)
		TELL(run, on_task, run->task);
	run_leave(run);
	return r;
}

static int
on_tool_task(void *arg, const char *status)
{
	return mcp_run_become_task(arg, status);
}

static int
on_tool_job(void *arg, const char *waits)
{
	return mcp_run_become_job(arg, waits);
}

/* Does the steps that were impossible while a function of the tool was on the stack. */
static void
run_on_soon(evutil_socket_t, short, void *arg)
{
	struct mcp_run *run = arg;

	if (run->holders == 0)
		run_free_run(run);
	else
		run_go_on_asking(run);
}

static void
run_end(struct mcp_run *run, const struct tool_answer *answer, const struct tool_failure *failure)
{
	struct mcp_audience *audience;

	run_enter(run);
	run->tool_run = NULL;
	run_set_over(run);
	run_stop_clock(run);
	mcp_ask_clear(&run->ask);
	run_forget_permission(run);
	if (run->keeps)
		run->outcome = mcp_outcome_new(answer, failure);
	while ((audience = LIST_FIRST(&run->audience))) {
		run_take_out(audience);
		audience->type->on_end(audience, answer, failure);
		mcp_run_release(run, CANCEL_BY_CLIENT);
	}
	run_leave(run);
}

/* An answer that is kept may be for any client. */
static bool
on_tool_wants_structured(void *arg)
{
	const struct mcp_run *run = arg;
	const struct mcp_audience *audience;
	bool wanted = run->keeps;

	LIST_FOREACH(audience, &run->audience, link)
		wanted |= !audience->text_alone;
	return wanted;
}

static void
on_tool_answer(void *arg, const struct tool_answer *answer)
{
	run_end(arg, answer, NULL);
}

static void
on_tool_fail(void *arg, const struct tool_failure *failure)
{
	run_end(arg, NULL, failure);
}

/* ---- its start ---- */

static void
wind_clock(struct mcp_run *run, uint32_t seconds)
{
	const struct timeval wait = { .tv_sec = seconds };

	evtimer_add(run->long_now, &wait);
}

/* The run takes longer than a client should wait: it becomes a task now. Most runs end before, so
 * their clients need not ask for the result. */
static void
on_long(evutil_socket_t, short, void *arg)
{
	struct mcp_run *run = arg;
	uint32_t seconds = run->config->mcp.task_after_seconds;
	char text[TOOL_WAITS_MAX];

	/* No client can be told of a task now. The clock starts again, for the client that will
	 * bring the answers. */
	if (run->parked)
		wind_clock(run, seconds ? seconds : 1);
	else
		(void)mcp_run_become_task(run, mcp_run_waits(run, text, sizeof(text))
					       ? "it waits for its turn, and then runs"
					       : run->tool->long_status);
}

void
run_start_tool(struct mcp_run *run, const struct tool_host *host, const json_t *arguments)
{
	struct tool_run *tool_run = run->tool->start(host, arguments);

	if (run->is_over)
		return;
	run->tool_run = tool_run;
	if (run->tool->long_status && (run->abilities & CLIENT_TAKES_TASKS)) {
		run->long_now = xalloc_check(evtimer_new(run->mcp->options.base, on_long, run));
		wind_clock(run, run->config->mcp.task_after_seconds);
	}
}

void
run_make_host(struct mcp_run *run, bool wants_output, struct tool_host *host_r)
{
	const struct config *config = run->config;

	mcp_host(run->mcp, run->tenant, host_r);
	if (config)
		config_free(host_r->config);
	run->config = host_r->config = config ? config : host_r->config;
	host_r->job = run->job ? run->job_handle : NULL;
	host_r->client = run->abilities;
	host_r->client_tools = run->job ? NULL : client_tools_server(run->client_tools);
	host_r->on_output = wants_output ? on_tool_output : NULL;
	host_r->on_progress = on_tool_progress;
	host_r->on_log = on_tool_log;
	host_r->on_ask = on_tool_ask;
	host_r->on_withdraw = on_tool_withdraw;
	host_r->on_task = on_tool_task;
	host_r->on_job = on_tool_job;
	host_r->wants_structured = on_tool_wants_structured;
	host_r->on_answer = on_tool_answer;
	host_r->on_fail = on_tool_fail;
	host_r->arg = run;
}

void
mcp_run_start(struct mcp_run *run, const json_t *arguments, bool wants_output)
{
	struct why why = { .field = "" };
	struct tool_host host;

	run->stays = json_is_false(json_object_get(arguments, BACKGROUND_ARGUMENT));
	run_make_host(run, wants_output, &host);
	run_enter(run);
	switch (permission_verdict(&host, run->tool, arguments, &why)) {
	case POLICY_UNSAID:
	case POLICY_ALLOW:
		run_start_tool(run, &host, arguments);
		break;
	case POLICY_APPROVE:
		run_ask_permission(run, &host, arguments);
		break;
	case POLICY_DENY:
		run_refuse(run, &host, why.text);
		break;
	}
	run_leave(run);
}

/* ---- it becomes a job ---- */

/* The answer of a run that goes on: it is for the calls, the audiences that can be asked. */
static void
on_job_answer(void *arg, const struct tool_answer *answer)
{
	struct mcp_run *run = arg;
	struct mcp_audience *audience;

	do {
		LIST_FOREACH(audience, &run->audience, link)
			if (audience->type->on_ask)
				break;
		if (!audience)
			return;
		run_take_out(audience);
		audience->type->on_end(audience, answer, NULL);
		mcp_run_release(run, CANCEL_BY_CLIENT);
	} while (true);
}

bool
mcp_run_answer_job(struct mcp_run *run)
{
	struct tool_host job, caller;

	if (!run->job)
		return false;
	run_make_host(run, true, &job);
	caller = job;
	caller.job = NULL;
	caller.on_answer = on_job_answer;
	run_enter(run);
	run->tool->answer_job(run->tool_run, &job, run->waits, &caller);
	run_leave(run);
	return true;
}

int
mcp_run_become_job(struct mcp_run *run, const char *waits)
{
	adopt_run *adopt = run->mcp->options.catalog->adopt;
	bool is_new = !run->job;
	struct tool_host host;
	int r;

	if (is_new) {
		if (!waits || run->stays || run->task || !run->tool->answer_job || !adopt)
			return -EOPNOTSUPP;
		if (run->parked)
			return -EAGAIN;
		run_make_host(run, true, &host);
		r = adopt(run, &host, run->tool, &run->job, &run->job_handle);
		if (r < 0)
			return r;
		run->abilities = 0;
		run_stop_clock(run);
		mcp_ask_clear(&run->ask);
	}
	free(run->waits);
	run->waits = waits ? xstrdup(waits) : NULL;
	if (is_new)
		(void)mcp_run_answer_job(run);
	return 0;
}

/* ---- small things ---- */

void
mcp_run_keep(struct mcp_run *run)
{
	assert(!run->is_over);
	run->keeps = true;
}

bool
mcp_run_uses(const struct mcp_run *run, struct execution_now *now_r)
{
	return run->tool_run && run->tool->uses && run->tool->uses(run->tool_run, now_r);
}

bool
mcp_run_waits(const struct mcp_run *run, char *text_r, size_t size)
{
	if (run->tool_run && run->tool->waits && run->tool->waits(run->tool_run, text_r, size))
		return true;
	if (run->waits)
		snprintf(text_r, size, "%s", run->waits);
	return run->waits != NULL;
}
