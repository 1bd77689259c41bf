/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: every execution from the call to its one answer.
 * Every execution ends in two steps: close_run() reads the kernel's counters and releases the
 * worker; execution_deliver_one() gives the answer, and nothing else does. */
#include "engine/execution.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/own.h"
#include "base/trace.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/egress.h"
#include "engine/engine_parts.h"
#include "engine/execution_files.h"
#include "engine/execution_modules.h"
#include "engine/execution_parts.h"
#include "engine/execution_tools.h"
#include "engine/learning.h"
#include "engine/pool.h"
#include "engine/ready.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"

#define BURST_BYTES (256 * 1024)	/* the bytes beyond a stream's cap that are read between
					 * two pauses */
#define REST_MS 5
#define LONG_BYTES (64 * 1024)		/* of an output whose answer waits for its turn */
#define START_MS 10000			/* to make a worker: not a part of the wall time */
#define GRACE_MS 2000			/* for what was interrupted to end */
#define KILL_MS 30000			/* for init to report that the cell was killed */
#define TELL_MS 2000			/* for a script's init to report files */
#define OFFERS_MS 60000			/* the most wall time that is excused for keeping files */

static void on_deadline(evutil_socket_t fd, short what, void *arg);

/* ---- states ---- */

#define TO(state) (1U << (state))

static const unsigned int execution_legal_next[EXECUTION_STATE_COUNT] = {
	[EXECUTION_WAITING] = TO(EXECUTION_RUNNING) | TO(EXECUTION_DUE),
	[EXECUTION_RUNNING] = TO(EXECUTION_DUE),
	[EXECUTION_DUE] = 0,
};

static void
execution_set_state(struct execution *e, enum execution_state to)
{
	static const char *const name[] = { "waiting", "running", "due" };
	struct engine *engine = e->engine;

	assert((execution_legal_next[e->state] & TO(to)) != 0);
	trace_line(e->serial, "state=%s->%s", name[e->state], name[to]);
	if (e->state == EXECUTION_RUNNING) {
		TAILQ_REMOVE(&engine->running, e, link);
		engine->n_running--;
	}
	if (to == EXECUTION_RUNNING) {
		TAILQ_INSERT_TAIL(&engine->running, e, link);
		engine->n_running++;
	}
	e->state = to;
}

/* Answers an execution that is DUE in the next turn of the loop. */
static void
answer_later(struct execution *e)
{
	TAILQ_INSERT_TAIL(&e->engine->due, e, link);
	event_active(&e->engine->deliver, EV_TIMEOUT, 0);
}

/* Does its answer take milliseconds of the loop? */
static bool
is_long(const struct execution *e)
{
	return e->engine->options.rota != NULL &&
	       output_written(&e->output) >= LONG_BYTES;
}

/* ---- the beginning ---- */

static struct execution *
new_execution(struct engine *engine, struct tenant *tenant,
	      const struct execution_request *request, const struct execution_watcher *watcher,
	      unsigned int profile)
{
	struct execution *e = xcalloc(1, sizeof(*e));

	*e = (struct execution){
		.engine = engine, .tenant = tenant, .watcher = *watcher, .profile = profile,
		.item.kind = request->repl != NULL ? SCHED_CELLS : POOL_USUAL(profile),
		.repl = request->repl, .limits = request->limits,
		.serial = ++engine->executions, .id = "x-",
		.usage.asked_us = clock_us(),
	};
	id_new_short(e->id + 2);
	trace_name(e->serial, e->id);
	e->usage.memory_max = e->limits.memory_bytes;
	e->facts.limits = &e->limits;
	e->facts.disk_bytes = config_disk_bytes(engine->config,
						&engine->config->profile[profile]);
	e->facts.disk_inodes = engine->config->profile[profile].disk_inodes;
	e->facts.watchdog_memory = !engine->memory_counted;
	e->facts.watchdog_pids = !engine->pids_counted;
	request_copy_init(&e->request, request);
	waits_init(&e->prompts, request->prompts, request->prompt_ms);
	waits_init(&e->consents, UINT32_MAX, request->consent_ms);
	waits_init(&e->offers, UINT32_MAX, OFFERS_MS);
	if (request->modules > 0)
		e->modules = modules_new();
	if (request->n_tools > 0)
		e->tools = tools_new();
	results_init(&e->results, e->serial, &e->limits.results);
	output_init(&e->output, e->limits.output_bytes);
	output_init(&e->background, BACKGROUND_MAX);
	if (request->spill)
		output_keep_whole(&e->output, e->limits.results.spill_bytes / STREAM_COUNT);
	evtimer_assign(&e->deadline, engine->base, on_deadline, e);
	return e;
}

