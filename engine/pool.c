/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the zygotes, and the list of all workers.
 * The cost of each operation is independent of the number of workers, except for the loss of a
 * zygote and its renewal. */
#include "engine/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 60000
#define BACKOFF_CALL_MS 250	/* the longest pause between starts while a call waits */
#define FAILURES_TELL 3		/* after this many failures in a row, waiting calls are refused */
#define QUIET_US 6000		/* a quiet moment: at least 2 ms, because the clock has steps of 4
				 * ms */
#define SPENT_US 20000		/* roughly the time that a spent worker is kept if calls follow
				 * each other */
#define SPENT_MOST 16
#define ENDING_MOST 8		/* warm workers are ended for waiting calls only while fewer workers
				 * are ENDING */

#define NO_ZYGOTE "no more zygotes may run, and each belongs to a tenant that is busy"

#define share_of(entity_) \
	((struct share *)(void *)((char *)(entity_) - offsetof(struct share, entity)))

/* ---- asking for workers ---- */

static bool
is_learned(const struct pool_profile *profile)
{
	return profile->kind == POOL_LEARNED(profile->index);
}

/* Tells every call that waits for this profile that it is unavailable. Calls that wait for a
 * learned zygote get workers of the usual one. */
static void
pool_fail_waiting(struct pool_profile *profile, const char *text)
{
	struct sched_entity *entity;

	while ((entity = sched_ring_next(&profile->ring, SCHED_WAITING)) != NULL) {
		if (is_learned(profile))
			profile->engine->pool->hooks->fall_back(share_of(entity));
		else
			profile->engine->pool->hooks->refuse(share_of(entity), text);
		share_update(share_of(entity));
	}
}

void
pool_dispatch(struct tenant *tenant, unsigned int kind)
{
	tenant->engine->pool->hooks->dispatch(tenant, kind);
}

void
pool_dispatch_cells(struct tenant *tenant)
{
	tenant->engine->pool->hooks->start_cells(tenant);
}

void
pool_tell_change(struct engine *engine)
{
	engine->pool->hooks->on_change(engine);
}

static void
arm_retry(struct pool_profile *profile, uint32_t ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	profile->retry_ms = clock_ms() + ms;
	evtimer_add(&profile->retry, &delay);
}

/* Refuses waiting calls after FAILURES_TELL failures in a row. A call for which other workers are
 * still being made is not refused before the last of these has failed. */
static void
pool_tell_trouble(struct pool_profile *profile)
{
	if (profile->failed_starts >= FAILURES_TELL)
		pool_fail_waiting(profile, profile->trouble);
}

static void
back_off(struct pool_profile *profile, const char *text)
{
	uint32_t ms = BACKOFF_FIRST_MS
		      << (profile->failed_starts < 10 ? profile->failed_starts : 10);
	struct log_quoted quoted;

	profile->failed_starts++;
	profile->failed_ms = clock_ms();
	snprintf(profile->trouble, sizeof(profile->trouble), "%s", text);
	log_line(LOG_WARNING, "worker-failed", "profile=%s failures=%u text=%s",
		 profile->engine->config->profile[profile->index].name,
		 profile->failed_starts, log_quote(&quoted, text, strlen(text)));
	arm_retry(profile, ms < BACKOFF_MOST_MS ? ms : BACKOFF_MOST_MS);
	pool_tell_trouble(profile);
}

static void
end_spent(struct pool *pool)
{
	while (!TAILQ_EMPTY(&pool->spent))
		worker_end(TAILQ_FIRST(&pool->spent));
}

/* Makes room for a waiting call; as a last resort it ends the warm worker that was unused for
 * longest. */
static void
pool_make_room(struct engine *engine)
{
	struct pool *pool = engine->pool;
	struct worker *w = TAILQ_FIRST(&pool->age);

	if (pool->n_spent > 0)
		end_spent(pool);
	else if (pool->n_ending < ENDING_MOST && pool->hooks->make_room(engine))
		return;
	else if (w != NULL && pool->n_ending < ENDING_MOST) {
		/* The target is lowered, or the share would replace the worker at once. */
		if (w->share->target > 0)
			w->share->target--;
		worker_end(w);
	}
}

/* ---- zygotes of tenants' own ---- */

static int profile_init(struct engine *engine, struct pool_profile *profile, unsigned int kind);

