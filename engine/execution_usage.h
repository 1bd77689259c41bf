/* SPDX-License-Identifier: Apache-2.0 */
/* The time, memory and processes that an execution uses, measured by the kernel's counters if they
 * exist, otherwise by looking at its processes. The results go into execution->facts. execution.c
 * stops an execution that uses too much.
 */
#ifndef ENGINE_EXECUTION_USAGE_H
#define ENGINE_EXECUTION_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/verdict.h"
#include "host/watchdog.h"

struct execution;

struct execution_usage {
	uint64_t asked_us;		/* when the execution was made */
	uint64_t start_us, end_us;	/* of its run; 0: not yet */
	uint64_t memory_max;		/* the bound for the watchdog: limits.memory_bytes, or
					 * somewhat more */
	uint64_t charged_ms;		/* processor time that the observer was told of */
	struct watchdog_link watchdog;
};

/* Starts the execution's wall clock. If the execution gets another worker, the clock starts again
 * at 0. */
void execution_start_clock(struct execution *execution);

/* To be called at the execution's end: stops its clock and the watchdog, and counts its use.
 * Further calls do nothing. */
void execution_count(struct execution *execution);

/* Was execution_count called? */
bool execution_has_run(const struct execution *execution);

/* The time on its wall clock: since its start, without the excused waits (execution_waits.h). */
uint64_t execution_wall_us(const struct execution *execution);

/* The time from the request until it ran, and from then until its end; 0: it did not run. */
uint64_t execution_waited_us(const struct execution *execution);
uint64_t execution_ran_us(const struct execution *execution);

/* The processor time that it has used until now. */
uint64_t execution_cpu_ms(struct execution *execution);

/* Charges the processor time that it has used since the last charge. Returns what is left of its
 * tenant's quota. */
uint64_t execution_charge(struct execution *execution);

/* Set the deadline. The first: in ms milliseconds. The second charges the execution, and sets it at
 * the earliest time at which its wall time, its processor time or its tenant's quota can be used
 * up. Returns STOP_CPU or STOP_QUOTA if that is so now, or else STOP_NONE. */
void execution_set_deadline_ms(struct execution *execution, uint64_t ms);
enum stop_reason execution_set_deadline(struct execution *execution, uint64_t cpu_used_ms);

/* To be called when a wait has begun or ended: sets the deadline, unless the execution is being
 * stopped. */
void execution_look_at_clocks(struct execution *execution);

/* Measures a running execution for the watchdog. STOP_PIDS: it has too many processes. STOP_MEMORY:
 * it has too much memory, or only seems to, because a page that several processes share counts more
 * than once. STOP_SOCKETS, STOP_TASKS: see tables.h. STOP_NONE: none of them. Limits that a
 * controller enforces are not checked. */
enum stop_reason execution_measure(struct execution *execution);

/* Is the execution within its memory limit? For use without a memory controller. If the sum of the
 * processes' own counts is above the limit, the last exact look at the worker decides. */
bool execution_fits_memory(struct execution *execution);

#endif
