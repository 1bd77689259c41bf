/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the uids of the outer namespace, and their assignment to
 * workers. */
#include "engine/worker_slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/xalloc.h"

void
worker_slots_init(struct worker_slots *slots, uint32_t count)
{
	assert(count <= 65535);
	*slots = (struct worker_slots){ .count = count, .free = count };
	if (count == 0)
		return;
	slots->ring = xcalloc(count, sizeof(*slots->ring));
	for (uint32_t i = 0; i < count; i++)
		slots->ring[i] = (uint16_t)(i + 1);
}

void
worker_slots_done(struct worker_slots *slots)
{
	free(slots->ring);
	*slots = (struct worker_slots){ 0 };
}

int
worker_slots_take(struct worker_slots *slots, uint32_t *slot_r)
{
	if (slots->count == 0) {
		*slot_r = 0;
		return 0;
	}
	if (slots->free == 0)
		return -EAGAIN;
	*slot_r = slots->ring[slots->first];
	slots->first = (slots->first + 1) % slots->count;
	slots->free--;
	return 0;
}

int
worker_slots_reserve(struct worker_slots *slots, uint32_t slot)
{
	uint32_t at = 0;

	if (slots->count == 0)
		return slot == 0 ? 0 : -EBUSY;
	while (at < slots->free &&
	       slots->ring[(slots->first + at) % slots->count] != slot)
		at++;
	if (at == slots->free)
		return -EBUSY;
	slots->free--;
	for (; at < slots->free; at++)
		slots->ring[(slots->first + at) % slots->count] =
			slots->ring[(slots->first + at + 1) % slots->count];
	return 0;
}

void
worker_slots_give(struct worker_slots *slots, uint32_t slot)
{
	if (slots->count == 0)
		return;
	assert(slot >= 1 && slot <= slots->count && slots->free < slots->count);
	slots->ring[(slots->first + slots->free) % slots->count] = (uint16_t)slot;
	slots->free++;
}