static void
free_own(struct pool_profile *own)
{
	LIST_REMOVE(own, link);
	own->engine->pool->n_own--;
	event_del(&own->retry);
	zygote_free(own->zygote);
	free(own);
}

static bool
is_busy(const struct pool_profile *own)
{
	const struct sched_queue *queue = &own->share->tenant->queue;

	return queue->n_running > 0 || queue->n_waiting > 0 || own->share->n_opening > 0;
}

/* May this zygote be given up now? A zygote that is not busy, but still makes workers, may be given
 * up when they are made. */
static bool
is_idle(const struct pool_profile *own)
{
	return !is_busy(own) && own->share->n_starting == 0 && !zygote_owes(own->zygote);
}

/* Are the tenants of all own zygotes busy? A zygote that is stopping counts as not busy. */
static bool
are_all_busy(const struct pool *pool)
{
	const struct pool_profile *own;

	LIST_FOREACH(own, &pool->own, link)
		if (own->share == NULL || !is_busy(own))
			return false;
	return true;
}

static bool
is_one_stopping(const struct pool *pool)
{
	const struct pool_profile *own;

	LIST_FOREACH(own, &pool->own, link)
		if (own->share == NULL)
			return true;
	return false;
}

/* The idle zygote whose tenant has been idle for longest; NULL: none is idle. */
static struct pool_profile *
longest_idle(const struct pool *pool)
{
	struct pool_profile *own, *found = NULL;

	LIST_FOREACH(own, &pool->own, link)
		if (own->share != NULL && is_idle(own) &&
		    (found == NULL ||
		     own->share->tenant->active_ms < found->share->tenant->active_ms))
			found = own;
	return found;
}

bool
pool_may_serve(const struct share *share)
{
	const struct engine *engine = share->tenant->engine;
	const struct pool *pool = engine->pool;

	return share->profile->is_own ||
	       !engine->config->profile[share->profile->index].zygote_per_tenant ||
	       pool->n_own < engine->config->pool.tenant_zygotes_max ||
	       !are_all_busy(pool);
}

/* Separates a share from its own zygote: from now on it waits in the profile's ring. */
static void
pool_detach(struct pool_profile *own)
{
	struct share *share = own->share;

	for (int class = 0; class < SCHED_CLASS_COUNT; class++)
		sched_ring_want(&own->ring, &share->entity, (enum sched_class)class, false);
	share->profile = &own->engine->pool->profile[own->kind];
	own->share = NULL;
	event_del(&own->retry);
}

void
pool_give_zygote_up(struct share *share)
{
	struct pool_profile *own = share->profile;

	if (!own->is_own)
		return;
	share_cool(share);
	pool_detach(own);
	/* on_stopped frees own, now or when the process is reaped. */
	zygote_stop(own->zygote);
}

void
pool_rest_zygote(struct share *share)
{
	if (share->profile->is_own && is_idle(share->profile))
		pool_give_zygote_up(share);
}

/* Starts a zygote for the share. 0 or -errno; -EAGAIN: there are as many own zygotes as allowed. */
static int
take_own(struct share *share)
{
	struct pool_profile *shared = share->profile, *own;
	struct engine *engine = shared->engine;
	struct pool *pool = engine->pool;
	int r;

	if (pool->n_own >= engine->config->pool.tenant_zygotes_max)
		return -EAGAIN;
	own = calloc(1, sizeof(*own));
	if (own == NULL)
		return -ENOMEM;
	r = profile_init(engine, own, shared->kind);
	if (r < 0) {
		free(own);
		return r;
	}
	for (int class = 0; class < SCHED_CLASS_COUNT; class++)
		sched_ring_want(&shared->ring, &share->entity, (enum sched_class)class, false);
	own->is_own = true;
	own->share = share;
	LIST_INSERT_HEAD(&pool->own, own, link);
	pool->n_own++;
	share->profile = own;
	share_update(share);
	return 0;
}

/* ---- making workers ---- */

static bool
may_warm(const struct engine *engine)
{
	const struct pool *pool = engine->pool;

	return pool->n_workers < engine->config->pool.workers_max &&
	       pool->n_warm + pool->n_starting < engine->config->pool.warm_max;
}

/* Ends one stale worker, to make room for its successor. Usually the successor is made first; this
 * is for bounds that leave no room for it. One worker at a time is ended. */
static void
end_one_stale(struct pool *pool)
{
	struct worker *w;

	if (pool->n_ending > 0)
		return;
	TAILQ_FOREACH(w, &pool->age, age_link)
		if (w->is_stale) {
			worker_end(w);
			return;
		}
}

