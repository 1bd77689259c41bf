/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Merges numbers. A client's limits are not trusted, the policy's are. */
#include "policy/limits.h"

#include <errno.h>

#include "base/why.h"

static uint64_t
limits_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* 0, or -ERANGE: the limit is above the cap. unit: asked and cap are divided by it for the
 * message, which names them in the unit of field. */
static int
limits_check(uint64_t asked, uint64_t cap, double unit, const char *field, struct why *why_r)
{
	if (asked <= cap)
		return 0;
	return why_say(why_r, -ERANGE, field, "%s may be at most %.15g here; %.15g was asked for",
		       field, (double)cap / unit, (double)asked / unit);
}

static uint64_t
limits_choose(uint64_t asked, uint64_t standard, uint64_t cap)
{
	return limits_smaller(asked ? asked : standard, cap);
}

int
limits_merge(const struct limits_policy *policy, const struct limits_asked *asked,
	     struct limits *limits_r, struct why *why_r)
{
	const struct limits *standard = &policy->standard, *cap = &policy->cap;
	uint64_t cpu_ms = standard->cpu_ms;
	int r;

	if ((r = limits_check(asked->wall_ms, cap->wall_ms, 1000, "timeout_seconds", why_r)) < 0 ||
	    (r = limits_check(asked->cpu_ms, cap->cpu_ms, 1000, "cpu_seconds", why_r)) < 0 ||
	    (r = limits_check(asked->memory_bytes, cap->memory_bytes, 1024 * 1024, "memory_mb",
			      why_r)) < 0 ||
	    (r = limits_check(asked->pids, cap->pids, 1, "pids", why_r)) < 0)
		return r;

	/* a client that asks for more time expects that the script may compute all of it */
	if (asked->wall_ms > cpu_ms)
		cpu_ms = asked->wall_ms;

	*limits_r = (struct limits){
		.wall_ms = (uint32_t)limits_choose(asked->wall_ms, standard->wall_ms, cap->wall_ms),
		.cpu_ms = (uint32_t)limits_choose(asked->cpu_ms, cpu_ms, cap->cpu_ms),
		.memory_bytes = limits_choose(asked->memory_bytes, standard->memory_bytes,
					      cap->memory_bytes),
		.pids = (uint32_t)limits_choose(asked->pids, standard->pids, cap->pids),
		.output_bytes = limits_choose(asked->output_bytes, standard->output_bytes,
					      cap->output_bytes),
		.output_total = limits_smaller(standard->output_total, cap->output_total),
		.results = standard->results,
	};
	return 0;
}
