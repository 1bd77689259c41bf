/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: tasks, their timers, and their results. */
#include "mcp/outcome.h"
#include "mcp/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/handle.h"
#include "base/jsonout.h"
#include "base/kept.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/context.h"
#include "mcp/repeat.h"
#include "mcp/run.h"
#include "policy/config.h"

#define POLL_EVERY_MS 1000
#define STATUS_MAX 256		/* bytes */

enum task_state { WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED };

static const char *const state_names[] = {
	[WORKING] = "working",
	[INPUT_REQUIRED] = "input_required",
	[COMPLETED] = "completed",
	[FAILED] = "failed",
	[CANCELLED] = "cancelled",
};

struct mcp_task {
	struct kept kept;		/* in use until the run has ended */
	struct mcp_tasks *tasks;
	char id[HANDLE_MAX + 1];
	struct tenant *tenant;
	struct mcp_run *run;		/* held; NULL: cancelled */
	struct mcp_audience audience;
	enum task_state state;
	char status[STATUS_MAX];	/* "": none */
	struct timespec created, updated;
	uint64_t ttl_ms;
	LIST_HEAD(, mcp_task_watch) watches;
};

struct mcp_tasks {
	struct mcp *mcp;
	struct kept_store store;
};

static void
task_tell(struct mcp_task *task, bool gone)
{
	struct mcp_task_watch *watch, *next;

	for (watch = LIST_FIRST(&task->watches); watch; watch = next) {
		next = LIST_NEXT(watch, link);
		if (gone)
			mcp_task_unwatch(watch);
		watch->on_change(watch, task, gone);
	}
}

static void
enter_state(struct mcp_task *task, enum task_state state)
{
	task->state = state;
	task->kept.in_use = state < COMPLETED;
	clock_gettime(CLOCK_REALTIME, &task->updated);
	task_tell(task, false);
}

static bool
task_is_over(const struct mcp_task *task)
{
	return !task->kept.in_use;
}

static void
let_run_go(struct mcp_task *task, enum cancel_reason reason)
{
	struct mcp_run *run = task->run;

	task->run = NULL;
	if (!run)
		return;
	run->task = NULL;
	mcp_run_leave(&task->audience, reason);
	mcp_run_release(run, reason);
}

static void
task_drop(struct kept *kept)
{
	struct mcp_task *task = (struct mcp_task *)kept;

	task_tell(task, true);
	kept_remove(kept);
	let_run_go(task, CANCEL_DISCONNECTED);
	tenant_release(task->tenant);
	free(task);
}

struct mcp_tasks *
mcp_tasks_new(struct mcp *mcp)
{
	struct mcp_tasks *tasks = xcalloc(1, sizeof(*tasks));

	tasks->mcp = mcp;
	kept_store_init(&tasks->store, task_drop);
	return tasks;
}

void
mcp_tasks_free(struct mcp_tasks *tasks)
{
	if (!tasks)
		return;
	while (!TAILQ_EMPTY(&tasks->store.list))
		task_drop(TAILQ_FIRST(&tasks->store.list));
	free(tasks);
}

/* ---- its run ---- */

static struct mcp_task *
task_of(struct mcp_audience *audience)
{
	return (struct mcp_task *)((char *)audience - offsetof(struct mcp_task, audience));
}

static void
task_on_ask(struct mcp_audience *audience)
{
	enter_state(task_of(audience), INPUT_REQUIRED);
}

static void
task_on_withdraw(struct mcp_audience *audience, const char *)
{
	struct mcp_task *task = task_of(audience);

	enter_state(task, mcp_run_unanswered(task->run) ? INPUT_REQUIRED : WORKING);
}

static void
task_on_end(struct mcp_audience *audience, const struct tool_answer *answer,
	    const struct tool_failure *failure)
{
	struct mcp_task *task = task_of(audience);
	struct kept *kept = &task->kept;
	size_t bytes;

	enter_state(task, answer ? COMPLETED : FAILED);
	mcp_outcome_read(task->run->outcome, &answer, &failure, &bytes);
	kept_charge(kept, bytes);
	kept_make_room(kept->store, kept->owner, kept, UINT32_MAX,
		       task->tasks->mcp->options.config->mcp.kept_bytes);
}

static const struct mcp_audience_type task_audience = {
	.on_ask = task_on_ask,
	.on_withdraw = task_on_withdraw,
	.on_end = task_on_end,
};

