/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: every session from repl_open to repl_close, and the order of
 * its jobs.
 * Reads:   answers of its worker's init, whose bounds were checked already. An answer that was not
 * asked for ends the worker. */
#include "engine/repl.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/log.h"
#include "base/trace.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution.h"
#include "engine/execution_parts.h"
#include "engine/keeper.h"
#include "engine/learning.h"
#include "engine/pool.h"
#include "engine/ready.h"
#include "engine/repl_parts.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/tenants.h"
#include "engine/worker.h"

#define ANSWER_MS 10000		/* the time that init has to make or copy a snapshot */

/* ---- phases ---- */

#define TO(phase) (1U << (phase))

static const unsigned int legal_next[REPL_PHASE_COUNT] = {
	[REPL_NEW] = TO(REPL_WAITING) | TO(REPL_IDLE),	/* IDLE: adopted, or made ready */
	[REPL_WAITING] = TO(REPL_OPENING) | TO(REPL_ENDED),
	[REPL_OPENING] = TO(REPL_IDLE) | TO(REPL_ENDED),
	[REPL_IDLE] = TO(REPL_CELL) | TO(REPL_COPY) | TO(REPL_ENDED),
	[REPL_CELL] = TO(REPL_IDLE) | TO(REPL_ENDED),
	[REPL_COPY] = TO(REPL_IDLE) | TO(REPL_ENDED),
	[REPL_ENDED] = 0,
};

void
repl_set_phase(struct repl *repl, enum repl_phase to)
{
	static const char *const name[] = { "new", "waiting", "opening", "idle", "cell", "copy",
					    "ended" };
	struct share *share = repl->share;

	assert((legal_next[repl->phase] & TO(to)) != 0);
	trace_line(repl->execution ? repl->execution->serial : 0, "session-worker=%llu state=%s->%s",
		   repl->worker ? (unsigned long long)repl->worker->serial : 0,
		   name[repl->phase], name[to]);
	if (repl->phase == REPL_WAITING) {
		TAILQ_REMOVE(&share->opening, repl, waiting_link);
		share->n_opening--;
	}
	if (to == REPL_WAITING) {
		TAILQ_INSERT_TAIL(&share->opening, repl, waiting_link);
		share->n_opening++;
	}
	repl->phase = to;
}

void
repl_change_share(struct repl *repl, struct share *share)
{
	TAILQ_REMOVE(&repl->share->opening, repl, waiting_link);
	repl->share->n_opening--;
	repl->share = share;
	TAILQ_INSERT_TAIL(&share->opening, repl, waiting_link);
	share->n_opening++;
}

/* ---- the end of it ---- */

void
repl_end(struct repl *repl, const char *text)
{
	struct worker *w = repl->worker;

	if (w == NULL) {
		repl_on_worker_gone(repl, text);
		return;
	}
	snprintf(repl->end_text, sizeof(repl->end_text), "%s", text);
	if (repl->execution != NULL)
		execution_lose(repl->execution, STOP_PROTOCOL);
	else
		worker_end(w);
}

/* A job other than a cell is answered in a later turn of the loop. */
static void
repl_answer(struct repl *repl, struct repl_job *job, int error)
{
	job->error = error;
	TAILQ_INSERT_TAIL(&repl->answers, job, link);
	event_active(&repl->tell, EV_TIMEOUT, 0);
}

static void
stop_mounting(struct repl *repl)
{
	if (repl->mounting != NULL)
		keeper_unwait(repl->mounting);
	repl->mounting = NULL;
}

void
repl_on_worker_gone(struct repl *repl, const char *text)
{
	bool waited = repl->phase == REPL_WAITING;
	struct repl_job *job;

	if (repl->phase == REPL_ENDED)
		return;
	assert(repl->execution == NULL);
	repl_background_count(repl);
	repl_set_phase(repl, REPL_ENDED);
	if (waited)
		share_update(repl->share);
	stop_mounting(repl);
	repl->worker = NULL;
	repl->snapshots = 0;
	event_del(&repl->timer);
	if (repl->end_text[0] == '\0')
		snprintf(repl->end_text, sizeof(repl->end_text), "%s", text);
	while ((job = TAILQ_FIRST(&repl->jobs)) != NULL) {
		if (job->kind == JOB_CELL) {
			/* This takes the job out of the list. */
			execution_cancel(job->execution, CANCEL_SESSION_ENDED);
			continue;
		}
		TAILQ_REMOVE(&repl->jobs, job, link);
		repl_answer(repl, job, -ESRCH);
	}
	repl->end_untold = true;
	event_active(&repl->tell, EV_TIMEOUT, 0);
}

