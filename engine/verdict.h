/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the status of an execution that has ended. Pure: from the facts it makes the status and a
 * sentence. The table in verdict.c has the order of precedence.
 */
#ifndef ENGINE_VERDICT_H
#define ENGINE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/outcome.h"

/* Why the supervisor itself ended the execution. */
enum stop_reason {
	STOP_NONE,
	STOP_CANCEL,		/* see cancel in struct outcome_facts */
	STOP_WALL,
	STOP_CPU,
	STOP_QUOTA,		/* the tenant's processor time of this hour is used up */
	STOP_OUTPUT,
	STOP_MEMORY,		/* by the watchdog, if there is no controller for memory */
	STOP_PIDS,		/* by the watchdog, if there is no controller for pids */
	STOP_SOCKETS,		/* by the watchdog: kernel memory that no controller counts */
	STOP_TASKS,		/* by the watchdog: the tenant's processes together, if there is no
				 * controller for pids */
	STOP_PROTOCOL,		/* the worker sent a message that is not allowed */
};

struct outcome_facts {
	/* Before it ran. */
	bool never_ran, overloaded, unrecorded;
	const char *jail_text;		/* the wall of the jail that could not be built; or NULL */
	bool by_state;			/* it never ran, and the cause is in the session's own
					 * processes */

	/* Counted by the kernel. */
	uint64_t oom_kills, pids_hits;
	uint64_t peak_memory_bytes;	/* 0: not known */
	uint64_t state_bytes;		/* memory of the session before the cell; 0: none, or not
					 * known */
	uint32_t peak_pids;		/* as the watchdog has seen it; 0: not known */
	uint64_t cpu_ms, cpu_us;

	/* Actions of the supervisor. */
	enum stop_reason stop;
	enum cancel_reason cancel;
	uint64_t late_ms;		/* how much of its wall time it waited to run */
	bool interrupted;		/* it got KeyboardInterrupt, and time to end by itself */

	/* Reported by the script's process. */
	bool has_done, raised;
	bool gave_way;			/* it has ended by itself because it was interrupted */
	bool committed;			/* a cell came to its end, and its changes are kept; it may
					 * have been interrupted */
	uint32_t done_code;		/* 0 to 255 */
	const char *error_type;		/* NULL or text */
	const char *error_message;	/* NULL or text */
	const char *error_traceback;	/* NULL or text */

	/* Reported by its init or the kernel: the wait status of the script's process. */
	bool has_exit;
	int wait_status;

	bool watchdog_memory, watchdog_pids;	/* no controller: see verdict.c */
	const struct limits *limits;
	uint64_t disk_bytes, disk_inodes;	/* its limits for files in the jail */
	uint64_t volume_bytes, volume_files;	/* its limits for files in its volume; 0: it has
						 * no volume */
};

struct outcome_verdict {
	enum outcome_status status;
	int exit_code, signal;		/* as in struct outcome */
	char message[512];
};

void outcome_decide(const struct outcome_facts *facts,
		    struct outcome_verdict *verdict_r);

#endif
