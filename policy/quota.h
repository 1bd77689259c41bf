/* SPDX-License-Identifier: Apache-2.0 */
/* The use within the last minute or hour: a window that slides over sixty slots. Pure: the caller
 * passes the time, in ms of a monotonic clock.
 */
#ifndef POLICY_QUOTA_H
#define POLICY_QUOTA_H

#include <stdint.h>

#define QUOTA_SLOTS 60
#define QUOTA_MINUTE_SLOT_MS 1000
#define QUOTA_HOUR_SLOT_MS 60000

/* Zeroed: nothing was used. */
struct quota_window {
	uint64_t slot;			/* the youngest one, in slots since time 0 */
	uint64_t used[QUOTA_SLOTS];	/* by slot modulo QUOTA_SLOTS */
	uint64_t total;
};

void quota_add(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms, uint64_t amount);

uint64_t quota_used(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms);

/* How long until the use is below most, if nothing is added; 0: it is now. most > 0. */
uint64_t quota_wait_ms(struct quota_window *window, uint64_t slot_ms, uint64_t now_ms,
		       uint64_t most);

#endif