void
execution_free(struct execution *e)
{
	if (e->hold.what)
		e->hold.release(&e->hold);
	event_del(&e->deadline);
	rota_forget(&e->turn);
	watchdog_forget(&e->usage.watchdog);
	e->tenant->spilled -= e->spilled;
	e->engine->spilled -= e->spilled;
	output_done(&e->output);
	frame_done(&e->done);
	frame_done(&e->where);
	frame_done(&e->stake);
	output_done(&e->background);
	results_done(&e->results);
	tools_free(e->tools);
	modules_free(e->modules);
	execution_files_free(e->files);
	egress_grant_end(e->grant);
	request_copy_done(&e->request);
	execution_mounts_done(&e->mounts);
	free(e);
}

/* Its observer lets it go on. */
static void
on_hold_over(struct engine_hold *hold, int error)
{
	struct execution *e = (struct execution *)(void *)((char *)hold -
							   offsetof(struct execution, hold));

	hold->what = NULL;
	e->item.held = false;
	if (e->state != EXECUTION_WAITING)
		return;
	if (error < 0) {
		e->facts.unrecorded = true;
		execution_stop(e, STOP_NONE);
	} else if (e->repl != NULL) {
		pool_dispatch_cells(e->tenant);
	} else {
		pool_dispatch(e->tenant, e->item.kind);
	}
}

/* The longest time that it may wait to run. A client was told how long its call may take: behind
 * others the call waits for half of that, so that the answer comes in time. */
static uint64_t
longest_wait_ms(const struct execution *e)
{
	const struct sched_queue *queue = &e->tenant->queue;
	uint64_t most = e->engine->config->pool.wait_seconds * 1000ULL, half;

	if (e->request.patient || e->request.internal)
		return e->limits.wall_ms > most ? e->limits.wall_ms : most;
	half = e->limits.wall_ms / 2 > START_MS ? e->limits.wall_ms / 2 : START_MS;
	if (half < most && (queue->n_running >= queue->running_max ||
			    (e->repl == NULL && pool_is_taken(e->tenant))))
		return half;
	return most;
}

/* Refuses an execution that has waited for too long, or looks again when that may be so. */
static void
await_worker(struct execution *e)
{
	uint64_t waited = (clock_us() - e->usage.asked_us) / 1000, most = longest_wait_ms(e);
	uint64_t left = waited < most ? most - waited : 0;
	char text[64];

	if (left > 0) {
		execution_set_deadline_ms(e, left < START_MS ? left : START_MS);
		return;
	}
	snprintf(text, sizeof(text), "no worker was free for %llu s",
		 (unsigned long long)waited / 1000);
	execution_refuse(e, text);
}

int
execution_start(struct engine *engine, struct tenant *tenant,
		const struct execution_request *request,
		const struct execution_watcher *watcher, struct execution **execution_r,
		struct why *why_r)
{
	struct execution_mounts mounts = { 0 };
	struct repl_terms terms = { 0 };
	bool is_away = false;		/* what would mount its files */
	bool is_broken = false;		/* and it does not come back by itself */
	unsigned int index = 0;
	struct share *share;
	struct execution *e;
	int r;

