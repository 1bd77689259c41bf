/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every process of the worker program; replaces the C library's fsync() and
 * fdatasync().   Owns: nothing.
 * The filter makes both calls succeed without reading the descriptor: a script writes to memory or
 * to a volume, and syncing a file of the host or of a volume would flush the host's disk. So these
 * functions check the descriptor instead. Programs that a script starts have the C library's own
 * functions, which always succeed. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
sync_or_refuse(long call, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISBLK(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(call, fd);
}

__attribute__((visibility("default"))) int
fsync(int fd)
{
	return sync_or_refuse(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int
fdatasync(int fd)
{
	return sync_or_refuse(SYS_fdatasync, fd);
}
