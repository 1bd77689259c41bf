/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "policy/quota.h"

#include <assert.h>
#include <string.h>

/* Clears the slots that have left the window. */
static void
quota_slide(struct quota_window *window, uint64_t slot)
{
	if (slot <= window->slot)
		return;
	if (slot - window->slot >= QUOTA_SLOTS) {
		memset(window->used, 0, sizeof(window->used));
		window->total = 0;
		window->slot = slot;
	}
	while (window->slot < slot) {
		uint64_t *oldest = &window->used[++window->slot % QUOTA_SLOTS];

		window->total -= *oldest;
		*oldest = 0;
	}
}

void
quota_add(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms, uint64_t amount)
{
	quota_slide(window, now_ms / slot_ms);
	window->used[window->slot % QUOTA_SLOTS] += amount;
	window->total += amount;
}

uint64_t
quota_used(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms)
{
	quota_slide(window, now_ms / slot_ms);
	return window->total;
}

uint64_t
quota_wait_ms(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms, uint64_t most)
{
	uint64_t left = quota_used(window, slot_ms, now_ms);

	assert(most > 0);
	if (left < most)
		return 0;
	for (uint64_t gone = 1; gone < QUOTA_SLOTS; gone++) {
		left -= window->used[(window->slot + gone) % QUOTA_SLOTS];
		if (left < most)
			return (window->slot + gone) * slot_ms - now_ms;
	}
	return (window->slot + QUOTA_SLOTS) * slot_ms - now_ms;
}
