/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a tenant's share of the pool, but not the workers in it. */
#include "engine/share.h"

#include <string.h>

#include "engine/engine_parts.h"
#include "engine/pool.h"
#include "engine/tenant.h"
#include "engine/worker.h"
#include "engine/zygote.h"

void
share_init(struct share *share, struct tenant *tenant, struct pool_profile *profile)
{
	memset(share, 0, sizeof(*share));
	TAILQ_INIT(&share->warm);
	TAILQ_INIT(&share->opening);
	share->tenant = tenant;
	share->profile = profile;
	share->number = ++profile->engine->next_share;
}

struct zygote *
share_zygote(const struct share *share)
{
	return share->profile->zygote;
}

struct worker *
share_warm_worker(struct share *share)
{
	return TAILQ_LAST(&share->warm, share_warm);
}

void
share_update(struct share *share)
{
	unsigned int useful =
		sched_queue_useful(&share->tenant->queue, share->profile->kind) +
		share->n_opening;
	unsigned int have = share->n_warm + share->n_starting;

	sched_ring_want(&share->profile->ring, &share->entity, SCHED_WAITING,
			useful > have);
	sched_ring_want(&share->profile->ring, &share->entity, SCHED_WARMING,
			useful + share->target > have - share->n_stale);
}

static struct worker *
stale_worker(const struct share *share)
{
	struct worker *w;

	TAILQ_FOREACH(w, &share->warm, warm_link)
		if (w->is_stale)
			return w;
	return NULL;
}

void
share_replace(struct share *share)
{
	struct worker *w;

	while (share->n_stale > 0 && share->n_warm > share->target &&
	       (w = stale_worker(share)) != NULL)
		worker_end(w);
}

static unsigned int
target_most(const struct engine *engine)
{
	unsigned int running = engine->config->pool.tenant_running_max;
	unsigned int warm = engine->config->pool.warm_max;

	return running < warm ? running : warm;
}

void
share_grow(struct share *share)
{
	const struct engine *engine = share->profile->engine;
	unsigned int most = target_most(engine);

	if (share->target == 0)
		share->target = engine->config->pool.warm;
	else
		share->target++;
	if (share->target > most)
		share->target = most;
	share_update(share);
}

void
share_shrink(struct share *share)
{
	unsigned int floor = share->profile->engine->config->pool.warm;
	unsigned int spare = share->least_warm;

	if (share->target > floor && spare > 0) {
		spare = (spare + 1) / 2;
		share->target -=
			spare < share->target - floor ? spare : share->target - floor;
		while (share->n_warm > share->target)
			worker_end(TAILQ_FIRST(&share->warm));
	}
	share_replace(share);
	share->least_warm = share->n_warm;
	share_update(share);
}

void
share_cool(struct share *share)
{
	/* The networks are dropped even if the target is 0 already: pool_make_room lowers it. */
	if (share->keeps_networks)
		zygote_drop_networks(share_zygote(share), share->number);
	share->keeps_networks = false;
	share->target = 0;
	while (!TAILQ_EMPTY(&share->warm))
		worker_end(TAILQ_FIRST(&share->warm));
	share_update(share);
}

void
share_free_network(struct share *share, uint64_t generation, uint64_t worker)
{
	bool keep = share->target > 0;

	zygote_free_network(share_zygote(share), generation, worker, keep);
	share->keeps_networks |= keep;
}