/* May the tenant have one more worker, of those that are not warm for somebody? A share of warm
 * workers counts as its tenant's, because it is used without asking again. */
static bool
has_share(const struct pool *pool, const struct tenant *tenant)
{
	return fair_take_last(tenant->engine->config->pool.workers_max,
			      pool->n_workers - pool->n_warm, tenant->workers, SIZE_MAX) != -EDQUOT;
}

bool
pool_is_taken(const struct tenant *tenant)
{
	const struct pool *pool = tenant->engine->pool;

	return pool->n_workers - pool->n_warm >= tenant->engine->config->pool.workers_max ||
	       !has_share(pool, tenant);
}

/* The next entity of a class whose tenant has not got its share. NULL: there is none. */
static struct sched_entity *
next_in_share(struct pool *pool, struct pool_profile *profile, enum sched_class class)
{
	struct sched_entity *entity, *first = NULL;

	while ((entity = sched_ring_next(&profile->ring, class)) != NULL && entity != first) {
		if (has_share(pool, share_of(entity)->tenant))
			return entity;
		if (first == NULL)
			first = entity;
	}
	return NULL;
}

/* A share whose next call would find no warm worker, while the tenant of entity, whose calls wait,
 * has workers already. Such shares alternate with waiting calls: otherwise a tenant with a long
 * queue would leave no warm workers to others. NULL: there is none, or it is not its turn.
 */
static struct sched_entity *
next_without(struct engine *engine, struct pool_profile *profile,
	     const struct sched_entity *entity)
{
	struct sched_entity *other;

	profile->alternates = !profile->alternates;
	if (profile->alternates || share_of(entity)->tenant->workers == 0 || !may_warm(engine))
		return NULL;
	other = next_in_share(engine->pool, profile, SCHED_WARMING);
	return other != NULL && share_of(other)->n_warm + share_of(other)->n_starting == 0 ? other
											   : NULL;
}

static void
pump_profile(struct engine *engine, struct pool_profile *profile, bool warming)
{
	struct pool *pool = engine->pool;
	struct sched_entity *entity, *other;
	const char *step;
	char text[128];
	int r;

	if (evtimer_pending(&profile->retry, NULL) &&
	    sched_ring_wants(&profile->ring, SCHED_WAITING)) {
		uint64_t now_ms = clock_ms(), due_ms = profile->failed_ms + BACKOFF_CALL_MS;

		/* Brings the next try forward, so that a waiting call soon gets a worker or an
		 * error. */
		if (profile->retry_ms > due_ms)
			arm_retry(profile, due_ms > now_ms ? (uint32_t)(due_ms - now_ms) : 0);
	}
	while (zygote_room(profile->zygote) > 0 &&
	       !evtimer_pending(&profile->retry, NULL)) {
		entity = next_in_share(pool, profile, SCHED_WAITING);
		if (entity != NULL &&
		    pool->n_workers >= engine->config->pool.workers_max) {
			pool_make_room(engine);
			return;
		}
		if (entity != NULL && (other = next_without(engine, profile, entity)) != NULL)
			entity = other;
		if (entity == NULL && warming && !may_warm(engine) &&
		    sched_ring_wants(&profile->ring, SCHED_WARMING))
			end_one_stale(pool);
		if (entity == NULL && warming && may_warm(engine))
			entity = next_in_share(pool, profile, SCHED_WARMING);
		if (entity == NULL)
			return;
		r = worker_start(engine, share_of(entity), &step);
		if (r < 0) {
			snprintf(text, sizeof(text), "cannot prepare a worker: cannot %s: %s",
				 step, strerror(-r));
			back_off(profile, text);
		}
	}
}

/* Gives each share that wants workers a zygote of its own, which then makes them. If there are as
 * many zygotes as allowed, one of an idle tenant is ended, but only for a waiting call, not to keep
 * workers warm. The call waits for that. It is refused if all tenants have become busy meanwhile.
 */
