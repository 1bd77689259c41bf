/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a directory to its end: readdir(3) returns NULL at the end, and also when it has failed.
 *
 *   int r = 0;
 *   own_list DIR *list = openlist(dir, "name", &r);
 *   while (r == 0 && (entry = nextentry(list, &r)))
 */
#ifndef BASE_NEXTENTRY_H
#define BASE_NEXTENTRY_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define own_list __attribute__((cleanup(own_list_close)))

static inline void
own_list_close(DIR **list)
{
	if (*list)
		closedir(*list);
}

/* Opens a directory below dir; a link is not followed. NULL: *r_r is -errno. */
static inline DIR *
openlist(int dir, const char *name, int *r_r)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list)
		*r_r = -errno;
	if (!list && fd >= 0)
		close(fd);
	return list;
}

/* The next entry. NULL: that was all, or list is NULL; or there is an error, and *r_r is -errno. */
static inline struct dirent *
nextentry(DIR *list, int *r_r)
{
	struct dirent *entry;

	errno = 0;
	entry = list ? readdir(list) : NULL;
	if (!entry && errno != 0)
		*r_r = -errno;
	return entry;
}

#endif
