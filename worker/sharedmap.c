/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote and every worker; replaces the C library's mmap().
 * Owns:    nothing; a mapping keeps its file.
 * Programs that a script starts have the C library's own mmap(), and the filter refuses shared
 * anonymous memory to them. */
#include "worker/sharedmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

static bool use_files;

void
sharedmap_use_files(void)
{
	use_files = true;
}

/* Makes a file of that length without a name. If the file system lacks the room, the call fails
 * here. Otherwise SIGBUS would end the process at a later access. */
static int
sharedmap_new_file(size_t len)
{
	own_fd int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -1;
	if (len > fs.f_bavail * (size_t)fs.f_bsize) {
		errno = ENOMEM;
		return -1;
	}
	return ftruncate(fd, (off_t)len) < 0 ? -1 : give_fd(fd);
}

static void *
sharedmap_map(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

static void *
map_or_file(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	own_fd int file = -1;

	if (!use_files || (flags & MAP_TYPE) != MAP_SHARED || !(flags & MAP_ANONYMOUS))
		return sharedmap_map(at, len, prot, flags, fd, offset);
	file = sharedmap_new_file(len);
	if (file < 0)
		return MAP_FAILED;
	return sharedmap_map(at, len, prot, flags & ~MAP_ANONYMOUS, file, 0);
}

/* The library exports both names; the caller's compiler flags choose one. */
__attribute__((visibility("default"))) void *
mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map_or_file(at, len, prot, flags, fd, offset);
}

__attribute__((visibility("default"))) void *
mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t offset)
{
	return map_or_file(at, len, prot, flags, fd, offset);
}
