/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before its fence; mcp-python check-host.   Owns: nothing.
 * Reads:   uid_map and gid_map, which the kernel writes. */
#include "policy/id_range.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

#define NOBODY ID_RANGE_NOBODY
#define NOBODYS 2		/* from NOBODY on */
#define MAP_TEXT (16 * 1024)	/* 340 lines of 33 characters at most, user_namespaces(7) */

/* Reads one line of a map: FIRST PARENT COUNT. Adjacent lines are not joined: a range that a child
 * namespace maps must lie within one line. */
static const char *
id_range_next_line(const char *text, struct id_range *range_r)
{
	uint32_t parent;

	if (text == NULL || sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32, &range_r->first, &parent,
				   &range_r->count) != 3)
		return NULL;
	text = strchr(text, '\n');
	return text != NULL ? text + 1 : "";
}

static struct id_range
common(const struct id_range *a, const struct id_range *b)
{
	uint64_t a_end = (uint64_t)a->first + a->count, b_end = (uint64_t)b->first + b->count;
	uint64_t first = a->first > b->first ? a->first : b->first;
	uint64_t end = a_end < b_end ? a_end : b_end;

	return (struct id_range){ (uint32_t)first, end > first ? (uint32_t)(end - first) : 0 };
}

static struct id_range
upper_half(const struct id_range *range)
{
	uint32_t half = range->count / 2;
	struct id_range upper = { range->first + half, range->count - half };

	if (upper.first < NOBODY && NOBODY - upper.first < upper.count)
		upper.count = NOBODY - upper.first;
	while (upper.count > 0 && upper.first >= NOBODY && upper.first < NOBODY + NOBODYS) {
		upper.first++;
		upper.count--;
	}
	return upper;
}

int
id_range_choose(const char *uid_map, const char *gid_map, const struct id_range *wanted,
		uint32_t least, struct id_range *range_r)
{
	struct id_range uids, gids, best = { 0 };

	while ((uid_map = id_range_next_line(uid_map, &uids)) != NULL)
		for (const char *line = gid_map;
		     (line = id_range_next_line(line, &gids)) != NULL;) {
			struct id_range both = common(&uids, &gids);

			if (common(&both, wanted).count == wanted->count) {
				*range_r = *wanted;
				return wanted->count < least ? -EINVAL : 0;
			}
			if (both.count > best.count)
				best = both;
		}
	best = upper_half(&best);
	if (best.count > wanted->count)
		best.count = wanted->count;
	*range_r = best;
	return best.count < least ? -ERANGE : 0;
}

static int
read_map(const char *path, char text[static MAP_TEXT])
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (len < MAP_TEXT - 1 && (n = read(fd, text + len, MAP_TEXT - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return n < 0 ? -errno : 0;
}

bool
id_range_keeps_root(const char *map)
{
	uint32_t first, parent;

	return sscanf(map, "%" SCNu32 " %" SCNu32, &first, &parent) != 2 ||
	       (first == 0 && parent == 0);
}

bool
id_range_is_whole(const char *map)
{
	struct id_range range;
	uint64_t n = 0;

	while ((map = id_range_next_line(map, &range)) != NULL)
		n += range.count;
	return n >= UINT32_MAX;		/* the last number is not an id */
}

bool
id_range_has_all_uids(void)
{
	char map[MAP_TEXT];

	return read_map("/proc/self/uid_map", map) == 0 && id_range_is_whole(map);
}

int
id_range_here(const struct id_range *wanted, uint32_t least, struct id_range *range_r)
{
	char uid_map[MAP_TEXT], gid_map[MAP_TEXT];
	int r;

	r = read_map("/proc/self/uid_map", uid_map);
	if (r == 0)
		r = read_map("/proc/self/gid_map", gid_map);
	if (r < 0)
		return r;
	r = id_range_choose(uid_map, gid_map, wanted, least, range_r);
	return r == -ERANGE && (id_range_keeps_root(uid_map) || id_range_keeps_root(gid_map))
		? -EPERM : r;
}
