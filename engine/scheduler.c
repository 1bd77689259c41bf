/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing; it links objects of other modules.
 * The cost of every operation is independent of the number of waiting items. */
#include "engine/scheduler.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define RETRY_LEAST_MS 50
#define RETRY_MOST_MS 60000
#define TYPICAL_AT_FIRST_MS 200

void
sched_queue_init(struct sched_queue *queue, unsigned int waiting_max,
		 unsigned int running_max)
{
	assert(running_max > 0);
	memset(queue, 0, sizeof(*queue));
	for (unsigned int i = 0; i < SCHED_KINDS_MAX; i++)
		TAILQ_INIT(&queue->items[i]);
	queue->waiting_max = waiting_max;
	queue->running_max = running_max;
	queue->typical_ms = TYPICAL_AT_FIRST_MS;
}

int
sched_queue_put(struct sched_queue *queue, struct sched_item *item)
{
	assert(item->kind < SCHED_KINDS_MAX);
	if (queue->n_waiting >= queue->waiting_max)
		return -EBUSY;
	TAILQ_INSERT_TAIL(&queue->items[item->kind], item, link);
	queue->waiting[item->kind]++;
	queue->n_waiting++;
	return 0;
}

void
sched_queue_put_back(struct sched_queue *queue, struct sched_item *item)
{
	assert(queue->n_running > 0);
	TAILQ_INSERT_HEAD(&queue->items[item->kind], item, link);
	queue->waiting[item->kind]++;
	queue->n_waiting++;
	queue->n_running--;
}

struct sched_item *
sched_queue_take(struct sched_queue *queue, unsigned int kind)
{
	struct sched_item *item = TAILQ_FIRST(&queue->items[kind]);

	return item != NULL && sched_queue_take_item(queue, item) == 0 ? item : NULL;
}

int
sched_queue_take_item(struct sched_queue *queue, struct sched_item *item)
{
	if (item->held || queue->n_running >= queue->running_max)
		return -EBUSY;
	sched_queue_remove(queue, item);
	queue->n_running++;
	return 0;
}

void
sched_queue_remove(struct sched_queue *queue, struct sched_item *item)
{
	assert(queue->waiting[item->kind] > 0 && queue->n_waiting > 0);
	TAILQ_REMOVE(&queue->items[item->kind], item, link);
	queue->waiting[item->kind]--;
	queue->n_waiting--;
}

void
sched_queue_move(struct sched_queue *queue, struct sched_item *item, unsigned int kind)
{
	assert(kind < SCHED_KINDS_MAX);
	sched_queue_remove(queue, item);
	item->kind = kind;
	TAILQ_INSERT_TAIL(&queue->items[kind], item, link);
	queue->waiting[kind]++;
	queue->n_waiting++;
}

void
sched_queue_done(struct sched_queue *queue, uint32_t took_ms)
{
	assert(queue->n_running > 0);
	queue->n_running--;
	queue->typical_ms = (uint32_t)(((uint64_t)queue->typical_ms * 7 + took_ms) / 8);
}

unsigned int
sched_queue_useful(const struct sched_queue *queue, unsigned int kind)
{
	/* The bound may have been lowered below the number of running items. */
	unsigned int room = queue->running_max > queue->n_running
			    ? queue->running_max - queue->n_running : 0;

	return queue->waiting[kind] < room ? queue->waiting[kind] : room;
}

uint32_t
sched_queue_retry_ms(const struct sched_queue *queue)
{
	uint64_t turns = queue->n_waiting / queue->running_max + 1;
	uint64_t ms = turns * queue->typical_ms;

	if (ms < RETRY_LEAST_MS)
		return RETRY_LEAST_MS;
	return ms > RETRY_MOST_MS ? RETRY_MOST_MS : (uint32_t)ms;
}

void
sched_ring_init(struct sched_ring *ring)
{
	for (int class = 0; class < SCHED_CLASS_COUNT; class++)
		TAILQ_INIT(&ring->list[class]);
}

void
sched_ring_want(struct sched_ring *ring, struct sched_entity *entity,
		enum sched_class class, bool wants)
{
	if (entity->wants[class] == wants)
		return;
	entity->wants[class] = wants;
	if (wants)
		TAILQ_INSERT_TAIL(&ring->list[class], entity, link[class]);
	else
		TAILQ_REMOVE(&ring->list[class], entity, link[class]);
}

bool
sched_ring_wants(const struct sched_ring *ring, enum sched_class class)
{
	return !TAILQ_EMPTY(&ring->list[class]);
}

struct sched_entity *
sched_ring_next(struct sched_ring *ring, enum sched_class class)
{
	struct sched_entity *entity = TAILQ_FIRST(&ring->list[class]);

	if (entity != NULL) {
		TAILQ_REMOVE(&ring->list[class], entity, link[class]);
		TAILQ_INSERT_TAIL(&ring->list[class], entity, link[class]);
	}
	return entity;
}
