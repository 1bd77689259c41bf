/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, before the loop.   Owns: nothing.
 * capabilities(7): afterwards no process of the service has a capability in the host's user
 * namespace. Its power over zygotes and workers comes from its uid, which made the outer
 * namespace that they live in (user_namespaces(7)). */
#include "host/privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/why.h"

/* SETUID and SETGID map ids other than the service's own. SETPCAP empties the bounding set. Root
 * started by hand also has CHOWN, to hand over its cgroups and sockets. */
static const int needed[] = { CAP_SETUID, CAP_SETGID, CAP_SETPCAP };

const int *
privilege_list(size_t *n_r)
{
	*n_r = sizeof(needed) / sizeof(needed[0]);
	return needed;
}

static int
set_capabilities(uint64_t set)
{
	struct __user_cap_header_struct head = { .version =
							 _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)set, .permitted = (uint32_t)set },
		{ .effective = (uint32_t)(set >> 32),
		  .permitted = (uint32_t)(set >> 32) },
	};

	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static int
get_capabilities(uint64_t *effective_r, uint64_t *permitted_r, uint64_t *inheritable_r)
{
	struct __user_cap_header_struct head = { .version =
							 _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	*effective_r = data[0].effective | (uint64_t)data[1].effective << 32;
	*permitted_r = data[0].permitted | (uint64_t)data[1].permitted << 32;
	*inheritable_r = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return 0;
}

bool
privilege_may_map(void)
{
	const uint64_t both = 1ull << CAP_SETUID | 1ull << CAP_SETGID;
	uint64_t effective = 0, permitted, inheritable;

	return get_capabilities(&effective, &permitted, &inheritable) == 0 &&
	       (effective & both) == both;
}

/* Empties the bounding set where possible; an ordinary user lacks CAP_SETPCAP: see the header. */
static int
drop_bounding(void)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap) < 0)
			return errno == EPERM ? 0 : -errno;
	return 0;
}

int
privilege_become(uid_t uid, gid_t gid)
{
	int r = drop_bounding();

	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	/* Otherwise the map files of the child belong to root. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return -errno;
	return set_capabilities(1ull << CAP_SETUID | 1ull << CAP_SETGID);
}

int
privilege_drop(void)
{
	int r;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	r = drop_bounding();
	if (r == 0)
		r = set_capabilities(0);
	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int
check_line(const char *status, const char *key, const char *expected, struct why *why_r)
{
	const char *line = strstr(status, key);
	size_t len = strlen(expected);

	if (line == NULL)
		return why_say(why_r, -EPERM, "",
			       "privilege: no %s in /proc/self/status", key + 1);
	line += strlen(key);
	line += strspn(line, " \t");
	if (strncmp(line, expected, len) != 0 ||
	    (line[len] != '\n' && line[len] != '\0'))
		return why_say(why_r, -EPERM, "",
			       "privilege: %s is %.*s after the drop, not %s", key + 1,
			       (int)strcspn(line, "\n"), line, expected);
	return 0;
}

static int
privilege_prove_status(uid_t uid, gid_t gid, struct why *why_r)
{
	static const char none[] = "0000000000000000";
	own_fd int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char status[8192], uids[64], gids[64];
	ssize_t n;
	int r = 0;

	n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (n <= 0)
		return why_say(why_r, -EPERM, "",
			       "privilege: cannot read /proc/self/status");
	status[n] = '\0';
	snprintf(uids, sizeof(uids), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
	snprintf(gids, sizeof(gids), "%u\t%u\t%u\t%u", gid, gid, gid, gid);
	const struct {
		const char *key, *value;
	} rows[] = {
		{ "\nCapInh:", none }, { "\nCapPrm:", none }, { "\nCapEff:", none },
		{ "\nCapAmb:", none }, { "\nNoNewPrivs:", "1" },
		{ "\nUid:", uids },    { "\nGid:", gids },
	};
	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		r = check_line(status, rows[i].key, rows[i].value, why_r);
	return r;
}

int
privilege_prove(uid_t uid, gid_t gid, struct why *why_r)
{
	uint64_t effective = 0, permitted = 0, inheritable = 0;
	int r;

	r = privilege_prove_status(uid, gid, why_r);
	if (r < 0)
		return r;
	r = get_capabilities(&effective, &permitted, &inheritable);
	if (r < 0 || (effective | permitted | inheritable) != 0)
		return why_say(why_r, -EPERM, "",
			       "privilege: capget still shows capabilities");
	/* The last proof: attempts to become root, and to get a capability, must fail. */
	if (uid != 0 && (setresuid(0, 0, 0) == 0 || setresgid(0, 0, 0) == 0))
		return why_say(why_r, -EPERM, "", "privilege: root could be regained");
	if (set_capabilities(1ull << CAP_SETUID) == 0)
		return why_say(why_r, -EPERM, "",
			       "privilege: a capability could be regained");
	return 0;
}
