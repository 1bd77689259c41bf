/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the program that starts the zygote.   Owns: nothing that outlives the call. */
#include "worker/root.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mount_calls.h"
#include "base/own.h"

static int
root_clone_tree(const char *path)
{
	int fd = call_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return fd < 0 ? -errno : fd;
}

static int
root_attach(int tree, int to, const char *path)
{
	return call_move_mount(tree, "", to, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int
root_enter(const char *dir, const char **what_r)
{
	own_fd int root = root_clone_tree(dir), devices = root_clone_tree("/dev"), proc = root_clone_tree("/proc");
	int r;

	*what_r = "opening the interpreter's root, /dev and /proc";
	if (root < 0 || devices < 0 || proc < 0)
		return root < 0 ? root : devices < 0 ? devices : proc;
	*what_r = "private mounts";
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	*what_r = "mounting the interpreter's root";
	r = root_attach(root, AT_FDCWD, "/");
	if (r < 0)
		return r;
	*what_r = "mounting /dev in the interpreter's root";
	r = root_attach(devices, root, "dev");
	if (r < 0)
		return r;
	*what_r = "mounting /proc in the interpreter's root";
	r = root_attach(proc, root, "proc");
	if (r < 0)
		return r;
	*what_r = "entering the interpreter's root";
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}
