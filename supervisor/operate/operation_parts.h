/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that operation.c and operation_metrics.c share.
 */
#ifndef SUPERVISOR_OPERATE_OPERATION_PARTS_H
#define SUPERVISOR_OPERATE_OPERATION_PARTS_H

#include <stdint.h>
#include <time.h>

#include "supervisor/operate/operation.h"

#define OPERATION_HANDLE_SHOWN 10	/* bytes: enough to distinguish a handle, not enough to
					 * use it */

struct operation {
	struct operation_sources from;
	struct timespec began;		/* CLOCK_BOOTTIME */
	time_t started;
};

uint64_t operation_uptime_s(const struct operation *operation);

#endif
