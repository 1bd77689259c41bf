/* SPDX-License-Identifier: Apache-2.0 */
/* Is an open file still the one at its path? */
#ifndef BASE_SAMEFILE_H
#define BASE_SAMEFILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* False: the file was removed, renamed or replaced. A link at path is another file. */
static inline bool
samefile(int fd, const char *path)
{
	struct stat own, there;

	return fstat(fd, &own) == 0 && lstat(path, &there) == 0 && own.st_dev == there.st_dev &&
	       own.st_ino == there.st_ino;
}

#endif