	if (request->repl != NULL) {
		r = engine->cells->admits(request->repl, &terms, why_r);
		index = terms.profile;
	} else {
		r = request_choose_profile(tenant, request->profile, &index, why_r);
	}
	if (r == 0)
		r = request_check_inputs(request, engine->config, index, why_r);
	if (r == 0)
		r = execution_mounts_take(&mounts, engine, tenant, request,
					  request->repl != NULL ? &terms : NULL, why_r);
	is_broken = r == -ENOTSUP;
	is_away = r == -EAGAIN || is_broken;
	if (r < 0 && !is_away) {
		if (request->channel != NULL)
			close(*request->channel);
		return r;
	}
	e = new_execution(engine, tenant, request, watcher, index);
	if (e->repl != NULL)
		e->usage.memory_max = e->limits.memory_bytes = terms.memory_bytes;
	e->mounts = mounts;
	if (mounts.wants_volume) {
		e->facts.volume_bytes = engine->config->workspace.volume_bytes;
		e->facts.volume_files = engine->config->workspace.volume_files;
	}
	e->hold.on_over = on_hold_over;
	r = execution_announce(e, why_r);
	if (r < 0) {
		execution_free(e);
		return r;
	}
	e->item.held = e->hold.what != NULL;
	*execution_r = e;
	tenant->active_ms = clock_ms();
	if (engine->shutting_down) {
		e->facts.stop = STOP_CANCEL;
		e->facts.cancel = CANCEL_SHUTDOWN;
		execution_set_state(e, EXECUTION_DUE);
		answer_later(e);
		return 0;
	}
	if (e->repl != NULL)
		e->named = learnable_named(engine->config, request->script, request->script_len);
	else if (!request->internal)
		e->item.kind = learning_choose(tenant, index, request->script,
					       request->script_len, &e->named);
	share = &tenant->share[e->repl != NULL ? POOL_USUAL(index) : e->item.kind];
	if (is_away) {
		snprintf(e->jail_text, sizeof(e->jail_text), "%s", why_r->text);
		e->facts.jail_text = e->jail_text;
	}
	if (is_away || !pool_may_serve(share) ||
	    sched_queue_put(&tenant->queue, &e->item) < 0) {
		e->facts.never_ran = is_broken;
		e->facts.overloaded = !is_broken;
		e->retry_after_ms = sched_queue_retry_ms(&tenant->queue);
		execution_set_state(e, EXECUTION_DUE);
		answer_later(e);
		return 0;
	}
	await_worker(e);
	if (e->repl != NULL) {
		e->engine->cells->enqueue(e->repl, e);
		return 0;
	}
	if (zygote_trouble(share->profile->zygote) != NULL) {
		execution_fail(e, zygote_trouble(share->profile->zygote));
		return 0;
	}
	if (share_warm_worker(share) == NULL)
		share_grow(share);
	pool_dispatch(tenant, e->item.kind);
	return 0;
}

const char *
execution_id(const struct execution *e)
{
	return e->id;
}

/* ---- its clocks and its use ---- */

static void end_run(struct execution *e, enum stop_reason reason);

static void
on_deadline(evutil_socket_t, short, void *arg)
{
	struct execution *e = arg;
	enum stop_reason used_up;

	if (e->state != EXECUTION_RUNNING) {
		if (e->state == EXECUTION_WAITING)
			await_worker(e);
		return;
	}
	if (e->stopping == INTERRUPTED) {
		end_run(e, e->facts.stop);
		return;
	}
	if (e->stopping == KILLED) {
		execution_lose(e, STOP_WALL);
		return;
	}
	if (execution_wall_us(e) >= (e->limits.wall_ms - e->facts.late_ms) * 1000) {
		execution_stop(e, STOP_WALL);
		return;
	}
	used_up = execution_set_deadline(e, execution_cpu_ms(e));
	if (used_up != STOP_NONE)
		execution_stop(e, used_up);
}

static void
execution_on_looked(void *arg)
{
	struct execution *e = arg;

	if (!execution_fits_memory(e))
		execution_stop(e, STOP_MEMORY);
}

/* The watchdog's check of a running execution. */
static void
on_check(void *arg)
{
	struct execution *e = arg;
	struct worker *w = e->worker;
	enum stop_reason exceeded;

	/* Init is ending the script, and an exact look at the memory would stop init, too. */
	if (e->stopping == KILLED)
		return;
	exceeded = execution_measure(e);
	if (exceeded == STOP_TASKS || exceeded == STOP_SOCKETS)
		worker_note_tables(w, 0, 0);	/* the tenant's other workers may fit then */
	if (exceeded == STOP_PIDS || exceeded == STOP_TASKS || exceeded == STOP_SOCKETS)
		execution_stop(e, exceeded);
	else if (exceeded == STOP_MEMORY && w->has_volume)
		execution_stop(e, STOP_MEMORY);
	else if (exceeded == STOP_MEMORY && !watchdog_look_rests(&w->look) &&
		 watchdog_look(e->engine->watchdog, &w->look, w->pid, w->leaf, true,
			       execution_on_looked, e))
		execution_on_looked(e);
}