static void
hand_out_zygotes(struct pool_profile *profile, bool warming)
{
	struct pool *pool = profile->engine->pool;
	struct sched_entity *entity;
	bool waits;

	for (;;) {
		entity = sched_ring_next(&profile->ring, SCHED_WAITING);
		waits = entity != NULL;
		if (entity == NULL && warming)
			entity = sched_ring_next(&profile->ring, SCHED_WARMING);
		if (entity == NULL)
			return;
		if (take_own(share_of(entity)) == 0)
			continue;
		if (waits && !are_all_busy(pool)) {
			struct pool_profile *idle = is_one_stopping(pool) ? NULL
						    : longest_idle(pool);

			/* Ends the zygote of an idle tenant. The next zygote starts when that
			 * process is gone, so that the bound holds for the processes of the
			 * launcher, too. */
			if (idle != NULL)
				pool_give_zygote_up(idle->share);
			return;
		}
		share_of(entity)->target = 0;
		if (waits)
			pool->hooks->refuse(share_of(entity), NO_ZYGOTE);
		share_update(share_of(entity));
	}
}

static void
pump_all(struct engine *engine, bool warming)
{
	struct pool *pool = engine->pool;
	struct pool_profile *own;

	for (unsigned int i = 0; i < pool->n_kinds; i++) {
		if (engine->config->profile[pool->profile[i].index].zygote_per_tenant)
			hand_out_zygotes(&pool->profile[i], warming);
		else
			pump_profile(engine, &pool->profile[i], warming);
	}
	LIST_FOREACH(own, &pool->own, link)
		if (own->share != NULL)
			pump_profile(engine, own, warming);
}

static void
top_up(struct engine *engine)
{
	if (engine->shutting_down)
		return;
	pump_all(engine, true);
	engine->pool->hooks->on_quiet(engine);
}

static void
await_quiet(struct engine *engine)
{
	static const struct timeval moment = { 0, QUIET_US };

	evtimer_add(&engine->pool->quiet, &moment);
}

void
pool_disturb(struct engine *engine)
{
	if (!evtimer_pending(&engine->pool->quiet, NULL))
		await_quiet(engine);
}

void
pool_pump(struct engine *engine)
{
	bool wait = evtimer_pending(&engine->pool->quiet, NULL);

	if (engine->n_running == 0 && !wait && !pool_somebody_waits(engine)) {
		top_up(engine);
		return;
	}
	if (engine->shutting_down)
		return;
	pump_all(engine, false);
	if (!wait)
		await_quiet(engine);
}

static void
pool_on_quiet(evutil_socket_t, short, void *arg)
{
	struct engine *engine = arg;

	end_spent(engine->pool);
	top_up(engine);
}

/* Does a call wait for a worker that its tenant may have? A tenant that is passed over has workers
 * already, so there are no more of them than workers. */
static bool
one_waits(const struct pool *pool, const struct sched_ring *ring)
{
	struct sched_entity *entity;

	TAILQ_FOREACH(entity, &ring->list[SCHED_WAITING], link[SCHED_WAITING])
		if (has_share(pool, share_of(entity)->tenant))
			return true;
	return false;
}

bool
pool_somebody_waits(const struct engine *engine)
{
	const struct pool *pool = engine->pool;
	const struct pool_profile *own;

	LIST_FOREACH(own, &pool->own, link)
		if (one_waits(pool, &own->ring))
			return true;
	for (unsigned int i = 0; i < pool->n_kinds; i++)
		if (one_waits(pool, &pool->profile[i].ring))
			return true;
	return false;
}

void
pool_settle(struct engine *engine, const struct share *share)
{
	struct pool *pool = engine->pool;

	if (engine->shutting_down || pool->n_spent >= SPENT_MOST ||
	    share->n_warm + share->n_starting == 0 ||
	    pool_somebody_waits(engine)) {
		end_spent(pool);
		top_up(engine);
	} else {
		uint64_t now = clock_us();

		if (pool->n_spent == 1)
			pool->spent_us = now;
		/* Each call in a row of short calls postpones the end of spent workers, but not
		 * beyond SPENT_US: processes that scripts left behind run until then. */
		if (now - pool->spent_us < SPENT_US || !evtimer_pending(&pool->quiet, NULL))
			await_quiet(engine);
	}
}

static void
pool_on_retry(evutil_socket_t, short, void *arg)
{
	struct pool_profile *profile = arg;

	pool_pump(profile->engine);
}

/* ---- workers ---- */

static struct pool_workers *
pool_bucket(struct engine *engine, uint64_t serial)
{
	return &engine->pool->by_serial[serial % POOL_BUCKETS];
}