/* Calls one callback per turn of the loop, because a callback may close the session. */
static void
on_tell(evutil_socket_t, short, void *arg)
{
	struct repl *repl = arg;
	struct repl_job *job = TAILQ_FIRST(&repl->answers);

	if (job != NULL) {
		void (*on_copied)(void *, int) = job->on_copied;
		void *on_copied_arg = job->arg;
		int error = job->error;

		TAILQ_REMOVE(&repl->answers, job, link);
		free(job);
		event_active(&repl->tell, EV_TIMEOUT, 0);
		if (on_copied != NULL)
			on_copied(on_copied_arg, error);
	} else if (repl->end_untold) {
		repl->end_untold = false;
		if (repl->watcher.on_end != NULL)
			repl->watcher.on_end(repl->watcher.arg, repl->end_text);
	}
}

static void
on_timer(evutil_socket_t, short, void *arg)
{
	repl_end(arg, "the session's worker did not answer in time");
}

static void
free_jobs(struct repl_jobs *jobs)
{
	struct repl_job *job;

	while ((job = TAILQ_FIRST(jobs)) != NULL) {
		TAILQ_REMOVE(jobs, job, link);
		if (job->kind != JOB_CELL)
			free(job);
	}
}

void
repl_free(struct repl *repl)
{
	repl_close_channel(repl);
	stop_mounting(repl);
	mount_places_done(&repl->places);
	event_del(&repl->timer);
	event_del(&repl->tell);
	free_jobs(&repl->jobs);
	free_jobs(&repl->answers);
	LIST_REMOVE(repl, link);
	repl->tenant->repls--;
	repl->engine->n_repls--;
	tenant_release(repl->tenant);
	free(repl);
}

void
repl_close(struct repl *repl)
{
	if (repl == NULL)
		return;
	if (repl->execution != NULL) {
		repl->execution->facts.cancel = CANCEL_SESSION_ENDED;
		execution_lose(repl->execution, STOP_CANCEL);
	}
	repl_end(repl, "it was closed");
	repl_free(repl);
}

/* ---- its worker ---- */

static void
repl_arm(struct repl *repl)
{
	static const struct timeval most = { ANSWER_MS / 1000, 0 };

	evtimer_add(&repl->timer, &most);
}

int
repl_send(struct repl *repl, const struct msg *msg, int fd)
{
	if (repl->frozen) {
		cgroup_leaf_freeze(repl->worker->leaf, false);
		repl->frozen = false;
	}
	repl->held = false;
	return worker_send(repl->worker, msg, fd);
}

/* The packages are mounted, or could not be mounted. The first cell waits for this, and for the
 * first snapshot. */
static void
on_mounted(void *arg, int error)
{
	struct repl *repl = arg;
	char text[sizeof(repl->end_text)];

	repl->mounting = NULL;
	if (error != 0) {
		snprintf(text, sizeof(text), "its packages could not be mounted: %s",
			 strerror(error));
		repl_end(repl, text);
	} else if (repl->has_snapshot) {
		repl_rest(repl);
	}
}

static void
mount_first(struct repl *repl)
{
	int r = repl->engine->keeper == NULL ? -EAGAIN
		: keeper_mount(repl->engine->keeper, repl->environment,
			       repl->worker->pidfd, on_mounted, repl, &repl->mounting);

	if (r < 0)
		repl_end(repl, "its packages could not be mounted: there is no store of them now");
}

static void
repl_say_needs(const struct repl *repl, struct repl_needs *needs_r)
{
	*needs_r = (struct repl_needs){
		.tenant = repl->tenant, .kind = repl->share->profile->kind,
		.environment = repl->environment,
		.bounds = { repl->memory_bytes, repl->memory_most, repl->pids_max, repl->alone },
	};
}

int
repl_lease(struct repl *repl, struct worker *w)
{
	struct repl_needs needs;

	repl_say_needs(repl, &needs);
	assert(repl->phase == REPL_WAITING);
	if (worker_lease_session(w, &needs.bounds, false, &repl_user, repl) < 0)
		return -EAGAIN;
	repl->worker = w;
	repl_set_phase(repl, REPL_OPENING);
	repl_arm(repl);
	if (repl->environment[0] != '\0')
		mount_first(repl);
	return 0;
}

