/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Gives warm workers to waiting executions. */
#include "engine/dispatch.h"

#include <errno.h>
#include <string.h>

#include "engine/execution_parts.h"
#include "engine/pool.h"
#include "engine/ready.h"
#include "engine/repl_parts.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/worker.h"

/* Runs what waits, and what a ready worker fits. */
static void
dispatch_ready(struct tenant *tenant, unsigned int kind)
{
	struct sched_item *item, *next;
	struct worker *w;
	bool taken;

	for (item = TAILQ_FIRST(&tenant->queue.items[kind]); item != NULL && !item->held;
	     item = next) {
		next = TAILQ_NEXT(item, link);
		w = tenant->queue.n_running < tenant->queue.running_max
			    ? ready_take(execution_of(item)) : NULL;
		if (w == NULL)
			continue;
		taken = sched_queue_take_item(&tenant->queue, item) == 0;
		if (taken && execution_lease(execution_of(item), w) == 0)
			continue;
		worker_end(w);
		if (taken)
			sched_queue_put_back(&tenant->queue, item);
	}
}

void
dispatch_workers(struct tenant *tenant, unsigned int kind)
{
	struct share *share = &tenant->share[kind];
	struct sched_item *item;
	struct worker *w;

	dispatch_ready(tenant, kind);
	while ((w = share_warm_worker(share)) != NULL &&
	       (item = sched_queue_take(&tenant->queue, kind)) != NULL) {
		struct execution *e = execution_of(item);

		int r = execution_lease(e, w);

		if (r == 0) {
			ready_miss(e);
			continue;
		}
		sched_queue_put_back(&tenant->queue, item);
		if (execution_lacks(r))
			execution_refuse(e, strerror(-r));
		else if (r != -EAGAIN)
			execution_fail(e, r == -ENOTCONN
					  ? "there is no keeper of its packages or files now"
					  : strerror(-r));
	}
	while ((w = share_warm_worker(share)) != NULL && !TAILQ_EMPTY(&share->opening))
		repl_lease(TAILQ_FIRST(&share->opening), w);
	share_update(share);
	if (sched_queue_useful(&tenant->queue, kind) > 0) {
		ready_yield(tenant->engine);
		pool_disturb(tenant->engine);	/* its record is being written, for example */
	}
	pool_pump(tenant->engine);
}

void
dispatch_cells(struct tenant *tenant)
{
	struct sched_queue *queue = &tenant->queue;
	struct sched_item *item = TAILQ_FIRST(&queue->items[SCHED_CELLS]);

	while (item != NULL) {
		unsigned int before = queue->n_waiting;

		repl_turn(execution_of(item)->repl);
		/* A cell that cannot be started ends its session, and takes the cells of branches
		 * out of the queue. */
		item = queue->n_waiting == before ? TAILQ_NEXT(item, link)
						  : TAILQ_FIRST(&queue->items[SCHED_CELLS]);
	}
}

void
dispatch_refuse(struct share *share, const char *text)
{
	struct sched_item *item;
	struct repl *repl;

	while ((item = TAILQ_FIRST(&share->tenant->queue.items[share->profile->kind])) != NULL)
		execution_fail(execution_of(item), text);
	while ((repl = TAILQ_FIRST(&share->opening)) != NULL)
		repl_on_worker_gone(repl, text);
}

void
dispatch_fall_back(struct share *share)
{
	struct tenant *tenant = share->tenant;
	struct share *usual = &tenant->share[POOL_USUAL(share->profile->index)];
	struct sched_item *item;
	struct repl *repl;

	while ((item = TAILQ_FIRST(&tenant->queue.items[share->profile->kind])) != NULL)
		sched_queue_move(&tenant->queue, item, usual->profile->kind);
	while ((repl = TAILQ_FIRST(&share->opening)) != NULL)
		repl_change_share(repl, usual);
	share_update(usual);
}