/* The wait is a part of its time, but leaves it half. */
static void
count_wait(struct execution *e)
{
	uint64_t waited = execution_waited_us(e) / 1000, half = e->limits.wall_ms / 2;

	if (!e->request.patient && !e->request.internal && waited > START_MS)
		e->facts.late_ms = waited - START_MS < half ? waited - START_MS : half;
}

void
execution_begin(struct execution *e, struct worker *w)
{
	trace_line(e->serial, "decision=run worker=%llu", (unsigned long long)w->serial);
	execution_set_state(e, EXECUTION_RUNNING);
	e->worker = w;
	count_wait(e);
	e->made_ready = w->made_ready[0] != '\0';
	results_begin(&e->results);
	watchdog_watch(e->engine->watchdog, &e->usage.watchdog, on_check, e);
	execution_set_deadline(e, 0);
}

/* ---- the end ---- */

/* Reads the counters and the rest of the output, and separates the execution from its worker. */
static struct worker *
close_run(struct execution *e)
{
	struct worker *w = e->worker;

	/* From here on no callback can end the execution a second time. */
	execution_set_state(e, EXECUTION_DUE);
	event_del(&e->deadline);
	watchdog_look_end(&w->look);
	execution_files_end(e);
	execution_count(e);
	if (e->facts.stop != STOP_NONE && e->became != STATE_COMMITTED &&
	    e->became != STATE_ROLLED_BACK)
		worker_kill(w);
	worker_drain(w);
	e->network_lost |= egress_grant_end(give_ptr(e->grant));
	modules_end(e->modules);
	tools_end(e);
	e->worker = NULL;
	w->execution = NULL;
	if (e->repl != NULL) {
		e->engine->cells->close(e->repl);
		e->repl = NULL;
	}
	return w;
}

void
execution_lose(struct execution *e, enum stop_reason reason)
{
	if (e->facts.stop == STOP_NONE)
		e->facts.stop = reason;
	e->became = e->repl != NULL ? STATE_LOST : STATE_NONE;
	worker_end(close_run(e));
	answer_later(e);
}

/* Does the caller want the files of a script that is stopped, and can its init report them? */
static bool
is_to_tell(const struct execution *e, enum stop_reason reason)
{
	return !e->request.internal && !e->engine->shutting_down && reason != STOP_PROTOCOL &&
	       (reason != STOP_CANCEL || e->facts.cancel == CANCEL_BY_CLIENT ||
		e->facts.cancel == CANCEL_BY_OPERATOR);
}

/* Does the answer say where the script was when it was stopped? */
static bool
is_to_say_where(const struct execution *e, enum stop_reason reason)
{
	return !e->request.internal && !e->engine->shutting_down &&
	       (reason == STOP_WALL || reason == STOP_CPU || reason == STOP_QUOTA);
}

/* Makes the worker's init end the script and report the files. The run ends with EXITED. */
static void
stop_script(struct execution *e, enum stop_reason reason)
{
	enum worker_end how = is_to_say_where(e, reason) ? WORKER_WHERE : WORKER_KILL;

	/* The count comes now: what init does from here on is not charged to the script. */
	execution_count(e);
	/* The grant ends before the script: otherwise connections that are cut would look as if the
	 * script had closed them. */
	e->network_lost |= egress_grant_end(give_ptr(e->grant));
	if (worker_stop(e->worker, how) < 0) {
		execution_lose(e, reason);
		return;
	}
	execution_set_deadline_ms(e, TELL_MS);
	/* The rest of the output is read at the end of the run. */
	worker_throttle(e->worker, 2 * TELL_MS);
}

