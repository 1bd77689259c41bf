/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes and threads workers may have: all of them together, and those of one tenant.
 */
#ifndef HOST_TASKS_H
#define HOST_TASKS_H

#include <stdint.h>

struct tasks_bounds {
	uint32_t workers;	/* of all tenants; the service and the host have others */
	uint32_t tenant;	/* of one: half of them */
};

/* The bounds of a machine on which there can be so many, in a cgroup that may have so many. */
struct tasks_bounds tasks_bounds(uint64_t machine, uint64_t cgroup_max);

/* What this machine, and the service's user, can have. */
uint64_t tasks_machine(void);

#endif
