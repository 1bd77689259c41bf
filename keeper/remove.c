/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper and its children.   Owns: nothing. */
#include "keeper/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "keeper/path.h"

/* depth bounds the number of open directories. */
static int
remove_below(int dir, const char *name, unsigned int depth)
{
	struct dirent *entry;
	int r = 0, fd;
	DIR *list;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || depth > PATH_DEPTH_MAX + 2)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	list = fd < 0 ? NULL : fdopendir(fd);
	if (!list) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(list)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = remove_below(fd, entry->d_name, depth + 1);
	closedir(list);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int
remove_tree(int dir, const char *name)
{
	return remove_below(dir, name, 0);
}
