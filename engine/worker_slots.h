/* SPDX-License-Identifier: Apache-2.0 */
/* The uids of workers in the outer namespace.
 */
#ifndef ENGINE_WORKER_SLOTS_H
#define ENGINE_WORKER_SLOTS_H

#include <stdint.h>

/* The ids from 1 to count. At most one live worker has an id. The id that has been free for longest
 * is taken next. count 0: all workers have id 0. */
struct worker_slots {
	uint16_t *ring;
	uint32_t count, first, free;
};

void worker_slots_init(struct worker_slots *slots, uint32_t count);
void worker_slots_done(struct worker_slots *slots);
int worker_slots_take(struct worker_slots *slots, uint32_t *slot_r);	/* -EAGAIN: none is free */
int worker_slots_reserve(struct worker_slots *slots, uint32_t slot);	/* this id; -EBUSY: taken */
void worker_slots_give(struct worker_slots *slots, uint32_t slot);

#endif
