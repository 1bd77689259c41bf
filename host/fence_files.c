/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before its loop.   Owns: the descriptor of a set of rules. */
#include "host/fence_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/xalloc.h"

/* Not in the oldest supported kernel headers. */
#define FS_TRUNCATE (1ULL << 14)		/* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15)		/* ABI 5 */

#define FS_ABI_1 (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1)
#define OF_FILES (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)

#define SCOPE_ABSTRACT_UNIX (1ULL << 0)		/* ABI 6 */

struct fence_files {
	uint64_t handled;
	int fd;
};

/* As the kernel has it since ABI 6. Not in the oldest supported kernel headers. */
struct fence_rules {
	uint64_t fs, net, scoped;
};

static bool entered;

struct fence_files *
fence_files_new(void)
{
	struct fence_files *files = xcalloc(1, sizeof(*files));
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);
	int error = errno;

	files->handled = FS_ABI_1 | (abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) |
			 (abi >= 3 ? FS_TRUNCATE : 0) | (abi >= 5 ? FS_IOCTL_DEV : 0);
	files->fd = -1;
	if (abi > 0) {
		/* No message to sockets that have no file. A signal would be refused, too, if it
		 * were scoped: workers are in no domain of this process. */
		const char *notify = getenv("NOTIFY_SOCKET");
		struct fence_rules rules = { .fs = files->handled, .scoped =
			abi >= 6 && (notify == NULL || *notify != '@') ? SCOPE_ABSTRACT_UNIX : 0 };

		files->fd = (int)syscall(SYS_landlock_create_ruleset, &rules,
					 abi >= 6 ? sizeof(rules) : sizeof(rules.fs), 0);
		error = errno;
	}
	if (files->fd >= 0)
		return files;
	free(files);
	errno = error;
	return NULL;
}

void
fence_files_free(struct fence_files *files)
{
	if (files == NULL)
		return;
	close(files->fd);
	free(files);
}

static uint64_t
fence_rights(const struct fence_files *files, enum fence_access access, bool directory)
{
	uint64_t all = 0;

	switch (access) {
	case FENCE_READ:
		all = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
		break;
	case FENCE_WRITE:
		all = OF_FILES | LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |
		      LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |
		      LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER;
		break;
	case FENCE_SOCKETS:
		all = LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_SOCK;
		break;
	}
	return all & files->handled & (directory ? UINT64_MAX : OF_FILES);
}

int
fence_files_add_fd(struct fence_files *files, int fd, enum fence_access access)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	rule.allowed_access = fence_rights(files, access, S_ISDIR(st.st_mode));
	return syscall(SYS_landlock_add_rule, files->fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
		       0) < 0 ? -errno : 0;
}

int
fence_files_add(struct fence_files *files, const char *folder, enum fence_access access)
{
	own_fd int fd = folder != NULL ? open(folder, O_PATH | O_CLOEXEC) : -1;

	if (folder == NULL)
		return 0;
	if (fd < 0)
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : -errno;
	return fence_files_add_fd(files, fd, access);
}

static int
add_folder_of(struct fence_files *files, const char *file, enum fence_access access)
{
	const char *slash = strrchr(file, '/');
	char folder[PATH_MAX];

	if (slash == NULL)
		return fence_files_add(files, ".", access);
	if (slash == file)
		return fence_files_add(files, file, access);
	if (slash - file >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(folder, file, (size_t)(slash - file));
	folder[slash - file] = '\0';
	return fence_files_add(files, folder, access);
}

int
fence_files_add_around(struct fence_files *files, const char *file, enum fence_access access)
{
	char target[PATH_MAX];
	int r = file != NULL ? add_folder_of(files, file, access) : 0;

	if (r == 0 && file != NULL && realpath(file, target) != NULL)
		r = add_folder_of(files, target, access);
	return r;
}

/* Checks that this process cannot open the root directory, /proc and its own memory. */
static int
fence_files_prove(void)
{
	static const char *const tried[] = { "/", "/proc/self/mem", "/proc" };

	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		own_fd int fd = open(tried[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0 || (errno != EACCES && errno != ENOENT))
			return -ENOTRECOVERABLE;
	}
	return 0;
}

int
fence_files_enter(const struct fence_files *files)
{
	int r;

	if (syscall(SYS_landlock_restrict_self, files->fd, 0) < 0)
		return -errno;
	r = fence_files_prove();
	entered = r == 0;
	return r;
}

bool
fence_files_entered(void)
{
	return entered;
}