/* Kills a script or a cell. The run ends when the worker's init reports it. */
static void
end_run(struct execution *e, enum stop_reason reason)
{
	if (e->stopping == KILLED)
		return;
	e->stopping = KILLED;
	if (e->facts.stop == STOP_NONE || e->repl == NULL)
		e->facts.stop = reason;
	if (e->repl == NULL) {
		stop_script(e, reason);
		return;
	}
	execution_set_deadline_ms(e, KILL_MS);
	if (!e->engine->cells->stop(e->repl, false, is_to_say_where(e, e->facts.stop)))
		execution_lose(e, reason);
}

/* Does what is stopped get KeyboardInterrupt first? A script that is cancelled does not: nobody
 * reads its answer. */
static bool
is_to_interrupt(const struct execution *e, enum stop_reason reason)
{
	if (e->repl != NULL && reason == STOP_CANCEL)
		return e->facts.cancel != CANCEL_SESSION_ENDED && !e->engine->shutting_down;
	return is_to_say_where(e, reason);
}

/* Interrupts a script or a cell, which then has GRACE_MS to end by itself. */
static void
interrupt_run(struct execution *e, enum stop_reason reason)
{
	bool sent;

	if (e->facts.stop == STOP_NONE)
		e->facts.stop = reason;
	if (e->stopping != GOES_ON)
		return;
	e->stopping = INTERRUPTED;
	e->facts.interrupted = true;
	execution_set_deadline_ms(e, GRACE_MS);
	sent = e->repl != NULL ? e->engine->cells->stop(e->repl, true, false)
			       : worker_stop(e->worker, WORKER_INTERRUPT) == 0;
	if (!sent)
		execution_lose(e, reason);
}

int
execution_on_where(struct execution *e, struct frame *frame)
{
	if (frame->msg.where.id != e->serial || e->where.body != NULL)
		return -EBADMSG;
	e->where = *frame;
	memset(frame, 0, sizeof(*frame));
	return 0;
}

void
execution_keep_done(struct execution *e, struct frame *frame)
{
	e->done = *frame;
	memset(frame, 0, sizeof(*frame));
	if (e->named != 0 && e->done.msg.done.has_import_us)
		learning_note(e->engine, e->profile, e->named, e->done.msg.done.import_us);
	ready_note(e);
	e->facts.has_done = true;
	e->facts.raised = e->done.msg.done.raised;
	e->facts.done_code = e->done.msg.done.exit_code;
}

int
execution_keep_stake(struct execution *e, struct frame *frame)
{
	if (frame->msg.at_stake.id != e->serial || e->stake.body != NULL)
		return -EBADMSG;
	e->stake = *frame;
	memset(frame, 0, sizeof(*frame));
	return 0;
}

/* Has it ended because of the interrupt? False: a cancellation came too late. A time limit has been
 * reached in any case. */
static bool
has_given_way(const struct execution *e)
{
	static const char interrupt[] = "KeyboardInterrupt";
	const struct msg_done *done = &e->done.msg.done;

	if (!e->facts.interrupted || e->facts.stop != STOP_CANCEL)
		return e->facts.interrupted && e->facts.has_done;
	return e->facts.raised && done->has_error_type &&
	       done->error_type.len == strlen(interrupt) &&
	       memcmp(done->error_type.at, interrupt, strlen(interrupt)) == 0;
}

void
execution_on_cell_ended(struct execution *e, enum outcome_state became,
			const struct msg_cell_ended *ended)
{
	/* The process that listed the state's variables has ended with its answer. It changes
	 * nothing, so the state counts as untouched. */
	bool looked = e->request.inspect && e->facts.has_done && e->facts.stop == STOP_NONE &&
		      became == STATE_ROLLED_BACK;
	struct worker *w;

	e->became = looked ? STATE_NONE : became;
	results_end(&e->results);
	e->processes_ended = ended->ended;
	e->fell = ended->fell;
	e->held_up = ended->error == EBUSY;
	e->not_made = ended->error != 0;
	e->fell_status = (int)ended->fell_status;
	output_add(&e->background, STREAM_STDOUT, ended->background_stdout.at,
		   ended->background_stdout.len);
	output_add(&e->background, STREAM_STDERR, ended->background_stderr.at,
		   ended->background_stderr.len);
	e->facts.committed = became == STATE_COMMITTED;
	e->facts.gave_way = e->facts.committed && has_given_way(e);
	if (e->facts.committed && !e->facts.gave_way)
		e->facts.stop = STOP_NONE;
	/* The cell has reported its end, but its changes were not kept, because it was killed: the
	 * report does not count. */
	if (!e->facts.committed && !looked)
		e->facts.has_done = e->facts.raised = false;
	if (ended->error != 0 && e->facts.stop == STOP_NONE) {
		snprintf(e->jail_text, sizeof(e->jail_text), "a process for the cell: %s%s",
			 ended->by_state && ended->error == ENOENT
			 ? "the one that held the state is gone"
			 : strerror((int)ended->error),
			 ended->by_state && ended->error == EAGAIN
			 ? " (the session has as many processes and threads as it may; only a "
			   "reset ends threads)" : "");
		e->facts.jail_text = e->jail_text;
		e->facts.never_ran = true;
		e->facts.by_state = ended->by_state;
	} else if (!e->facts.has_done) {
		e->facts.has_exit = true;
		e->facts.wait_status = (int)ended->status;
	}
	w = close_run(e);
	answer_later(e);
	worker_rest(w);
}

