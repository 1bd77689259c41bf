/* All workers, and the zygotes that make them: for tenants' shares (share.h), which together stay
 * below the pool's own bounds.
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

/* What the pool knows of a profile: its zygote, and who wants workers of it. Where each tenant has
 * a zygote of its own (zygote_per_tenant), there is one of these for each such share too. The
 * profile's zygote makes no workers then; it shows that one can be started, and shares that want
 * workers and have no zygote wait in its ring for one. */
struct pool_profile {
	LIST_ENTRY(pool_profile) link;	/* a share's own: of the pool */
	struct share *share;		/* whose own it is; NULL: all shares', or given up */
	bool is_own;
	struct engine *engine;
	unsigned int index;		/* in the configuration; the kind in scheduler.h */
	struct zygote *zygote;
	struct sched_ring ring;		/* of shares */
	struct event retry;		/* after failed starts of workers */
	unsigned int failed_starts;
	uint64_t failed_ms, retry_ms;	/* when the last of them was, and the next try is */
	char trouble[512];		/* why it failed */
};

/* What the pool tells those above it; given by engine.c. */
struct pool_hooks {
	/* The zygote of the default profile is ready, or failed: -errno and a sentence. */
	void (*on_ready)(struct engine *engine, int error, const char *text);
	/* A worker or a zygote is gone, or a session is at rest: a shutdown may be complete. */
	void (*on_change)(struct engine *engine);
	/* Gives warm workers to what waits, then asks for what is still needed. */
	void (*dispatch)(struct tenant *tenant, unsigned int profile);
	/* Starts cells that wait for others of the tenant to end. */
	void (*dispatch_cells)(struct tenant *tenant);
	/* All that waits in the share has no worker to expect, for the reason in text. */
	void (*refuse)(struct share *share, const char *text);
	/* Of a shutdown that keeps sessions: may this worker stay, and how many do? */
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
	struct pool_ages spent;			/* answered, not yet ended */
	struct event quiet;
	uint64_t spent_us;		/* when the first of those that are spent was */
	unsigned int n_workers, n_warm, n_starting, n_spent, n_ending;
	LIST_HEAD(, worker_stray) strays;
	bool has_told_host_name;	/* that workers have the host's; said once */
};

/* Starts a zygote for every profile. hooks: static. 0 or -errno. */
int pool_init(struct engine *engine, const struct pool_hooks *hooks);
void pool_done(struct engine *engine);	/* kills at once */

/* Gives up warm workers and stops zygotes; pool_is_empty tells when it is over. */
void pool_stop(struct engine *engine);
bool pool_is_empty(const struct engine *engine);

/* Asks for workers as far as zygotes and bounds allow: at once for those who wait; for
 * what is only kept warm a moment later while something runs, since making workers
 * would slow down just that. */
void pool_pump(struct engine *engine);

/* An execution has been answered and its worker is spent. Ending that one and making another
 * takes longer than running a small script, and would hold up the client's next call: both
 * wait for a moment of quiet, unless an execution waits or the share runs low. */
void pool_settle(struct engine *engine, const struct share *share);

/* Whether the share has a zygote, or may get one: false where as many tenants as may have one are
 * busy. */
bool pool_may_serve(const struct share *share);

/* The share's tenant is idle: ends the zygote that it has of its own, if nothing is asked of it. */
void pool_rest_zygote(struct share *share);

/* The share's tenant is about to be freed, without workers. */
void pool_give_zygote_up(struct share *share);

/* By the hooks. */
void pool_dispatch(struct tenant *tenant, unsigned int profile);
void pool_dispatch_cells(struct tenant *tenant);
void pool_tell_change(struct engine *engine);

/* The worker of that serial, or NULL. */
struct worker *pool_find(struct engine *engine, uint64_t serial);

#endif
