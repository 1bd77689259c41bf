/* SPDX-License-Identifier: Apache-2.0 */
/* The prompts of an execution, of which one is open at a time. The time for a person's answer is
 * excused: up to a bound, the script's wall clock does not count it. Pure: the caller passes the
 * time.
 */
#ifndef ENGINE_EXECUTION_PROMPTS_H
#define ENGINE_EXECUTION_PROMPTS_H

#include <stdbool.h>
#include <stdint.h>

/* Its members belong to execution_prompts.c. */
struct execution_prompts {
	uint32_t most;		/* that may be asked */
	uint32_t excused_ms;	/* at most, of all waits together */
	uint32_t number;	/* of the last one; 0: none */
	uint64_t since_us;	/* when it was opened; 0: none is open */
	uint64_t waited_us;	/* for all earlier answers */
};

/* most, excused_ms: as prompts and prompt_ms of struct execution_request. */
void prompts_init(struct execution_prompts *prompts, uint32_t most, uint32_t excused_ms);

/* Opens a prompt. 0; or -EBADMSG: no more are allowed, one is open, or this is not the next number.
 */
int prompts_open(struct execution_prompts *prompts, uint32_t number, uint64_t now_us);

/* Closes the open prompt with its answer. Returns its number; 0: none is open. */
uint32_t prompts_close(struct execution_prompts *prompts, uint64_t now_us);

/* The time that is excused until now. */
uint64_t prompts_excused_us(const struct execution_prompts *prompts, uint64_t now_us);

/* For how much longer the time of the open prompt is excused; 0: it is not excused any more, or
 * none is open. */
uint64_t prompts_patience_ms(const struct execution_prompts *prompts, uint64_t now_us);

#endif
