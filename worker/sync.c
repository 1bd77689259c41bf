/* Runs in: every process of the worker program, in place of the C library's fsync() and
 * fdatasync().   Owns: nothing.
 * The filter answers both calls without a look at the descriptor: all that a script can write to
 * is memory, and syncing a file of the host flushes the host's disk. So what a script can get
 * wrong is found out here. Programs that a script starts have the library's own functions and
 * are told that all is well. The keeper has no filter; its calls reach the kernel. */
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
