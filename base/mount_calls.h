/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls for mounts (Linux 5.2 to 5.12), as in their manual pages. The C library has had
 * functions for them since glibc 2.36; the programs also run with older ones.
 */
#ifndef BASE_MOUNT_CALLS_H
#define BASE_MOUNT_CALLS_H

#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int
call_open_tree(int dir, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir, path, flags);
}

static inline int
call_move_mount(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from_dir, from, to_dir, to, flags);
}

static inline int
call_mount_setattr(int dir, const char *path, unsigned int flags, const struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof(*attr));
}

static inline int
call_fsopen(const char *type, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int
call_fsconfig(int fs, unsigned int command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fs, command, key, value, aux);
}

static inline int
call_fsmount(int fs, unsigned int flags, unsigned int attributes)
{
	return (int)syscall(SYS_fsmount, fs, flags, attributes);
}

#endif
