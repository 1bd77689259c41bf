/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the range of ids for workers from the ids that exist in this user namespace.
 *
 * On the host itself every id exists, and the range is that of [service] subuid_base. In a
 * container of an ordinary user only the ids of /proc/self/uid_map and gid_map exist, and the range
 * of the configuration is rarely among them.
 */
#ifndef POLICY_ID_RANGE_H
#define POLICY_ID_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#define ID_RANGE_NOBODY 65534	/* also what the kernel shows for an id that does not exist here */

struct id_range {
	uint32_t first, count;
};

/* Chooses a range from the texts of uid_map and gid_map: wanted, if both maps have all of its ids;
 * otherwise the upper half of the largest range that both maps have, without 65534 (nobody) and
 * 65535, and with at most wanted->count ids. The lower half is left to the container's own users.
 * 0; -ERANGE: this range has fewer than least ids; -EINVAL: wanted itself has fewer. */
int id_range_choose(const char *uid_map, const char *gid_map, const struct id_range *wanted,
		    uint32_t least, struct id_range *range_r);

/* Is root of a namespace with this map also root of its parent namespace? True also if map is not
 * the text of a map. */
bool id_range_keeps_root(const char *map);

/* Do all ids exist in a namespace with this map? */
bool id_range_is_whole(const char *map);

/* The same of this process's uids. False also if the map cannot be read. */
bool id_range_has_all_uids(void);

/* As id_range_choose(), with the maps of this process's user namespace. 0, -EINVAL or -ERANGE, as
 * there. -EPERM in place of -ERANGE: root here may be root of the host, and must not run hostile
 * code. Or another -errno: a map cannot be read. */
int id_range_here(const struct id_range *wanted, uint32_t least, struct id_range *range_r);

#endif
