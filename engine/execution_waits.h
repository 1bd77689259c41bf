/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of an execution for others, of which one is open at a time: for the answer to a prompt,
 * for a person's consent, for a file to be kept. This time is excused: up to a bound, the script's
 * wall clock does not count it. Pure: the caller passes the time.
 */
#ifndef ENGINE_EXECUTION_WAITS_H
#define ENGINE_EXECUTION_WAITS_H

#include <stdbool.h>
#include <stdint.h>

/* Its members belong to execution_waits.c. */
struct execution_waits {
	uint32_t most;		/* that may be opened */
	uint32_t excused_ms;	/* at most, of all waits together */
	uint32_t number;	/* of the last one; 0: none */
	uint64_t since_us;	/* when it was opened; 0: none is open */
	uint64_t waited_us;	/* in all earlier ones */
};

/* most: UINT32_MAX, or how many a script may open. excused_ms: the bound. */
void waits_init(struct execution_waits *waits, uint32_t most, uint32_t excused_ms);

/* Opens a wait. 0; or -EBADMSG: no more are allowed, one is open, or this is not the next number.
 */
int waits_open(struct execution_waits *waits, uint32_t number, uint64_t now_us);

/* Closes the open wait. Returns its number; 0: none is open. */
uint32_t waits_close(struct execution_waits *waits, uint64_t now_us);

/* The time that is excused until now. */
uint64_t waits_excused_us(const struct execution_waits *waits, uint64_t now_us);

/* For how much longer the time of the open wait is excused; 0: it is not excused any more, or
 * none is open. */
uint64_t waits_patience_ms(const struct execution_waits *waits, uint64_t now_us);

#endif
