/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which tenants are served. There are two pure structures. The queue of a tenant has
 * its waiting work, with bounds for the number of items that wait and that run at the same time.
 * The ring has the tenants' shares that want a worker. Both do no I/O, read no clock, and do not
 * know workers or executions. Their links are embedded in the objects that they order.
 */
#ifndef ENGINE_SCHEDULER_H
#define ENGINE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* ---- the queue of one tenant ---- */

#define SCHED_CELLS 32		/* the kind of cells, which wait for their session's worker */
#define SCHED_KINDS_MAX 33	/* the kinds below it are kinds of workers (pool.h) */

struct sched_item {
	TAILQ_ENTRY(sched_item) link;
	unsigned int kind;
	bool held;			/* it is not taken yet, and neither are those behind it */
};

struct sched_queue {
	TAILQ_HEAD(, sched_item) items[SCHED_KINDS_MAX];
	unsigned int waiting[SCHED_KINDS_MAX];
	unsigned int n_waiting, waiting_max;
	unsigned int n_running, running_max;
	uint32_t typical_ms;	/* the time that an item runs, a moving average */
};

void sched_queue_init(struct sched_queue *queue, unsigned int waiting_max,
		      unsigned int running_max);

/* Appends an item. 0, or -EBUSY: the queue is full (see sched_queue_retry_ms). */
int sched_queue_put(struct sched_queue *queue, struct sched_item *item);

/* Puts back an item of sched_queue_take, as the next one of its kind. */
void sched_queue_put_back(struct sched_queue *queue, struct sched_item *item);

/* Takes the item of a kind that has waited longest. From now on it counts as running. NULL: no item
 * of this kind waits, or it is held, or running_max items run. */
struct sched_item *sched_queue_take(struct sched_queue *queue, unsigned int kind);

/* Takes this item from any place in the queue. From now on it counts as running. 0, or -EBUSY:
 * it is held, or running_max items run. */
int sched_queue_take_item(struct sched_queue *queue, struct sched_item *item);

/* Removes a waiting item. */
void sched_queue_remove(struct sched_queue *queue, struct sched_item *item);

/* Makes a waiting item the last of another kind. It stays in the queue even if waiting_max has been
 * lowered since it was put there. */
void sched_queue_move(struct sched_queue *queue, struct sched_item *item, unsigned int kind);

/* To be called when a running item has ended. took_ms: the time that it ran. */
void sched_queue_done(struct sched_queue *queue, uint32_t took_ms);

/* The number of workers of a kind that the waiting items could use at once. */
unsigned int sched_queue_useful(const struct sched_queue *queue, unsigned int kind);

/* The milliseconds until the queue probably has room, estimated from the running items, the waiting
 * items and typical_ms. */
uint32_t sched_queue_retry_ms(const struct sched_queue *queue);

/* ---- the ring ---- */

/* Shares with waiting work come before shares that only keep workers warm. */
enum sched_class { SCHED_WAITING, SCHED_WARMING, SCHED_CLASS_COUNT };

struct sched_entity {
	TAILQ_ENTRY(sched_entity) link[SCHED_CLASS_COUNT];
	bool wants[SCHED_CLASS_COUNT];
};

struct sched_ring {
	TAILQ_HEAD(sched_ring_list, sched_entity) list[SCHED_CLASS_COUNT];
};

void sched_ring_init(struct sched_ring *ring);

/* Enters or leaves a class. An entity that is in the class already keeps its place. */
void sched_ring_want(struct sched_ring *ring, struct sched_entity *entity,
		     enum sched_class class, bool wants);

bool sched_ring_wants(const struct sched_ring *ring, enum sched_class class);

/* The next entity of a class. It goes to the end of the ring. NULL: no entity of the class wants a
 * worker. */
struct sched_entity *sched_ring_next(struct sched_ring *ring, enum sched_class class);

#endif
