/* SPDX-License-Identifier: Apache-2.0 */
/* A machine whose clock is set: time(3) is ahead of it by the_jump seconds. */
#ifndef TESTS_UNIT_BASE_SET_CLOCK_H
#define TESTS_UNIT_BASE_SET_CLOCK_H

#include <time.h>

static time_t the_jump;

time_t
time(time_t *now_r)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += the_jump;
	if (now_r)
		*now_r = now.tv_sec;
	return now.tv_sec;
}

#endif