/* ---- what happens in it ---- */

static int
repl_admits(struct repl *repl, struct repl_terms *terms_r, struct why *why_r)
{
	*terms_r = (struct repl_terms){
		.profile = repl->share->profile->index, .memory_bytes = repl->memory_bytes,
		.adopted = repl->adopted, .places = &repl->places,
	};
	return repl->phase != REPL_ENDED ? 0
		: why_say(why_r, -ESRCH, "session", "the session has ended: %s",
			  repl->end_text);
}

static struct repl_job *
add_job(struct repl *repl, const struct repl_job *job)
{
	struct repl_job *copy = xmalloc(sizeof(*copy));

	*copy = *job;
	if (repl->phase == REPL_ENDED) {
		repl_answer(repl, copy, -ESRCH);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&repl->jobs, copy, link);
	return copy;
}

void
repl_copy(struct repl *repl, unsigned int from, unsigned int to,
	  void (*on_copied)(void *arg, int error), void *arg)
{
	assert(from < REPL_SNAPSHOTS_MAX && to < REPL_SNAPSHOTS_MAX);
	add_job(repl, &(struct repl_job){ .kind = JOB_COPY, .from = from, .to = to,
					  .on_copied = on_copied, .arg = arg });
	repl_turn(repl);
}

static void
forget_copies(struct repl_jobs *jobs, const void *arg)
{
	struct repl_job *job;

	TAILQ_FOREACH(job, jobs, link)
		if (job->kind == JOB_COPY && job->arg == arg)
			job->on_copied = NULL;
}

void
repl_forget(struct repl *repl, const void *arg)
{
	forget_copies(&repl->jobs, arg);
	forget_copies(&repl->answers, arg);
}

void
repl_drop(struct repl *repl, unsigned int snapshot)
{
	assert(snapshot < REPL_SNAPSHOTS_MAX);
	add_job(repl, &(struct repl_job){ .kind = JOB_DROP, .to = snapshot });
	repl_turn(repl);
}

static void
repl_enqueue(struct repl *repl, struct execution *e)
{
	e->job = (struct repl_job){ .kind = JOB_CELL, .execution = e };
	TAILQ_INSERT_TAIL(&repl->jobs, &e->job, link);
	repl_turn(repl);
}

static void
repl_dequeue(struct repl *repl, struct execution *e)
{
	TAILQ_REMOVE(&repl->jobs, &e->job, link);
}

/* The limit may have been raised since the last cell. */
static int
give_memory(struct repl *repl)
{
	struct cgroup_leaf *leaf = repl->worker->leaf;
	uint64_t uncounted = repl_uncounted(repl);

	if (leaf == NULL || repl->memory_bytes <= uncounted)
		return 0;
	return cgroup_leaf_raise_memory(leaf, repl->memory_bytes - uncounted);
}

static void
start_copy(struct repl *repl, struct repl_job *job)
{
	struct msg copy = { .type = MSG_COPY, .copy = { .from = job->from, .to = job->to } };

	if ((repl->snapshots & 1U << job->from) == 0 || repl->engine->shutting_down) {
		TAILQ_REMOVE(&repl->jobs, job, link);
		repl_answer(repl, job, repl->engine->shutting_down ? -ESRCH : -ENOENT);
		return;
	}
	job->adds = (repl->snapshots & 1U << job->to) == 0;
	repl_set_phase(repl, REPL_COPY);
	repl_arm(repl);
	if (give_memory(repl) < 0 || repl_send(repl, &copy, -1) < 0)
		repl_end(repl, "the session's worker is gone");
}

/* Starts the cell of the first job, which counts as running already, or refuses it. */
static void
repl_turn_cell(struct repl *repl, struct repl_job *job)
{
	struct execution *e = job->execution;
	int r;

	TAILQ_REMOVE(&repl->jobs, job, link);
	r = repl_start_cell(repl, e);
	if (r == 0)
		return;
	TAILQ_INSERT_HEAD(&repl->jobs, job, link);
	sched_queue_put_back(&repl->tenant->queue, &e->item);
	execution_refuse(e, strerror(-r));
}

