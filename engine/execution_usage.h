/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution uses: time, memory, processes. Measured by the kernel's counters where they
 * exist, else by looks at its processes; the results are written into its facts.
 */
#ifndef ENGINE_EXECUTION_USAGE_H
#define ENGINE_EXECUTION_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/watchdog.h"

struct execution;

struct execution_usage {
	uint64_t asked_us;		/* when the execution was made */
	uint64_t start_us, end_us;	/* 0: not yet */
	uint64_t memory_max;		/* the watchdog's: limits.memory_bytes, or some more */
	struct watchdog_link watchdog;
};

/* Its wall clock starts; again, if it gets another worker. */
void execution_start_clock(struct execution *execution);

/* It has its worker, and the watchdog looks at it. */
void execution_watch(struct execution *execution);

/* Its end: stops its clock and the looks, and counts what it has used. Later calls count
 * nothing. */
void execution_count(struct execution *execution);

/* Was there such an end? */
bool execution_has_run(const struct execution *execution);

/* The time on its wall clock: since its start, but for what is excused by prompts. */
uint64_t execution_wall_us(const struct execution *execution);

/* From being asked for until it ran, and from then until its end; 0: it did not. */
uint64_t execution_waited_us(const struct execution *execution);
uint64_t execution_ran_us(const struct execution *execution);

/* The processor time that it has used until now. */
uint64_t execution_cpu_ms(struct execution *execution);

/* The watchdog's look at a running one. */
void execution_check(struct execution *execution);

/* Is it within its limit, where no controller counts memory? By the last look at its worker, if
 * each process by its own count has more. */
bool execution_fits_memory(struct execution *execution);

#endif