/* Gives the answer, and makes room for the next execution. Frees e. */
static void
execution_deliver_one(struct execution *e)
{
	struct tenant *tenant = e->tenant;
	bool ran = execution_has_run(e);
	uint64_t took_ms = ran ? execution_wall_us(e) / 1000 : 0;

	if (e->watcher.on_outcome != NULL || e->observed)
		execution_answer(e);
	execution_free(e);
	tenant->active_ms = clock_ms();
	if (!ran)
		return;
	sched_queue_done(&tenant->queue,
			 took_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)took_ms);
	for (unsigned int i = 0; i < tenant->n_shares; i++)
		if (tenant->queue.waiting[i] > 0)
			pool_dispatch(tenant, i);
	pool_dispatch_cells(tenant);
}

static void
on_turn(void *arg)
{
	struct execution *e = arg;
	struct engine *engine = e->engine;

	TAILQ_REMOVE(&engine->long_due, e, link);
	execution_deliver_one(e);
	pool_pump(engine);
	pool_tell_change(engine);
}

/* Of long answers, one is given in a turn of the loop, and tenants alternate. */
static void
answer_in_turn(struct execution *e)
{
	TAILQ_INSERT_TAIL(&e->engine->long_due, e, link);
	e->turn.on_turn = on_turn;
	e->turn.arg = e;
	rota_wait(e->engine->options.rota, &e->turn, e->tenant->principal);
}

void
execution_deliver(struct engine *engine)
{
	struct execution *e;
	TAILQ_HEAD(, execution) now;

	/* Executions that become due meanwhile wait for the next turn. */
	TAILQ_INIT(&now);
	TAILQ_CONCAT(&now, &engine->due, link);
	while ((e = TAILQ_FIRST(&now)) != NULL) {
		TAILQ_REMOVE(&now, e, link);
		if (is_long(e))
			answer_in_turn(e);
		else
			execution_deliver_one(e);
	}
	pool_pump(engine);
	pool_tell_change(engine);
}

void
execution_stop(struct execution *e, enum stop_reason reason)
{
	static const char *const name[] = { "none", "cancel", "wall", "cpu", "quota", "output",
					    "memory", "pids", "sockets", "tasks", "protocol" };
	_Static_assert(sizeof(name) / sizeof(name[0]) == STOP_PROTOCOL + 1, "a name for each");
	trace_line(e->serial, "decision=stop why=%s", name[reason]);
	switch (e->state) {
	case EXECUTION_WAITING:
		sched_queue_remove(&e->tenant->queue, &e->item);
		if (e->repl != NULL) {
			e->engine->cells->dequeue(e->repl, e);
			e->repl = NULL;
		}
		if (e->item.kind != SCHED_CELLS)
			share_update(&e->tenant->share[e->item.kind]);
		e->facts.stop = reason;
		e->facts.never_ran = true;
		execution_set_state(e, EXECUTION_DUE);
		answer_later(e);
		break;
	case EXECUTION_RUNNING:
		if (is_to_interrupt(e, reason))
			interrupt_run(e, reason);
		else if (e->repl != NULL ? !e->engine->shutting_down || e->engine->keeps_sessions
					 : is_to_tell(e, reason))
			end_run(e, reason);
		else
			execution_lose(e, reason);
		break;
	case EXECUTION_DUE: case EXECUTION_STATE_COUNT:
		break;
	}
}

