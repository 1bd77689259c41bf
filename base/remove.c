/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper and its children; mcp-python-unpack.   Owns: nothing. */
#include "base/remove.h"

#include <string.h>

#include "base/nextentry.h"
#include "base/own.h"

int
remove_below(int dir, unsigned int depth_max)
{
	int r = 0;
	own_list DIR *list = openlist(dir, ".", &r);
	struct dirent *entry;

	while (r == 0 && (entry = nextentry(list, &r)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_tree(dirfd(list), entry->d_name, depth_max);
	return r;
}

int
remove_tree(int dir, const char *name, unsigned int depth_max)
{
	own_fd int below = -1;
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || depth_max == 0)
		return -errno;
	below = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = below < 0 ? -errno : remove_below(below, depth_max - 1);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}
