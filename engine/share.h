/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's share of the pool for one profile: how many workers are kept warm for it. Its target
 * begins with the configured number, grows when an execution finds no warm worker, and shrinks when
 * some workers were never needed.
 */
#ifndef ENGINE_SHARE_H
#define ENGINE_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "engine/scheduler.h"

struct pool_profile;
struct repl;
struct tenant;
struct worker;

/* Embedded in the tenant. */
struct share {
	struct tenant *tenant;
	struct pool_profile *profile;
	uint64_t number;		/* never used twice: the owner of its workers' networks */
	struct sched_entity entity;
	TAILQ_HEAD(share_warm, worker) warm;	/* the one warm longest first */
	unsigned int n_warm, n_starting;
	unsigned int n_stale;		/* of these two: to be replaced */
	TAILQ_HEAD(, repl) opening;	/* sessions that wait for a worker */
	unsigned int n_opening;
	unsigned int target;		/* 0: nothing is kept warm */
	bool keeps_networks;		/* the zygote may have some for it */
	unsigned int least_warm;	/* since the last share_shrink: workers that were never
					 * needed */
};

void share_init(struct share *share, struct tenant *tenant, struct pool_profile *profile);

/* A warm worker, still in state WARM, or NULL. */
struct worker *share_warm_worker(struct share *share);

/* An execution found no warm worker: raises the target. */
void share_grow(struct share *share);

/* Computes how many workers the share needs. Called after every change that affects this. */
void share_update(struct share *share);

/* Ends warm workers of a replaced zygote, as new ones take their place. */
void share_replace(struct share *share);

/* Called each second: lowers the target if some workers were never needed. */
void share_shrink(struct share *share);

/* Ends all its warm workers, and drops the networks that are kept for it. */
void share_cool(struct share *share);

/* A worker of the share is reaped: its network is kept for another one, if the share keeps workers
 * warm. */
void share_free_network(struct share *share, uint64_t generation, uint64_t worker);

#endif