struct worker *
pool_find(struct engine *engine, uint64_t serial)
{
	struct worker *w;

	LIST_FOREACH(w, pool_bucket(engine, serial), all_link)
		if (w->serial == serial)
			return w;
	return NULL;
}

static void
on_made(struct worker *w)
{
	struct pool *pool = w->engine->pool;

	LIST_INSERT_HEAD(pool_bucket(w->engine, w->serial), w, all_link);
	pool->n_workers++;
	w->share->tenant->workers++;
	if (w->state != WORKER_STARTING)
		return;
	pool->n_starting++;
	w->share->n_starting++;
	share_update(w->share);
}

static void
on_state(struct worker *w, int from, int to)
{
	struct pool *pool = w->engine->pool;
	struct share *share = w->share;

	if (w->is_stale && to != WORKER_WARM) {
		w->is_stale = false;
		share->n_stale--;
	}
	if (from == WORKER_STARTING) {
		pool->n_starting--;
		share->n_starting--;
	} else if (from == WORKER_WARM) {
		TAILQ_REMOVE(&share->warm, w, warm_link);
		TAILQ_REMOVE(&pool->age, w, age_link);
		pool->n_warm--;
		share->n_warm--;
		if (share->n_warm < share->least_warm)
			share->least_warm = share->n_warm;
	} else if (from == WORKER_SPENT) {
		TAILQ_REMOVE(&pool->spent, w, age_link);
		pool->n_spent--;
	}
	if (to == WORKER_WARM) {
		TAILQ_INSERT_TAIL(&share->warm, w, warm_link);
		TAILQ_INSERT_TAIL(&pool->age, w, age_link);
		pool->n_warm++;
		share->n_warm++;
	} else if (to == WORKER_SPENT) {
		TAILQ_INSERT_TAIL(&pool->spent, w, age_link);
		pool->n_spent++;
	} else if (to == WORKER_ENDING) {
		pool->n_ending++;
	}
	share_update(share);
}

static void
on_warm(struct worker *w)
{
	struct engine *engine = w->engine;
	struct pool_profile *profile = w->share->profile;

	profile->failed_starts = 0;
	if (engine->shutting_down)
		worker_end(w);
	else {
		pool_dispatch(w->share->tenant, profile->kind);
		share_replace(w->share);
	}
}

static void
pool_on_failed(struct worker *w, const char *text)
{
	struct pool_profile *profile = w->share->profile;

	/* If the zygote has died, the failure does not count as one of workers. */
	if (w->engine->shutting_down || !zygote_is_alive(profile->zygote, w->generation))
		return;
	/* Workers that were started together fail together when the machine is busy: this counts as
	 * one failure. */
	if (w->started_ms > profile->failed_ms) {
		back_off(profile, text);
		return;
	}
	if (!evtimer_pending(&profile->retry, NULL))
		arm_retry(profile, BACKOFF_FIRST_MS);
	pool_tell_trouble(profile);
}

static void
pool_on_gone(struct worker *w)
{
	struct pool *pool = w->engine->pool;

	LIST_REMOVE(w, all_link);
	pool->n_workers--;
	pool->n_ending--;
	share_free_network(w->share, w->generation, w->serial);
	w->share->tenant->workers--;
	share_update(w->share);
}

static void
on_freed(struct engine *engine)
{
	pool_pump(engine);
	pool_tell_change(engine);
}

static const struct worker_owner owner = {
	.on_made = on_made,
	.on_state = on_state,
	.on_warm = on_warm,
	.on_failed = pool_on_failed,
	.on_gone = pool_on_gone,
	.on_freed = on_freed,
};

/* ---- zygotes ---- */

static void
pool_on_zygote_ready(void *arg)
{
	struct pool_profile *profile = arg;

	if (profile->kind == 0 && !profile->is_own)
		profile->engine->pool->hooks->on_ready(profile->engine, 0, "ready");
	pool_pump(profile->engine);
}

static void
pool_on_zygote_failed(void *arg, int error, const char *text)
{
	struct pool_profile *profile = arg;

	if (profile->kind == 0 && !profile->is_own)
		profile->engine->pool->hooks->on_ready(profile->engine, error, text);
	pool_fail_waiting(profile, text);
	if (is_learned(profile))
		profile->engine->pool->hooks->on_unlearned(profile->engine, profile->index);
}

/* Running workers continue: a worker needs its zygote only to be made. Warm workers are
 * replaced, because the zygote may have been broken when they were cloned. */
