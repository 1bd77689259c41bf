/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files of the administrator, whose contents a program trusts.
 */
#ifndef BASE_OWNERFILE_H
#define BASE_OWNERFILE_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Opens a file for reading, without waiting if it is a FIFO. stat_r gets its fstat(2). Returns the
 * descriptor; -EPERM: users other than its owner may write to it; -EINVAL: it is not a regular
 * file; or another -errno. */
int ownerfile_open(const char *path, struct stat *stat_r);

/* Is an open file still the one at its path? False: it was removed, renamed or replaced. A link at
 * path is another file. Where this process may not look, a file that has a name is the same. */
static inline bool
samefile(int fd, const char *path)
{
	struct stat own, there;

	if (fstat(fd, &own) < 0)
		return false;
	if (lstat(path, &there) < 0)
		return errno == EACCES && own.st_nlink > 0;
	return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

#endif
