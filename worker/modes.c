/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every process of the worker program; replaces the C library's chmod(), fchmod() and
 * fchmodat().   Owns: nothing.
 * The system service may not make set-uid and set-gid files (RestrictSUIDSGID=): the kernel
 * answers EPERM to these bits. In a jail they have no effect, because its mounts are nosuid, but
 * programs that unpack or copy a tree set them. So these functions leave them out, and set the
 * rest of the mode. Programs that a script starts see the error. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WITHOUT_MEANING (S_ISUID | S_ISGID)

static bool
is_for_the_bits(int r, mode_t mode)
{
	return r < 0 && errno == EPERM && (mode & WITHOUT_MEANING);
}

__attribute__((visibility("default"))) int
chmod(const char *path, mode_t mode)
{
	int r = (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);

	if (is_for_the_bits(r, mode))
		r = (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode & ~WITHOUT_MEANING);
	return r;
}

__attribute__((visibility("default"))) int
fchmod(int fd, mode_t mode)
{
	int r = (int)syscall(SYS_fchmod, fd, mode);

	if (is_for_the_bits(r, mode))
		r = (int)syscall(SYS_fchmod, fd, mode & ~WITHOUT_MEANING);
	return r;
}

/* The effect of flags in the C library depends on the kernel. */
__attribute__((visibility("default"))) int
fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	int (*library)(int, const char *, mode_t, int);
	int r;

	*(void **)&library = dlsym(RTLD_NEXT, "fchmodat");
	if (library == NULL) {
		errno = ENOSYS;
		return -1;
	}
	r = library(dir, path, mode, flags);
	if (is_for_the_bits(r, mode))
		r = library(dir, path, mode & ~WITHOUT_MEANING, flags);
	return r;
}
