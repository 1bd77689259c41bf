/* SPDX-License-Identifier: Apache-2.0 */
/* The processor time of work that is repeated, for tests that compare it for tables of different
 * sizes. It is the least of several rounds, because other work on the machine only adds to it. */
#ifndef TESTS_UNIT_BASE_EFFORT_H
#define TESTS_UNIT_BASE_EFFORT_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
effort_now(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* The ns of a thousand calls of work. */
static inline uint64_t
effort(void (*work)(void *arg), void *arg)
{
	uint64_t least = UINT64_MAX;

	for (int round = 0; round < 10; round++) {
		uint64_t begin = effort_now(), took;

		for (int i = 0; i < 1000; i++)
			work(arg);
		took = effort_now() - begin;
		if (took < least)
			least = took;
	}
	return least;
}

#endif
