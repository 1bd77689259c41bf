/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress, once, before it receives the first listening socket.
 * Owns:    nothing.
 * Files are refused by two barriers, the filter and Landlock, because a kernel may lack Landlock.
 */
#include "egress/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "base/own.h"
#include "egress/proxy.h"

/* Not in the oldest supported kernel headers. */
#define FS_TRUNCATE (1ULL << 14)		/* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15)		/* ABI 5 */
#define NET_BIND_TCP (1ULL << 0)		/* ABI 4 */
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)		/* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)
#define ABI_NEWEST 6

/* ---- capabilities and limits ---- */

static int
drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } }, now[2];

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, none) < 0 || syscall(SYS_capget, &head, now) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		if (now[i].effective || now[i].permitted || now[i].inheritable)
			return -EPERM;
	return 0;
}

static int
set_limits(void)
{
	static const struct {
		int what;
		rlim_t most;
	} limits[] = {
		{ RLIMIT_MEMLOCK, 0 }, { RLIMIT_MSGQUEUE, 0 },
#ifndef WITH_SANITIZERS
		{ RLIMIT_DATA, PROXY_DATA_MAX },
#endif
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit now, limit = { limits[i].most, limits[i].most };

		if (getrlimit(limits[i].what, &now) < 0)
			return -errno;
		if (now.rlim_max != RLIM_INFINITY && now.rlim_max < limit.rlim_max)
			limit.rlim_cur = limit.rlim_max = now.rlim_max;
		if (setrlimit(limits[i].what, &limit) < 0)
			return -errno;
	}
	return 0;
}

static int
no_new_privileges(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

/* ---- Landlock: everything is handled and nothing allowed ---- */

static uint32_t landlock_found;

static int
filter_landlock(void)
{
	struct {
		uint64_t fs, net, scoped;
	} set = { .fs = LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1 };
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);
	own_fd int fd = -1;
	size_t size;

	if (abi <= 0)
		return 0;
	landlock_found = (uint32_t)abi;
	if (abi >= 2)
		set.fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		set.fs |= FS_TRUNCATE;
	if (abi >= 4)
		set.net = NET_BIND_TCP;
	if (abi >= 5)
		set.fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		set.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	size = abi >= 6 ? sizeof(set) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
	fd = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	return 0;
}

/* ---- seccomp: what a loop over sockets needs ---- */

static const char *const calls[] = {
	/* existing descriptors */
	"read", "write", "readv", "writev", "close", "fcntl", "shutdown",
	/* sockets; the rows below limit their kinds */
	"accept4", "connect", "getsockname", "getpeername", "getsockopt", "setsockopt",
	"sendto", "recvfrom", "sendmsg", "recvmsg",
	/* waiting, time, random numbers */
	"epoll_ctl", "epoll_pwait", "clock_gettime", "gettimeofday", "getrandom",
	"restart_syscall", "nanosleep", "clock_nanosleep", "timer_settime",
	/* memory */
	"brk", "mmap", "munmap", "mremap", "madvise", "futex",
	/* the end */
	"rt_sigreturn", "rt_sigprocmask", "rt_sigaction", "exit", "exit_group", "getpid",
	"gettid", "tgkill",
#ifdef WITH_SANITIZERS
	"mprotect", "sigaltstack", "sched_yield", "getuid", "prctl", "rt_sigtimedwait",
#endif
};

/* Calls that exist on some architectures only. */
static const char *const old_calls[] = { "epoll_wait", "time" };

static int
allow_sockets(scmp_filter_ctx ctx)
{
	static const int families[] = { AF_INET, AF_INET6 };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };
	int r = 0;

	for (int f = 0; f < 2; f++)
		for (int t = 0; t < 2 && r == 0; t++)
			r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
				SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[f], 0),
				SCMP_A1(SCMP_CMP_MASKED_EQ,
					~(scmp_datum_t)(SOCK_NONBLOCK | SOCK_CLOEXEC),
					(scmp_datum_t)types[t]));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)FIONREAD, 0));
	return r;
}

static int
syscall_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < sizeof(calls) / sizeof(calls[0]); i++) {
		int nr = seccomp_syscall_resolve_name(calls[i]);

		r = nr == __NR_SCMP_ERROR ? -ENOENT
					  : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	for (size_t i = 0; r == 0 && i < sizeof(old_calls) / sizeof(old_calls[0]); i++) {
		int nr = seccomp_syscall_resolve_name(old_calls[i]);

		if (nr >= 0)
			r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	if (r == 0)
		r = allow_sockets(ctx);
	if (r == 0)
		r = seccomp_load(ctx);
	if (ctx)
		seccomp_release(ctx);
	return r;
}

/* ---- the proof ---- */

/* Ways out that must be closed. */
static int
filter_prove(void)
{
	if (open("/", O_PATH | O_CLOEXEC) >= 0 || open("/etc/hosts", O_RDONLY | O_CLOEXEC) >= 0)
		return -EPERM;
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_NETLINK, SOCK_RAW, 0) >= 0 ||
	    socket(AF_INET, SOCK_RAW, 0) >= 0)
		return -EPERM;
	if (fork() >= 0)
		_exit(1);
	if (syscall(SYS_setns, 0, 0) >= 0 || syscall(SYS_unshare, 0) >= 0)
		return -EPERM;
	return 0;
}

int
filter_enter(uint32_t *landlock_r, const char **what_r)
{
	static const struct {
		const char *what;
		int (*enter)(void);
	} steps[] = {
		{ "capabilities", drop_capabilities },
		{ "limits", set_limits },
		{ "no new privileges", no_new_privileges },
		{ "landlock", filter_landlock },
		{ "syscall filter", syscall_filter },
		{ "proof", filter_prove },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int r = steps[i].enter();

		*what_r = steps[i].what;
		if (r < 0)
			return r;
	}
	*landlock_r = landlock_found;
	return 0;
}