void
repl_turn(struct repl *repl)
{
	struct repl_job *job;

	while (repl->phase == REPL_IDLE && (job = TAILQ_FIRST(&repl->jobs)) != NULL) {
		if (job->kind == JOB_COPY) {
			start_copy(repl, job);
		} else if (job->kind == JOB_DROP) {
			struct msg drop = { .type = MSG_DROP, .drop.snapshot = job->to };

			TAILQ_REMOVE(&repl->jobs, job, link);
			repl->snapshots &= ~(1U << job->to);
			free(job);
			if (repl_send(repl, &drop, -1) < 0)
				repl_end(repl, "the session's worker is gone");
			else if (repl->snapshots == 0)
				repl_end(repl, "its last state was given up");
		} else if (!execution_mounts_fit(&job->execution->mounts, &repl->places)) {
			/* This takes the job out of the list. */
			execution_fail(job->execution, "with those of the calls before it, its "
				       "large files are more than a session can have");
		} else if (sched_queue_take_item(&repl->tenant->queue,
						 &job->execution->item) == 0) {
			repl_turn_cell(repl, job);
		} else {
			/* The tenant already runs as much as it may. */
			return;
		}
	}
	if (repl->engine->shutting_down && repl->engine->keeps_sessions)
		repl_hold(repl, HOLD_STAYS);
}

void
repl_rest(struct repl *repl)
{
	repl_set_phase(repl, REPL_IDLE);
	repl->idle_since_ms = clock_ms();
	repl->idle_cpu_us = 0;
	if (repl->snapshots == 0)
		repl_end(repl, "its last state was lost");
	else
		repl_turn(repl);
}

/* Gives up a copy that exceeds the session's memory. */
static int
undo_copy(struct repl *repl, unsigned int snapshot)
{
	struct msg drop = { .type = MSG_DROP, .drop.snapshot = snapshot };

	return repl_send(repl, &drop, -1) < 0 ? -ESRCH : -ENOMEM;
}

static void
finish_copy(struct repl *repl, int error)
{
	struct repl_job *job = TAILQ_FIRST(&repl->jobs);

	TAILQ_REMOVE(&repl->jobs, job, link);
	if (error != 0 && job->adds)
		repl->snapshots &= ~(1U << job->to);
	repl_answer(repl, job, error);
	repl_rest(repl);
}

static void
repl_on_copy_looked(void *arg)
{
	struct repl *repl = arg;

	finish_copy(repl, repl_fits_memory(repl)
			  ? 0 : undo_copy(repl, TAILQ_FIRST(&repl->jobs)->to));
}

static int
on_copied(struct repl *repl, const struct msg_copied *copied)
{
	struct repl_job *job;
	int error = -(int)copied->error;

	/* No copy was asked for, or it was answered already and its memory is being measured. */
	if (!evtimer_pending(&repl->timer, NULL))
		return -EBADMSG;
	event_del(&repl->timer);
	if (repl->phase == REPL_OPENING && copied->to == 0 && error == 0) {
		repl->has_snapshot = true;
		if (repl->mounting == NULL)
			repl_rest(repl);
		return 0;
	}
	if (repl->phase != REPL_COPY)
		return -EBADMSG;
	job = TAILQ_FIRST(&repl->jobs);
	if (job->to != copied->to)
		return -EBADMSG;
	if (error != 0 || !job->adds)
		finish_copy(repl, error != 0 && error != -ENOENT ? -EAGAIN : error);
	else if (repl_look(repl, repl->memory_bytes, repl_on_copy_looked))
		repl_on_copy_looked(repl);
	return 0;
}

/* The snapshot that the worker may be making now, as a bit. A snapshot in STATES counts only if it
 * is known already or being made. Any other one was dropped, by an order that init had not read yet
 * when it sent STATES. */
static uint32_t
state_being_made(const struct repl *repl)
{
	if (repl->phase == REPL_OPENING)
		return 1;
	return repl->phase == REPL_COPY ? 1U << TAILQ_FIRST(&repl->jobs)->to : 0;
}

static int
on_states(struct repl *repl, const struct msg_states *states)
{
	repl->snapshots = states->snapshots & (repl->snapshots | state_being_made(repl));
	repl->rests_with = states->bytes;
	repl->spare_bytes = states->spare_bytes;
	if (repl->phase == REPL_IDLE && repl->snapshots == 0)
		repl_end(repl, "what held its state ended while no cell ran, and there is no copy");
	return 0;
}

