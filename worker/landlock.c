/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every worker. It makes rules after its mounts and before the syscall filter; the
 * script's process enters them.
 * The rules refer to inodes of the root and of the worker's own tmpfs. */
#include "worker/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

/* Not in the oldest supported kernel headers. */
#define FS_TRUNCATE (1ULL << 14)		/* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15)		/* ABI 5 */
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)		/* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)
#define LOG_SAME_EXEC_OFF (1U << 0)		/* ABI 7 */

#define ABI_NEWEST 7

#define FS_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
	LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_ABI_1 (LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1)
#define FS_DEVICE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | \
	FS_IOCTL_DEV)

struct ruleset {
	uint64_t fs;
	uint64_t net; /* from ABI 4: none; the network namespace is empty */
	uint64_t scoped;	/* from ABI 6 */
};

/* /dev/zero open for writing can be mapped shared, which makes memory that only a controller
 * counts. */
static const struct {
	const char *path;
	uint64_t access;
	bool counted, not_counted;	/* hosts to which the rule applies */
	bool terminals;			/* only where a jail has them */
} rules[] = {
	{ "/", FS_READ, true, true, false },
	{ "/dev", FS_DEVICE, true, false, false },
	{ "/dev/null", FS_DEVICE, false, true, false },
	{ "/dev/full", FS_DEVICE, false, true, false },
	{ "/dev/random", FS_DEVICE, false, true, false },
	{ "/dev/urandom", FS_DEVICE, false, true, false },
	{ "/dev/pts", FS_DEVICE, false, true, true },
	{ "/dev/tty", FS_DEVICE, false, true, true },
	{ "/dev/shm", UINT64_MAX, true, true, false },
	{ "/run", UINT64_MAX, true, true, false },
	{ "/tmp", UINT64_MAX, true, true, false },
	{ "/workspace", UINT64_MAX, true, true, false },
	{ "/volume", UINT64_MAX, true, true, false },
};

unsigned int
landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 0)
		return 0;
	return abi > ABI_NEWEST ? ABI_NEWEST : (unsigned int)abi;
}

static uint64_t
handled_fs(unsigned int abi)
{
	uint64_t fs = FS_ABI_1;

	if (abi >= 2)
		fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		fs |= FS_TRUNCATE;
	if (abi >= 5)
		fs |= FS_IOCTL_DEV;
	return fs;
}

static int
add_rule(int set, const char *path, uint64_t access)
{
	own_fd int at = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {
		.allowed_access = access,
		.parent_fd = at,
	};

	if (at < 0)
		return -errno;
	return syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule,
		       0) < 0 ? -errno : 0;
}

int
landlock_make(unsigned int abi, bool memory_counted, bool terminals, int *rules_r)
{
	struct ruleset set = { .fs = handled_fs(abi) };
	size_t size = abi >= 6 ? sizeof(set) : sizeof(set.fs);
	own_fd int fd = -1;

	*rules_r = -1;
	if (abi == 0)
		return 0;
	/* All processes within the worker are of one domain and can still connect to each other. */
	if (abi >= 6)
		set.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	fd = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		int r = 0;

		if ((memory_counted ? rules[i].counted : rules[i].not_counted) &&
		    (terminals || !rules[i].terminals))
			r = add_rule(fd, rules[i].path, rules[i].access & set.fs);
		if (r < 0)
			return r;
	}
	*rules_r = give_fd(fd);
	return 0;
}

int
landlock_enter(unsigned int abi, int made)
{
	own_fd int fd = made;

	if (abi == 0)
		return 0;
	return syscall(SYS_landlock_restrict_self, fd, abi >= 7 ? LOG_SAME_EXEC_OFF : 0) < 0
	       ? -errno : 0;
}
