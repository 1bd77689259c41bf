/* All workers, and the zygotes that make them: for tenants' shares (share.h), which together stay
 * below the pool's own bounds.
 */
#ifndef SUPERVISOR_POOL_H
#define SUPERVISOR_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <event2/event_struct.h>

#include "supervisor/engine/scheduler.h"

#define POOL_BUCKETS 256

struct engine;
struct share;
struct worker;
struct worker_stray;
struct zygote;

/* What the pool knows of a profile. */
struct pool_profile {
	struct engine *engine;
	unsigned int index;		/* in the configuration; the kind in scheduler.h */
	struct zygote *zygote;
	struct sched_ring ring;		/* of shares */
	struct event retry;		/* after failed starts of workers */
	unsigned int failed_starts;
	char trouble[512];		/* of the last of them */
};

struct pool {
	struct pool_profile *profile;
	unsigned int n_profiles;
	unsigned int zygotes_running;	/* not yet stopped in a shutdown */
	LIST_HEAD(pool_workers, worker) *by_serial;
	TAILQ_HEAD(pool_ages, worker) age;	/* warm ones */
	struct pool_ages spent;			/* answered, not yet ended */
	struct event quiet;
	uint64_t spent_us;		/* when the first of those that are spent was */
	unsigned int n_workers, n_warm, n_starting, n_spent, n_ending;
	LIST_HEAD(, worker_stray) strays;
};

/* Starts a zygote for every profile. 0 or -errno. */
int pool_init(struct engine *engine);
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
 * wait for a moment of quiet, unless somebody waits or the share runs low. */
void pool_settle(struct engine *engine, const struct share *share);

/* From supervisor/engine/worker.c. */
void pool_enter(struct worker *worker);			/* STARTING */
void pool_adopt(struct worker *worker);			/* LEASED, from elsewhere */
void pool_on_warm(struct worker *worker);
void pool_on_failed(struct worker *worker, int error, const char *text);
void pool_on_state(struct worker *worker, int from, int to);	/* enum worker_state */
void pool_on_gone(struct worker *worker);		/* forgets it */
struct worker *pool_find(struct engine *engine, uint64_t serial);

#endif