static int
on_message(struct worker *w, struct frame *frame)
{
	struct repl *repl = w->repl;
	const enum msg_type type = frame->msg.type;

	if (type == MSG_STATES)
		return on_states(repl, &frame->msg.states);
	if (type == MSG_HELD)
		return repl_on_held(repl, &frame->msg.held);
	if (type == MSG_COPIED)
		return on_copied(repl, &frame->msg.copied);
	if (type == MSG_CELL_READY)
		return repl_on_cell_ready(repl, &frame->msg.cell_ready);
	if (type == MSG_CELL_ENDED)
		return repl_on_cell_ended(repl, &frame->msg.cell_ended);
	if (type == MSG_LEFT || type == MSG_LEFT_MORE)
		return repl_on_left(repl, frame);
	if (type == MSG_LISTENER)
		return repl_on_listener(repl, frame);
	return -EBADMSG;
}

static void
on_output(struct worker *w, enum stream stream, const void *bytes, size_t len)
{
	execution_on_output(w->execution, stream, bytes, len);
}

/* The control socket, on which only init sends, has broken the protocol. */
static void
on_broken(struct worker *w)
{
	execution_lose(w->execution, STOP_PROTOCOL);
}

static void
on_died(struct worker *w, int wait_status)
{
	execution_on_died(w->execution, wait_status);
}

static void
on_ending(struct worker *w)
{
	struct repl *repl = w->repl;

	w->user = NULL;
	w->repl = NULL;
	repl_on_worker_gone(repl, "its worker has ended");
}

const struct worker_user repl_user = {
	.on_message = on_message,
	.on_output = on_output,
	.on_broken = on_broken,
	.on_died = on_died,
	.on_ending = on_ending,
};

static void
repl_close_cell(struct repl *repl)
{
	repl->execution = NULL;
	repl_close_channel(repl);
}

const struct repl_stage repl_stage = {
	.admits = repl_admits,
	.describe = repl_say_needs,
	.enqueue = repl_enqueue,
	.dequeue = repl_dequeue,
	.send = repl_send_cell,
	.mount = repl_mount,
	.stop = repl_stop_cell,
	.close = repl_close_cell,
};

/* ---- the beginning ---- */

/* Ends the session that has been idle for longest of the tenant with the most, if that has at least
 * two more than this one. Its place is free when its user was told. */
static bool
end_longest_idle(const struct engine *engine, const struct tenant *tenant)
{
	struct repl *repl, *found = NULL;

	LIST_FOREACH(repl, &engine->repls, link)
		if (repl->phase == REPL_IDLE && TAILQ_EMPTY(&repl->jobs) &&
		    repl->end_text[0] == '\0' && repl->tenant->repls > tenant->repls + 1 &&
		    (found == NULL || repl->tenant->repls > found->tenant->repls ||
		     (repl->tenant == found->tenant &&
		      repl->idle_since_ms < found->idle_since_ms)))
			found = repl;
	if (found == NULL)
		return false;
	log_line(LOG_NOTICE, "repl-ended", "tenant=%s why=makes-room", found->tenant->principal);
	repl_end(found, "all sessions of the service were in use, and another user needed one: "
			"this was your longest unused one");
	return true;
}

/* May the tenant have one more session? Sessions hold their workers for hours, so a quarter of all
 * workers stays free for scripts. */
static bool
leaves_room(const struct engine *engine, const struct tenant *tenant)
{
	unsigned int max = engine->config->pool.workers_max;
	int r = fair_take_last(max - (max + 3) / 4, engine->n_repls, tenant->repls, UINT_MAX);

	return r == 0 || (r == -EUSERS && end_longest_idle(engine, tenant));
}

struct repl *
repl_make(struct engine *engine, struct tenant *tenant, unsigned int profile,
	  uint64_t memory_bytes, const struct repl_watcher *watcher)
{
	struct repl *repl = xcalloc(1, sizeof(*repl));

	*repl = (struct repl){
		.engine = engine, .tenant = tenant, .share = &tenant->share[POOL_USUAL(profile)],
		.watcher = *watcher, .memory_bytes = memory_bytes, .memory_most = memory_bytes,
		.channel = -1,
	};
	TAILQ_INIT(&repl->jobs);
	TAILQ_INIT(&repl->answers);
	evtimer_assign(&repl->timer, engine->base, on_timer, repl);
	evtimer_assign(&repl->tell, engine->base, on_tell, repl);
	tenant_hold(tenant);
	tenant->repls++;
	engine->n_repls++;
	LIST_INSERT_HEAD(&engine->repls, repl, link);
	return repl;
}

