/* SPDX-License-Identifier: Apache-2.0 */
/* Sums the use within the last minute or hour, in a window of sixty slots. slot_ms: the length of a
 * slot, which is the same in all calls for a window. Pure: the caller passes the time, in
 * milliseconds of a monotonic clock.
 */
#ifndef POLICY_QUOTA_H
#define POLICY_QUOTA_H

#include <stdint.h>

#define QUOTA_SLOTS 60
#define QUOTA_MINUTE_SLOT_MS 1000
#define QUOTA_HOUR_SLOT_MS 60000

/* Zeroed: nothing was used. */
struct quota_window {
	uint64_t slot;			/* number of the youngest slot since time 0 */
	uint64_t used[QUOTA_SLOTS];	/* use in a slot; index: its number modulo QUOTA_SLOTS */
	uint64_t total;
};

void quota_add(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms, uint64_t amount);

uint64_t quota_used(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms);

/* The time until the use is below most, if nothing is added; 0: it is below most now. most > 0. */
uint64_t quota_wait_ms(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms,
		       uint64_t most);

#endif
