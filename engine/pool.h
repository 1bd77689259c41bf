/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: all workers, and the zygotes that make them. Workers are made for tenants' shares
 * (share.h); all shares together stay within the pool's bounds.
 */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "engine/scheduler.h"
#include "policy/config.h"

#define POOL_BUCKETS 256

/* A profile has two kinds of workers: of its usual zygote, and of its learned one (learning.h). */
#define POOL_KINDS_MAX (2 * CONFIG_PROFILES_MAX)
#define POOL_USUAL(profile) (2 * (profile))
#define POOL_LEARNED(profile) (2 * (profile) + 1)

struct engine;
struct share;
struct tenant;
struct worker;
struct zygote;

/* A kind of workers of a profile in the pool: its zygote, and the shares that want workers of it.
 * With zygote_per_tenant there is another struct pool_profile for each share that has a zygote of
 * its own. Then the profile's shared zygote makes no workers: it only shows that zygotes of the
 * profile can be started. Shares that want workers and have no zygote wait in the shared profile's
 * ring. */
struct pool_profile {
	LIST_ENTRY(pool_profile) link;	/* is_own: in the pool's list */
	struct share *share;		/* is_own: the share that it belongs to; NULL: it was given
					 * up */
	bool is_own;			/* it was made for one share */
	bool has_changed;		/* in the configuration, since its zygote has started */
	struct engine *engine;
	unsigned int index;		/* its number in the configuration */
	unsigned int kind;		/* of its items in a tenant's queue (scheduler.h) */
	struct zygote *zygote;
	struct sched_ring ring;		/* of shares */
	bool alternates;		/* between waiting calls and shares without a worker */
	struct event retry;		/* after failed starts of workers */
	unsigned int failed_starts;
	uint64_t failed_ms, retry_ms;	/* time of the last failure, and of the next try */
	char trouble[512];		/* why the last start of a worker failed */
};

/* Callbacks to the modules that use the pool. engine.c fills them in. */
struct pool_hooks {
	/* The zygote of the default profile is ready, or failed: -errno and a sentence. */
	void (*on_ready)(struct engine *engine, int error, const char *text);
	/* A quiet moment. */
	void (*on_quiet)(struct engine *engine);
	/* As ready_make_room and ready_forget_of (ready.h). */
	bool (*make_room)(struct engine *engine);
	void (*forget_ready)(struct tenant *tenant);
	/* As learning_failed. */
	void (*on_unlearned)(struct engine *engine, unsigned int profile);
	/* A worker or a zygote is gone, or a session is at rest: a shutdown may be complete. */
	void (*on_change)(struct engine *engine);
	/* As dispatch_workers (dispatch.h). */
	void (*dispatch)(struct tenant *tenant, unsigned int kind);
	/* As dispatch_cells. */
	void (*start_cells)(struct tenant *tenant);
	/* As dispatch_refuse and dispatch_fall_back. */
	void (*refuse)(struct share *share, const char *text);
	void (*fall_back)(struct share *share);
	/* As worker_adopt_strays and worker_forget_strays (worker.h). */
	void (*adopt_strays)(struct engine *engine);
	void (*forget_strays)(struct engine *engine);
	/* In a shutdown that keeps sessions: may this worker stay, and how many workers stay? */
	bool (*may_stay)(const struct worker *worker);
	unsigned int (*count_staying)(const struct engine *engine);
};

struct pool {
	const struct pool_hooks *hooks;
	struct pool_profile *profile;	/* by kind */
	unsigned int n_kinds;
	LIST_HEAD(, pool_profile) own;	/* of shares; freed when their zygotes have stopped */
	unsigned int n_own;
	unsigned int zygotes_running;	/* not yet stopped in a shutdown */
	LIST_HEAD(pool_workers, worker) *by_serial;
	TAILQ_HEAD(pool_ages, worker) age;	/* warm ones */
	struct pool_ages spent;			/* workers whose execution was answered, and that
						 * are not ended yet */
	struct event quiet;		/* a quiet moment: see pool_settle */
	uint64_t spent_us;		/* when the first worker entered spent */
	unsigned int n_workers, n_warm, n_starting, n_spent, n_ending;
	LIST_HEAD(, worker_stray) strays;
	bool seeks_strays;		/* they are to be looked for again */
};

/* Starts a zygote for every profile. hooks: static. 0 or -errno. */
int pool_init(struct engine *engine, const struct pool_hooks *hooks);
void pool_done(struct engine *engine);	/* kills at once */

/* Ends warm workers and stops zygotes. pool_is_empty says whether that is complete. */
void pool_stop(struct engine *engine);
bool pool_is_empty(const struct engine *engine);

/* Starts a zygote for the next profile of the configuration, and prepares its learned one. 0 or
 * -errno. */
int pool_add_profile(struct engine *engine);

/* The host has changed: starts a successor for every zygote. */
void pool_renew_zygotes(struct engine *engine);

/* The profile has changed: starts successors for its zygotes. When a successor is ready, the warm
 * workers of its predecessor end, and those that are being made. */
void pool_change_profile(struct engine *engine, unsigned int profile);

/* Asks zygotes for workers, within the bounds. Workers for executions that wait are asked for at
 * once. Workers that are only kept warm are asked for after a pause if something runs or waits for
 * a worker, because making them would slow it down. */
void pool_pump(struct engine *engine);

/* The same pause begins now: a call has its worker, and is about to run. */
void pool_disturb(struct engine *engine);

/* To be called when an execution has been answered and its worker is spent. To end that worker and
 * make another takes longer than a small script runs, and would delay the client's next call. So
 * both wait for a quiet moment, unless an execution waits or the share has no other worker. */
void pool_settle(struct engine *engine, const struct share *share);

/* Do others run in all workers that this tenant may have? */
bool pool_is_taken(const struct tenant *tenant);

/* Does a call wait for a worker to be made? */
bool pool_somebody_waits(const struct engine *engine);

/* Does the share have a zygote, or can it get one? False: the bound of zygotes is reached, and the
 * tenants that have them are all busy. */
bool pool_may_serve(const struct share *share);

/* To be called when the share's tenant is idle: ends the share's own zygote, if the zygote has
 * answered everything. */
void pool_rest_zygote(struct share *share);

/* Ends the share's own zygote, and the share's warm workers. Also called before the tenant is
 * freed.
 */
void pool_give_zygote_up(struct share *share);

/* These call the hooks dispatch, start_cells and on_change. */
void pool_dispatch(struct tenant *tenant, unsigned int kind);
void pool_dispatch_cells(struct tenant *tenant);
void pool_tell_change(struct engine *engine);

/* The worker of that serial, or NULL. */
struct worker *pool_find(struct engine *engine, uint64_t serial);

#endif
