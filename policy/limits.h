/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of one execution. A client's limits are merged with those of the configuration, within
 * its caps. Pure decisions, no I/O.
 */
#ifndef POLICY_LIMITS_H
#define POLICY_LIMITS_H

#include <stdint.h>

struct why;

/* Bounds on a run's results; only the configuration sets them. */
struct results_limits {
	uint32_t displays;	/* displayed objects */
	uint32_t display_bytes;	/* of all displayed objects together */
	uint32_t picture_pixels;	/* of the longer side of a picture, as it is displayed */
	uint32_t files;		/* files left in /workspace that are reported */
	uint32_t file_bytes;	/* of a file whose content is kept in memory */
	uint32_t files_bytes;	/* of all such files together */
	uint64_t spill_bytes;	/* of output beyond the kept part, if the client asks for spill */
};

/* Every member is a bound that is always set; none is ever 0. */
struct limits {
	uint32_t wall_ms;	/* from the start of the script to its end */
	uint32_t cpu_ms;	/* user and system time of all its processes together */
	uint64_t memory_bytes;	/* everything that the kernel charges, including tmpfs */
	uint32_t pids;		/* processes and threads, including the script's first one */
	uint64_t output_bytes;	/* kept of each stream: head and tail */
	uint64_t output_total;	/* written to both streams together */
	struct results_limits results;
};

/* The limits that a client asked for; 0: not set. */
struct limits_asked {
	uint32_t wall_ms, cpu_ms, pids;
	uint64_t memory_bytes;
	uint64_t output_bytes;	/* set by a tool, not by a client */
};

struct limits_policy {
	struct limits standard;	/* for limits that the client does not set */
	struct limits cap;	/* the most that a client may ask for */
	uint32_t input_ms;	/* the total time that a script may wait for its user's answers, in
				 * addition to wall_ms */
	uint32_t cpu_percent;	/* the most that a worker gets (cpu.max); 100: one processor */
};

/* Merges the limits that were asked for with the policy into *limits_r. 0; or -ERANGE: a limit is
 * above its cap, *limits_r is unchanged, and why_r (not NULL) names the tool's argument and the
 * cap. If only the wall time is asked for, and it exceeds the standard cpu time, the cpu time grows
 * with it, up to its own cap. A default above its cap would be lowered to the cap, but the checks
 * of the configuration refuse it. */
int limits_merge(const struct limits_policy *policy, const struct limits_asked *asked,
		 struct limits *limits_r, struct why *why_r);

#endif
