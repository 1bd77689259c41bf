/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks for deadlines and durations: CLOCK_MONOTONIC, in whole units; and, for what lasts
 * hours, CLOCK_BOOTTIME, which passes while the machine sleeps. Nobody sets them. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline int64_t
clock_boot_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

static inline uint64_t
clock_ms(void)
{
	return clock_us() / 1000;
}

#endif
