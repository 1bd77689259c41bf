/* SPDX-License-Identifier: Apache-2.0 */
/* What one execution may use, and how a client's wishes are merged with the
 * configuration: a client can only tighten. Pure decisions, no I/O.
 */
#ifndef POLICY_LIMITS_H
#define POLICY_LIMITS_H

#include <stdint.h>

struct why;

/* What is taken of a run's results; the configuration's alone. */
struct results_limits {
	uint32_t displays;	/* objects that are shown */
	uint32_t display_bytes;	/* of them together */
	uint32_t files;		/* left in /workspace, that are reported */
	uint32_t file_bytes;	/* of one whose content is kept */
	uint32_t files_bytes;	/* of all of them */
	uint64_t spill_bytes;	/* of output past what is kept, when it is asked for */
};

/* Every member is a bound that is always set; none is ever 0. */
struct limits {
	uint32_t wall_ms;	/* from the start of the script to its end */
	uint32_t cpu_ms;	/* user and system time of all its processes together */
	uint64_t memory_bytes;	/* everything the kernel charges, tmpfs included */
	uint32_t pids;		/* processes and threads, the script's first one included */
	uint64_t output_bytes;	/* kept of each stream: head and tail */
	uint64_t output_total;	/* written to both streams together, then output_limit */
	struct results_limits results;
};

/* What a client asked for; 0 means that it did not say. */
struct limits_asked {
	uint32_t wall_ms, cpu_ms, pids;
	uint64_t memory_bytes;
	uint64_t output_bytes;	/* a tool's choice, no client's */
};

struct limits_policy {
	struct limits standard;	/* when the client does not say */
	struct limits cap;	/* what a client may ask for at most */
	uint32_t input_ms;	/* that a script may wait for its user's answers, in all, beside
				 * wall_ms */
	uint32_t cpu_percent;	/* of one processor, that a worker gets at most (cpu.max) */
};

/* Merges what was asked for into *limits_r. A wish above its cap is refused: -ERANGE,
 * and why_r (not NULL) names the tool's argument and the cap. *limits_r is untouched
 * on failure. A default above the cap is lowered to it (configuration checks refuse
 * such a file, this is the second wall). When only timeout is asked for and it exceeds
 * the standard cpu budget, the cpu budget grows with it up to its own cap. */
int limits_merge(const struct limits_policy *policy, const struct limits_asked *asked,
		 struct limits *limits_r, struct why *why_r);

#endif
