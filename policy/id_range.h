/* SPDX-License-Identifier: Apache-2.0 */
/* The range of ids that workers get, of the ids that exist here.
 *
 * On a machine every id exists, and the range is that of [service] subuid_base. In a container of
 * an ordinary user only the ids of /proc/self/uid_map and gid_map exist, and the range of the
 * configuration is rarely among them.
 */
#ifndef POLICY_ID_RANGE_H
#define POLICY_ID_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct id_range {
	uint32_t first, count;
};

/* Chooses from the texts of uid_map and gid_map: wanted, if both have all of it; otherwise the
 * upper half of the largest range that both have, without 65534 and 65535, which are nobody's, and
 * with wanted->count ids at most. Lower ids are those of the container's own users. 0; -ERANGE if
 * that has fewer than least ids; -EINVAL if wanted itself has. */
int id_range_choose(const char *uid_map, const char *gid_map, const struct id_range *wanted,
		    uint32_t least, struct id_range *range_r);

/* Is root of a namespace with this map also root of its parent? True of what is not a map. */
bool id_range_keeps_root(const char *map);

/* As id_range_choose() for the ids of this process's user namespace. 0; -ERANGE; -EINVAL; -EPERM in
 * place of -ERANGE if root here may be root of the machine, as whom no stranger's code may run; or
 * -errno of the files. */
int id_range_here(const struct id_range *wanted, uint32_t least, struct id_range *range_r);

#endif