void
execution_fail(struct execution *e, const char *text)
{
	assert(e->state == EXECUTION_WAITING);
	snprintf(e->jail_text, sizeof(e->jail_text), "%s", text);
	e->facts.jail_text = e->jail_text;
	execution_stop(e, STOP_NONE);
}

void
execution_refuse(struct execution *e, const char *text)
{
	e->facts.overloaded = true;
	e->retry_after_ms = sched_queue_retry_ms(&e->tenant->queue);
	execution_fail(e, text);
}

bool
execution_lacks(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS;
}

void
execution_cancel(struct execution *e, enum cancel_reason reason)
{
	if (e->state == EXECUTION_DUE)
		return;
	if (e->facts.stop != STOP_CANCEL || reason == CANCEL_SESSION_ENDED)
		e->facts.cancel = reason;
	execution_stop(e, STOP_CANCEL);
}

void
execution_unwatch(struct execution *e)
{
	memset(&e->watcher, 0, sizeof(e->watcher));
}

/* Charges the unchanged output that is kept for spilling. It is counted separately from stored
 * files, with the same bounds: keep_bytes and keep_bytes_max. */
static void
charge_spill(struct execution *e, enum stream stream, size_t len)
{
	const struct config *config = e->engine->config;
	size_t more = output_whole_growth(&e->output, stream, len);

	if (e->tenant->spilled + more > config->results.keep_bytes ||
	    e->engine->spilled + more > config->results.keep_bytes_max) {
		output_keep_no_more(&e->output);
		return;
	}
	e->spilled += more;
	e->tenant->spilled += more;
	e->engine->spilled += more;
}

void
execution_on_output(struct execution *e, enum stream stream, const void *bytes,
		    size_t len)
{
	uint64_t total;

	charge_spill(e, stream, len);
	output_add(&e->output, stream, bytes, len);
	if (e->watcher.on_output != NULL)
		e->watcher.on_output(e->watcher.arg, stream, bytes, len);
	if (e->state != EXECUTION_RUNNING)
		return;
	total = output_written(&e->output);
	if (total > e->limits.output_total) {
		execution_stop(e, STOP_OUTPUT);
	} else if (output_is_full(&e->output, stream)) {
		/* The stream is longer than its cap, and only its tail still changes: it need not
		 * be read fast. */
		e->burst += len;
		if (e->burst >= BURST_BYTES) {
			e->burst = 0;
			worker_throttle(e->worker, REST_MS);
		}
	}
}

int
execution_on_listener(struct execution *e, struct frame *frame)
{
	if (e->grant == NULL || e->listens || frame->msg.listener.id != e->serial)
		return -EBADMSG;
	e->listens = true;
	egress_grant_listen(e->grant, frame_take_fd(frame, 0));
	return 0;
}

/* Ends a run that came to its end by itself. The answer is given first, the worker is ended after
 * it. */
static void
execution_finish(struct execution *e)
{
	struct engine *engine = e->engine;
	struct worker *w;

	if (e->repl != NULL) {
		execution_lose(e, STOP_NONE);
		return;
	}
	w = close_run(e);
	worker_spend(w);
	if (is_long(e))
		answer_in_turn(e);
	else
		execution_deliver_one(e);
	worker_ignore(w);
	pool_settle(engine, w->share);
}

void
execution_on_done(struct execution *e, struct frame *frame)
{
	execution_keep_done(e, frame);
	e->facts.gave_way = has_given_way(e);
	results_end(&e->results);
	execution_finish(e);
}

void
execution_on_exited(struct execution *e, int wait_status)
{
	e->facts.has_exit = true;
	e->facts.wait_status = wait_status;
	results_end(&e->results);
	execution_finish(e);
}

void
execution_on_died(struct execution *e, int wait_status)
{
	/* Init that ends without a report was killed. */
	if ((wait_status & 0x7f) != 0) {
		e->facts.has_exit = true;
		e->facts.wait_status = wait_status;
	}
	execution_finish(e);
}

void
execution_on_broken(struct execution *e)
{
	execution_stop(e, STOP_PROTOCOL);
}
