/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of one execution, and how a client's limits are merged with the configuration: a
 * client can only tighten. Pure decisions, no I/O.
 */
#ifndef POLICY_LIMITS_H
#define POLICY_LIMITS_H

#include <stdint.h>

struct why;

/* Bounds on a run's results; only the configuration sets them. */
struct results_limits {
	uint32_t displays;	/* objects that are shown */
	uint32_t display_bytes;	/* of them together */
	uint32_t files;		/* left in /workspace, that are reported */
	uint32_t file_bytes;	/* of a file whose content is kept */
	uint32_t files_bytes;	/* of all of them */
	uint64_t spill_bytes;	/* of output beyond the kept part, if the client asks for it */
};

/* Every member is a bound that is always set; none is ever 0. */
struct limits {
	uint32_t wall_ms;	/* from the start of the script to its end */
	uint32_t cpu_ms;	/* user and system time of all its processes together */
	uint64_t memory_bytes;	/* everything that the kernel charges, including tmpfs */
	uint32_t pids;		/* processes and threads, including the script's first one */
	uint64_t output_bytes;	/* kept of each stream: head and tail */
	uint64_t output_total;	/* written to both streams together; more is output_limit */
	struct results_limits results;
};

/* The limits that a client asked for; 0: not set. */
struct limits_asked {
	uint32_t wall_ms, cpu_ms, pids;
	uint64_t memory_bytes;
	uint64_t output_bytes;	/* set by a tool, not by a client */
};

struct limits_policy {
	struct limits standard;	/* if the client does not set it */
	struct limits cap;	/* the most that a client may ask for */
	uint32_t input_ms;	/* the total time that a script may wait for its user's answers, in
				 * addition to wall_ms */
	uint32_t cpu_percent;	/* of one processor, that a worker gets at most (cpu.max) */
};

/* Merges the limits that were asked for into *limits_r. 0; or -ERANGE: a limit is above its cap,
 * *limits_r is unchanged, and why_r (not NULL) names the tool's argument and the cap. A default
 * above the cap is lowered to it; the checks of the configuration refuse that too. When only
 * timeout is asked for and it exceeds the standard cpu budget, the cpu budget grows with it up to
 * its own cap. */
int limits_merge(const struct limits_policy *policy, const struct limits_asked *asked,
		 struct limits *limits_r, struct why *why_r);

#endif
