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

#define POOL_BUCKETS 256

struct engine;
struct share;
struct tenant;
struct worker;
struct worker_stray;
struct zygote;

/* A profile in the pool: its zygote, and the shares that want workers of it. With zygote_per_tenant
 * there is one more of these for each share that has a zygote of its own. Then the profile's own
 * zygote makes no workers: it only shows that zygotes of the profile can be started. Shares that
 * want workers and have no zygote wait in the profile's ring. */
struct pool_profile {
	LIST_ENTRY(pool_profile) link;	/* a share's own: of the pool */
	struct share *share;		/* the share that owns it; NULL: shared, or given up */
	bool is_own;
	struct engine *engine;
	unsigned int index;		/* in the configuration; the kind in scheduler.h */
	struct zygote *zygote;
	struct sched_ring ring;		/* of shares */
	struct event retry;		/* after failed starts of workers */
	unsigned int failed_starts;
	uint64_t failed_ms, retry_ms;	/* time of the last failure, and of the next try */
	char trouble[512];		/* why it failed */
};

/* Calls to the modules above; given by engine.c. */
struct pool_hooks {
	/* The zygote of the default profile is ready, or failed: -errno and a sentence. */
	void (*on_ready)(struct engine *engine, int error, const char *text);
	/* A worker or a zygote is gone, or a session is at rest: a shutdown may be complete. */
	void (*on_change)(struct engine *engine);
	/* As dispatch_workers (dispatch.h). */
	void (*dispatch)(struct tenant *tenant, unsigned int profile);
	/* As dispatch_cells. */
	void (*dispatch_cells)(struct tenant *tenant);
	/* As dispatch_refuse. */
	void (*refuse)(struct share *share, const char *text);
	/* In a shutdown that keeps sessions: may this worker stay, and how many workers stay? */
	bool (*may_stay)(const struct worker *worker);
	unsigned int (*count_staying)(const struct engine *engine);
};

struct pool {
	const struct pool_hooks *hooks;
	struct pool_profile *profile;
	unsigned int n_profiles;
	LIST_HEAD(, pool_profile) own;	/* of shares; freed when their zygotes have stopped */
	unsigned int n_own;
	unsigned int zygotes_running;	/* not yet stopped in a shutdown */
	LIST_HEAD(pool_workers, worker) *by_serial;
	TAILQ_HEAD(pool_ages, worker) age;	/* warm ones */
	struct pool_ages spent;			/* their execution was answered; they are not yet
						 * ended */
	struct event quiet;
	uint64_t spent_us;		/* when the first of spent became so */
	unsigned int n_workers, n_warm, n_starting, n_spent, n_ending;
	LIST_HEAD(, worker_stray) strays;
	bool has_told_host_name;	/* the log has a line that workers have the host's name */
};

/* Starts a zygote for every profile. hooks: static. 0 or -errno. */
int pool_init(struct engine *engine, const struct pool_hooks *hooks);
void pool_done(struct engine *engine);	/* kills at once */

/* Ends warm workers and stops zygotes. pool_is_empty says whether that is complete. */
void pool_stop(struct engine *engine);
bool pool_is_empty(const struct engine *engine);

/* The host has changed: starts a successor for every zygote. */
void pool_renew_zygotes(struct engine *engine);

/* Asks zygotes for workers, within the bounds: at once for executions that wait; for workers
 * that are only kept warm after a pause while something runs, because making them would slow
 * that down. */
void pool_pump(struct engine *engine);

/* An execution has been answered and its worker is spent. To end that worker and make another takes
 * longer than a small script runs, and would delay the client's next call. So both wait for a quiet
 * moment, unless an execution waits or the share has few workers. */
void pool_settle(struct engine *engine, const struct share *share);

/* Has the share a zygote, or can it get one? False: the bound of zygotes is reached, and their
 * tenants are all busy. */
bool pool_may_serve(const struct share *share);

/* The share's tenant is idle: ends the share's own zygote, if it has answered everything. */
void pool_rest_zygote(struct share *share);

/* The share's tenant is about to be freed, without workers. */
void pool_give_zygote_up(struct share *share);

/* Call the hooks. */
void pool_dispatch(struct tenant *tenant, unsigned int profile);
void pool_dispatch_cells(struct tenant *tenant);
void pool_tell_change(struct engine *engine);

/* The worker of that serial, or NULL. */
struct worker *pool_find(struct engine *engine, uint64_t serial);

#endif
