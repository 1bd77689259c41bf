/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of an execution: for the answer to a prompt, for a person's consent, or for a file to
 * be kept. One wait is open at a time. The time of waits is excused up to a bound: the script's
 * wall clock does not count it. Pure: the caller passes the time.
 */
#ifndef ENGINE_EXECUTION_WAITS_H
#define ENGINE_EXECUTION_WAITS_H

#include <stdbool.h>
#include <stdint.h>

/* The waits of an execution. The members belong to execution_waits.c. */
struct execution_waits {
	uint32_t most;		/* how many waits may be opened */
	uint32_t excused_ms;	/* the bound, for all waits together */
	uint32_t number;	/* of the last wait; 0: none */
	uint64_t since_us;	/* when it was opened; 0: none is open */
	uint64_t waited_us;	/* in all earlier ones */
};

/* most: how many waits a script may open; UINT32_MAX: any number. excused_ms: the bound of the
 * excused time of all waits together. */
void waits_init(struct execution_waits *waits, uint32_t most, uint32_t excused_ms);

/* Opens a wait. 0; or -EBADMSG: no more are allowed, one is open, or this is not the next number.
 */
int waits_open(struct execution_waits *waits, uint32_t number, uint64_t now_us);

/* Closes the open wait. Returns its number; 0: none is open. */
uint32_t waits_close(struct execution_waits *waits, uint64_t now_us);

/* The time of all waits until now that is excused. */
uint64_t waits_excused_us(const struct execution_waits *waits, uint64_t now_us);

/* For how much longer the open wait is excused; 0: its time is not excused any more, or no wait is
 * open. */
uint64_t waits_patience_ms(const struct execution_waits *waits, uint64_t now_us);

#endif