static void
on_zygote_lost(void *arg, uint64_t generation)
{
	struct pool_profile *profile = arg;
	struct engine *engine = profile->engine;
	struct worker *w, *next;

	engine->pool->hooks->adopt_strays(engine);
	for (unsigned int i = 0; i < POOL_BUCKETS; i++)
		for (w = LIST_FIRST(&engine->pool->by_serial[i]); w != NULL; w = next) {
			next = LIST_NEXT(w, all_link);
			if (w->share->profile != profile || w->generation != generation)
				continue;
			if (w->state == WORKER_WARM || w->state == WORKER_STARTING)
				worker_end(w);
			if (w->pidfd < 0)
				worker_on_orphaned(w);
		}
	if (is_learned(profile)) {
		pool_fail_waiting(profile, "");
		pool_pump(engine);
	}
}

/* Marks the workers of earlier processes as stale. They serve until new ones have been made, unless
 * the profile has changed. */
static void
on_zygote_renewed(void *arg)
{
	struct pool_profile *profile = arg;
	struct engine *engine = profile->engine;
	struct worker *w;

	for (unsigned int i = 0; i < POOL_BUCKETS; i++)
		LIST_FOREACH(w, &engine->pool->by_serial[i], all_link) {
			if (w->share->profile != profile || w->is_stale ||
			    (w->state != WORKER_WARM && w->state != WORKER_STARTING))
				continue;
			w->is_stale = true;
			w->share->n_stale++;
			share_update(w->share);
			if (profile->has_changed)
				worker_end(w);
		}
	profile->has_changed = false;
}

static void
on_zygote_spawned(void *arg, uint64_t serial, pid_t pid, int pidfd)
{
	struct pool_profile *profile = arg;
	struct worker *w = pool_find(profile->engine, serial);

	if (w != NULL && w->share->profile == profile)
		worker_on_spawned(w, pid, pidfd);
	else
		close(pidfd);
	pool_pump(profile->engine);
}

static void
on_zygote_spawn_failed(void *arg, uint64_t serial, int error, const char *text)
{
	struct pool_profile *profile = arg;
	struct worker *w = pool_find(profile->engine, serial);

	(void)error;		/* text names it */
	if (w != NULL && w->share->profile == profile)
		worker_on_spawn_failed(w, text);
	pool_pump(profile->engine);
}

static void
on_zygote_stopped(void *arg)
{
	struct pool_profile *profile = arg;
	struct engine *engine = profile->engine;

	engine->pool->zygotes_running--;
	/* A zygote that was given up had answered everything, so it left no stray workers. */
	if (!profile->is_own || profile->share != NULL)
		engine->pool->hooks->adopt_strays(engine);
	if (profile->share != NULL)
		pool_detach(profile);
	if (profile->is_own)
		free_own(profile);
	pool_pump(engine);
	pool_tell_change(engine);
}

static int
profile_init(struct engine *engine, struct pool_profile *profile, unsigned int kind)
{
	const unsigned int index = kind / 2;
	struct zygote_options options = {
		.base = engine->base,
		.launcher = engine->options.launcher,
		.profile = &engine->config->profile[index],
		.index = index,
		.rests = kind == POOL_LEARNED(index),
		.early = engine->options.early && kind == POOL_USUAL(index),
		.renew_seconds = engine->config->pool.zygote_seconds,
		.watcher = {
			.on_ready = pool_on_zygote_ready,
			.on_failed = pool_on_zygote_failed,
			.on_lost = on_zygote_lost,
			.on_renewed = on_zygote_renewed,
			.on_spawned = on_zygote_spawned,
			.on_spawn_failed = on_zygote_spawn_failed,
			.on_stopped = on_zygote_stopped,
			.arg = profile,
		},
	};
	int r;

	profile->engine = engine;
	profile->index = index;
	profile->kind = kind;
	sched_ring_init(&profile->ring);
	evtimer_assign(&profile->retry, engine->base, pool_on_retry, profile);
	r = zygote_new(&options, &profile->zygote);
	if (r == 0)
		engine->pool->zygotes_running++;
	return r;
}

int
pool_add_profile(struct engine *engine)
{
	struct pool *pool = engine->pool;
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		r = profile_init(engine, &pool->profile[pool->n_kinds], pool->n_kinds);
		pool->n_kinds += r == 0;
	}
	return r;
}