/* Begins in a worker that was made ready: packages and snapshot 0 are there. False: there is none.
 */
static bool
begin_ready(struct repl *repl, const struct repl_options *options)
{
	const struct msg_str code = { options->code, options->code_len };
	struct repl_needs needs;
	struct msg_states states;
	struct worker *w;

	repl_say_needs(repl, &needs);
	w = code.at != NULL ? ready_take_session(&needs, &code, &states) : NULL;
	if (w == NULL)
		return false;
	worker_output_mute(w);
	w->user = &repl_user;
	w->repl = repl;
	repl->worker = w;
	repl->snapshots = states.snapshots;
	repl->rests_with = states.bytes;
	repl->has_snapshot = true;
	repl_rest(repl);
	return true;
}

int
repl_open(struct engine *engine, struct tenant *tenant, const struct repl_options *options,
	  const struct repl_watcher *watcher, struct repl **repl_r, struct why *why_r)
{
	unsigned int index = 0;
	struct repl *repl;
	uint64_t named;
	int r;

	r = request_choose_profile(tenant, options->profile, &index, why_r);
	if (r < 0)
		return r;
	if (engine->shutting_down)
		return why_say(why_r, -ESHUTDOWN, NULL, "the service is shutting down");
	if (tenant->repls >= options->sessions_max)
		return why_say(why_r, -EDQUOT, NULL, "%u sessions are open already, and no more "
			       "may be", tenant->repls);
	if (!leaves_room(engine, tenant))
		return why_say(why_r, -EDQUOT, NULL, "the service has as many sessions as it can "
			       "hold beside scripts, of all tenants together: close one, or "
			       "come back later");
	repl = repl_make(engine, tenant, index, options->limits.memory_bytes, watcher);
	repl->alone = options->alone;
	if (options->memory_max > repl->memory_bytes)
		repl->memory_most = options->memory_max;
	repl->pids_max = options->pids_max > 0 ? options->pids_max : options->limits.pids;
	if (options->environment != NULL)
		snprintf(repl->environment, sizeof(repl->environment), "%s",
			 options->environment);
	if (options->code != NULL)
		repl->share = &tenant->share[learning_choose(tenant, index, options->code,
							     options->code_len, &named)];
	if (!begin_ready(repl, options)) {
		repl_set_phase(repl, REPL_WAITING);
		pool_dispatch(tenant, repl->share->profile->kind);
	}
	*repl_r = repl;
	return 0;
}

int
repl_raise(struct repl *repl, uint64_t memory_bytes, struct why *why_r)
{
	if (!repl->engine->memory_counted && memory_bytes > repl->memory_most)
		return why_say(why_r, -ERANGE, "memory_mb", "the memory of this session can be "
			       "raised to %llu MiB, the most that was allowed when it began: a "
			       "reset gives it more",
			       (unsigned long long)(repl->memory_most >> 20));
	if (memory_bytes > repl->memory_bytes)
		repl->memory_bytes = memory_bytes;
	return 0;
}

/* ---- what it has ---- */

bool
repl_is_frozen(const struct repl *repl)
{
	return repl->frozen || repl->held;
}

bool
repl_runs_on(const struct repl *repl)
{
	return repl->background.runs;
}

bool
repl_runs_other(const struct repl *repl, const struct execution *cell)
{
	return repl->phase == REPL_CELL && repl->execution != cell;
}

bool
repl_holds(const struct repl *repl, unsigned int snapshot)
{
	assert(snapshot < REPL_SNAPSHOTS_MAX);
	if (repl->phase == REPL_WAITING || repl->phase == REPL_OPENING)
		return snapshot == 0;
	return (repl->snapshots & 1U << snapshot) != 0;
}

int
repl_mount(struct repl *repl, const char *environment, void (*mounted)(void *arg, int error),
	   void *arg, struct mounting **mounting_r)
{
	int r;

	if (repl->worker == NULL || repl->engine->keeper == NULL)
		return -EAGAIN;
	/* The namespaces of an adopted session are not below those of this service's keeper. */
	if (repl->adopted)
		return -EXDEV;
	r = keeper_mount(repl->engine->keeper, environment, repl->worker->pidfd, mounted, arg,
			 mounting_r);
	if (r == 0)
		snprintf(repl->environment, sizeof(repl->environment), "%s", environment);
	return r;
}
