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
struct tenant;
struct worker;
struct zygote;

/* Embedded in the tenant. */
struct share {
	struct tenant *tenant;
	struct pool_profile *profile;
	uint64_t number;		/* names the owner of its workers' networks; never used
					 * twice */
	struct sched_entity entity;
	TAILQ_HEAD(share_warm, worker) warm;	/* the one that has been warm for longest comes
						 * first */
	unsigned int n_warm, n_starting;
	unsigned int n_stale;		/* how many of these workers are to be replaced */
	TAILQ_HEAD(, repl) opening;	/* sessions that wait for a worker */
	unsigned int n_opening;
	unsigned int target;		/* 0: nothing is kept warm */
	bool keeps_networks;		/* the zygote may keep networks for it */
	unsigned int least_warm;	/* the least n_warm since the last share_shrink: this
					 * many workers were never needed */
};

void share_init(struct share *share, struct tenant *tenant, struct pool_profile *profile);

/* The zygote that makes its workers now: one of its own, or that of the profile. */
struct zygote *share_zygote(const struct share *share);

/* The worker that became warm last; it stays in state WARM. NULL: there is none. */
struct worker *share_warm_worker(struct share *share);

/* Raises the target. To be called when an execution has found no warm worker. */
void share_grow(struct share *share);

/* Computes how many workers the share needs. Called after every change that affects this. */
void share_update(struct share *share);

/* Ends warm workers of a replaced zygote, one for each new worker that has become warm. */
void share_replace(struct share *share);

/* Called each second: lowers the target if some workers were never needed. */
void share_shrink(struct share *share);

/* Ends all its warm workers, and drops the networks that are kept for it. */
void share_cool(struct share *share);

/* To be called when a worker of the share is reaped. Its network is kept for another worker, if the
 * share keeps workers warm; otherwise it is freed. */
void share_free_network(struct share *share, uint64_t generation, uint64_t worker);

#endif