int
mcp_task_new(struct mcp_run *run, const char *status)
{
	struct mcp *mcp = run->mcp;
	struct mcp_tasks *tasks = mcp->tables.tasks;
	const struct config *config = mcp->options.config;
	uint32_t most = config->mcp.tasks_per_tenant;
	struct mcp_task *task;

	if (most == 0 || !kept_make_room(&tasks->store, run->tenant, NULL, most - 1,
					 UINT64_MAX))
		return -EBUSY;
	task = xcalloc(1, sizeof(*task));
	task->tasks = tasks;
	handle_new('t', task->id);
	task->tenant = run->tenant;
	tenant_hold(task->tenant);
	task->kept.in_use = true;
	kept_add(&tasks->store, &task->kept, task->tenant, mcp->options.base);
	task->run = run;
	run->holders++;
	mcp_run_keep(run);
	run->task = task;
	task->audience.type = &task_audience;
	task->audience.abilities = run->abilities;
	mcp_run_join(run, &task->audience);
	LIST_INIT(&task->watches);
	clock_gettime(CLOCK_REALTIME, &task->created);
	task->updated = task->created;
	/* The time must be enough for the run to end and for the client to read the result. */
	task->ttl_ms = config->mcp.task_ttl_seconds * 1000ULL;
	if (task->ttl_ms < 2ULL * config->limits.cap.wall_ms)
		task->ttl_ms = 2ULL * config->limits.cap.wall_ms;
	kept_expire(&task->kept, task->ttl_ms / 1000);
	mcp_task_set_status(task, status);
	return 0;
}

struct mcp_task *
mcp_task_find(struct mcp_tasks *tasks, const struct tenant *tenant, const char *id)
{
	struct kept *kept;

	KEPT_FOREACH(kept, &tasks->store, tenant)
		if (strcmp(((struct mcp_task *)kept)->id, id) == 0)
			return (struct mcp_task *)kept;
	return NULL;
}

const char *
mcp_task_id(const struct mcp_task *task)
{
	return task->id;
}

void
mcp_task_set_status(struct mcp_task *task, const char *status)
{
	snprintf(task->status, sizeof(task->status), "%s", status ? status : "");
	if (!task_is_over(task))
		enter_state(task, task->state);
}

/* ---- the state of a task for clients ---- */

static void
write_time(struct jsonout *out, const char *key, const struct timespec *when)
{
	char text[64];
	struct tm tm;
	size_t n;

	gmtime_r(&when->tv_sec, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%03ldZ", when->tv_nsec / 1000000);
	jsonout_member_text(out, key, text);
}

static void
write_state(const struct mcp_task *task, struct jsonout *out)
{
	jsonout_member_text(out, "taskId", task->id);
	jsonout_member_text(out, "status", state_names[task->state]);
	if (*task->status && !task_is_over(task))
		jsonout_member_text(out, "statusMessage", task->status);
	write_time(out, "createdAt", &task->created);
	write_time(out, "lastUpdatedAt", &task->updated);
	jsonout_member_uint(out, "ttlMs", task->ttl_ms);
	jsonout_member_uint(out, "pollIntervalMs", POLL_EVERY_MS);
}

void
mcp_task_write_created(const struct mcp_task *task, const struct revision *revision,
		       struct jsonout *out)
{
	revision_open_result(revision, out, "task");
	write_state(task, out);
	jsonout_close(out, '}');
}

void
mcp_task_write(const struct mcp_task *task, const struct revision *revision,
	       struct jsonout *out)
{
	write_state(task, out);
	if (task->state == INPUT_REQUIRED) {
		jsonout_key(out, "inputRequests");
		mcp_run_write_questions(task->run, revision, out);
	} else if (task->state == COMPLETED || task->state == FAILED) {
		const struct tool_failure *failure;
		const struct tool_answer *answer;

		mcp_outcome_read(task->run->outcome, &answer, &failure, NULL);
		jsonout_key(out, answer ? "result" : "error");
		if (answer)
			revision_write_answer(revision, out, task->run->method, answer);
		else
			revision_write_error(revision, out, failure);
	}
}

void
mcp_task_seen(struct mcp_task *task)
{
	task->kept.seen = task_is_over(task);
}

void
mcp_task_update(struct mcp_task *task, const json_t *responses)
{
	if (task->state != INPUT_REQUIRED)
		return;
	mcp_run_take_responses(task->run, responses);
	enter_state(task, mcp_run_unanswered(task->run) ? INPUT_REQUIRED : WORKING);
}

void
mcp_task_cancel(struct mcp_task *task)
{
	if (task_is_over(task))
		return;
	mcp_repeat_drop(task->tasks->mcp->tables.repeats, task->run);
	let_run_go(task, CANCEL_BY_CLIENT);
	enter_state(task, CANCELLED);
}

void
mcp_task_watch(struct mcp_task *task, struct mcp_task_watch *watch)
{
	watch->task = task;
	LIST_INSERT_HEAD(&task->watches, watch, link);
}

void
mcp_task_unwatch(struct mcp_task_watch *watch)
{
	if (watch->task)
		LIST_REMOVE(watch, link);
	watch->task = NULL;
}