int
pool_init(struct engine *engine, const struct pool_hooks *hooks)
{
	struct pool *pool = xcalloc(1, sizeof(*pool));
	int r = 0;

	assert(POOL_USUAL(engine->config->n_profiles) <= SCHED_CELLS);
	engine->pool = pool;
	engine->owner = &owner;
	pool->hooks = hooks;
	TAILQ_INIT(&pool->age);
	TAILQ_INIT(&pool->spent);
	evtimer_assign(&pool->quiet, engine->base, pool_on_quiet, engine);
	pool->by_serial = calloc(POOL_BUCKETS, sizeof(*pool->by_serial));
	pool->profile = calloc(POOL_KINDS_MAX, sizeof(*pool->profile));
	if (pool->by_serial == NULL || pool->profile == NULL)
		return -ENOMEM;
	while (pool->n_kinds < POOL_USUAL(engine->config->n_profiles) && r == 0)
		r = pool_add_profile(engine);
	return r;
}

static void
pool_renew_zygotes_of(struct engine *engine, unsigned int profile)
{
	struct pool *pool = engine->pool;
	struct pool_profile *own;

	if (engine->shutting_down)
		return;
	zygote_renew(pool->profile[POOL_USUAL(profile)].zygote);
	zygote_renew(pool->profile[POOL_LEARNED(profile)].zygote);
	LIST_FOREACH(own, &pool->own, link)
		if (own->share != NULL && own->index == profile)
			zygote_renew(own->zygote);
}

void
pool_renew_zygotes(struct engine *engine)
{
	for (unsigned int i = 0; POOL_USUAL(i) < engine->pool->n_kinds; i++)
		pool_renew_zygotes_of(engine, i);
}

void
pool_change_profile(struct engine *engine, unsigned int profile)
{
	struct pool_profile *own;

	engine->pool->profile[POOL_USUAL(profile)].has_changed = true;
	engine->pool->profile[POOL_LEARNED(profile)].has_changed = true;
	LIST_FOREACH(own, &engine->pool->own, link)
		if (own->index == profile)
			own->has_changed = true;
	pool_renew_zygotes_of(engine, profile);
}

void
pool_stop(struct engine *engine)
{
	struct pool *pool = engine->pool;
	struct pool_profile *own, *next_own;
	struct worker *w, *next;

	for (unsigned int i = 0; i < POOL_BUCKETS; i++)
		for (w = LIST_FIRST(&pool->by_serial[i]); w != NULL; w = next) {
			next = LIST_NEXT(w, all_link);
			if (engine->keeps_sessions && pool->hooks->may_stay(w))
				continue;
			worker_end(w);
			/* The zygote is about to end, too, and will not name this worker. */
			if (w->pidfd < 0)
				worker_on_orphaned(w);
		}
	for (unsigned int i = 0; i < pool->n_kinds; i++) {
		event_del(&pool->profile[i].retry);
		zygote_stop(pool->profile[i].zygote);
	}
	for (own = LIST_FIRST(&pool->own); own != NULL; own = next_own) {
		next_own = LIST_NEXT(own, link);
		event_del(&own->retry);
		if (own->share != NULL)		/* NULL: it is being stopped already */
			zygote_stop(own->zygote);
	}
}

bool
pool_is_empty(const struct engine *engine)
{
	const struct pool *pool = engine->pool;
	unsigned int staying = engine->keeps_sessions ? pool->hooks->count_staying(engine) : 0;

	return pool->n_workers == staying && pool->zygotes_running == 0 &&
	       LIST_EMPTY(&pool->strays);
}

void
pool_done(struct engine *engine)
{
	struct pool *pool = engine->pool;
	struct pool_profile *own;
	struct worker *w;

	if (pool == NULL)
		return;
	event_del(&pool->quiet);
	for (unsigned int i = 0; i < pool->n_kinds; i++) {
		event_del(&pool->profile[i].retry);
		zygote_free(pool->profile[i].zygote);
	}
	while ((own = LIST_FIRST(&pool->own)) != NULL)
		free_own(own);
	for (unsigned int i = 0; pool->by_serial != NULL && i < POOL_BUCKETS; i++)
		while ((w = LIST_FIRST(&pool->by_serial[i])) != NULL) {
			LIST_REMOVE(w, all_link);
			worker_free(w);
		}
	pool->hooks->forget_strays(engine);
	free(pool->by_serial);
	free(pool->profile);
	free(give_ptr(engine->pool));
}
