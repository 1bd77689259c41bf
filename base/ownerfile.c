/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every program.   Owns: nothing; the caller closes the descriptor.
 * Reads:   a file of the administrator. */
#include "base/ownerfile.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/own.h"

int
ownerfile_open(const char *path, struct stat *stat_r)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, stat_r) < 0)
		return -errno;
	if (!S_ISREG(stat_r->st_mode))
		return -EINVAL;
	if (stat_r->st_mode & (S_IWGRP | S_IWOTH))
		return -EPERM;
	return give_fd(fd);
}
