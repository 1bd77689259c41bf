/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, the launcher and the helpers, each before its loop; a child of a helper,
 * before its job.   Owns: nothing. */
#include "host/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* For an int argument the kernel reads the lower half only. */
#define INT_MASK 0xffffffffu
#define INT_SIGN 0x80000000u
#define SOCKET_TYPE 0xfu		/* of the second argument of socket */

/* ---- the supervisor's calls ---- */

static const char *const calls[] = {
	/* existing descriptors */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "close", "close_range",
	"dup", "dup3", "lseek", "ftruncate", "fallocate", "fsync", "fdatasync", "flock",
	"sendfile", "splice", "copy_file_range",
	/* new descriptors that reach nothing else */
	"pipe2", "socketpair", "memfd_create", "eventfd2", "timerfd_create", "timerfd_settime",
	"signalfd4", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	/* sockets; the rows below limit families and options. It connects to nobody */
	"accept4", "getsockname", "getpeername", "shutdown", "sendto",
	"recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg",
	/* files: configuration, tokens, records, packages, cgroups; see fence_files.h */
	"openat", "fstat", "newfstatat", "statx", "fstatfs", "statfs", "faccessat", "faccessat2",
	"readlinkat", "getdents64", "mkdirat", "unlinkat", "renameat", "renameat2", "linkat",
	"fchmod", "umask", "getcwd",
	/* waiting, time, random numbers */
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "ppoll", "pselect6",
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "getrandom",
	"timer_create", "timer_settime", "timer_gettime", "timer_delete", "restart_syscall",
	/* memory */
	"brk", "munmap", "mremap", "madvise", "futex", "mincore",
	/* its children, which the launcher made */
	"waitid", "wait4",
	/* the process itself */
	"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid",
	"getresgid", "getgroups", "getrusage", "uname", "sysinfo", "sched_yield",
	"sched_getaffinity", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
	"rt_sigtimedwait", "sigaltstack", "set_robust_list", "rseq", "exit", "exit_group",
};

/* Calls that exist on some architectures only, or not in the oldest supported kernels and
 * libraries. */
static const char *const other_calls[] = {
	"open", "stat", "lstat", "access", "readlink", "mkdir", "rmdir", "unlink", "rename",
	"link", "poll", "select", "epoll_wait", "epoll_create", "eventfd", "pipe", "dup2",
	"time", "accept", "inotify_init", "signalfd", "getdents", "fstat64", "fstatat64",
};

struct row {
	const char *call;
	struct scmp_arg_cmp when[2];
};

#define IS_INT(which, value) { which, SCMP_CMP_MASKED_EQ, INT_MASK, value }
#define WITHOUT(which, bits) { which, SCMP_CMP_MASKED_EQ, bits, 0 }
#define IS_NOT(which, value) { which, SCMP_CMP_NE, value, 0 }	/* in its upper half either */
#define HAS(which, bit) { which, SCMP_CMP_MASKED_EQ, bit, bit }
#define OPTION(call, level, option) { call, { IS_INT(1, level), IS_INT(2, option) } }

#define FCNTL(command) { "fcntl", { IS_INT(1, command) } }

#define SOCKET_PASSPIDFD 76
#define SOCKET_PEERPIDFD 77
#define SOCKET_PASSRIGHTS 83		/* since Linux 6.16 */

/* SO_PEERPIDFD and SO_PASSPIDFD are not allowed: they give ways to signal clients. */
static const struct row rows[] = {
	/* For the service manager and the journal. */
	{ "socket", { IS_INT(0, AF_UNIX), { 1, SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_DGRAM } } },
	/* Not F_SETOWN and F_SETSIG, which send signals to any process of the uid. */
	FCNTL(F_DUPFD), FCNTL(F_DUPFD_CLOEXEC), FCNTL(F_GETFD), FCNTL(F_SETFD), FCNTL(F_GETFL),
	FCNTL(F_SETFL), FCNTL(F_ADD_SEALS), FCNTL(F_GET_SEALS),
	/* Times and modes of descriptors: a path would lead anywhere, which Landlock allows. */
	{ "utimensat", { { 1, SCMP_CMP_EQ, 0, 0 } } },
	{ "pidfd_send_signal", { IS_INT(3, 0) } },	/* to one process, not to its group */
	OPTION("getsockopt", SOL_SOCKET, SO_ERROR),
	OPTION("getsockopt", SOL_SOCKET, SO_TYPE),
	OPTION("getsockopt", SOL_SOCKET, SO_DOMAIN),
	OPTION("getsockopt", SOL_SOCKET, SO_PROTOCOL),
	OPTION("getsockopt", SOL_SOCKET, SO_ACCEPTCONN),
	OPTION("getsockopt", SOL_SOCKET, SO_PEERCRED),
	OPTION("getsockopt", SOL_SOCKET, SO_PEERGROUPS),
	OPTION("getsockopt", SOL_SOCKET, SO_SNDBUF),
	OPTION("getsockopt", SOL_SOCKET, SO_RCVBUF),
	OPTION("getsockopt", IPPROTO_TCP, TCP_INFO),
	OPTION("setsockopt", SOL_SOCKET, SO_SNDBUF),
	OPTION("setsockopt", SOL_SOCKET, SO_RCVBUF),
	OPTION("setsockopt", SOL_SOCKET, SO_SNDTIMEO),
	OPTION("setsockopt", SOL_SOCKET, SO_RCVTIMEO),
	OPTION("setsockopt", SOL_SOCKET, SO_KEEPALIVE),
	OPTION("setsockopt", SOL_SOCKET, SO_LINGER),
	OPTION("setsockopt", SOL_SOCKET, SO_PASSCRED),
	OPTION("setsockopt", SOL_SOCKET, SOCKET_PASSRIGHTS),
	OPTION("setsockopt", IPPROTO_TCP, TCP_NODELAY),
	{ "ioctl", { IS_INT(1, FIONREAD) } },
	{ "ioctl", { IS_INT(1, FIONBIO) } },
	{ "prlimit64", { IS_INT(0, 0) } },
#ifndef WITH_SANITIZERS
	{ "mmap", { WITHOUT(2, PROT_EXEC) } },
	{ "mprotect", { WITHOUT(2, PROT_EXEC) } },
#endif
};

#ifdef WITH_SANITIZERS
static const char *const sanitizer_calls[] = { "mmap", "mprotect", "prctl", "readlink" };
#endif

static int
fence_allow(scmp_filter_ctx ctx, const char *name, bool must_exist)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		return must_exist ? -ENOENT : 0;
	return nr < 0 && !must_exist ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
}

static int
fence_add_rows(scmp_filter_ctx ctx, uint32_t action, const struct row *row, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = seccomp_rule_add_array(ctx, action, seccomp_syscall_resolve_name(row[i].call),
					   row[i].when[1].op != 0 ? 2 : 1, row[i].when);
	return r;
}

static int
allow_rows(scmp_filter_ctx ctx)
{
	int r = fence_add_rows(ctx, SCMP_ACT_ALLOW, rows, N(rows));

	/* abort() and raise(); and what the C library wakes itself with. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, INT_MASK, (uint32_t)getpid()));
	return r;
}

/* A binary tree of calls instead of a list. A call that the kernel has not cached as always
 * allowed then takes a few steps, not a hundred. It holds for all threads of the process. r: not 0
 * if the filter could not be made, which is returned. Releases the filter; NULL is fine. */
static int
fence_load(scmp_filter_ctx ctx, int r)
{
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (r == 0)
		r = seccomp_load(ctx);
	if (ctx)
		seccomp_release(ctx);
	return r;
}

static int
fence_syscall_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < N(calls); i++)
		r = fence_allow(ctx, calls[i], true);
	for (size_t i = 0; r == 0 && i < N(other_calls); i++)
		r = fence_allow(ctx, other_calls[i], false);
#ifdef WITH_SANITIZERS
	for (size_t i = 0; r == 0 && i < N(sanitizer_calls); i++)
		r = fence_allow(ctx, sanitizer_calls[i], false);
#endif
	if (r == 0)
		r = allow_rows(ctx);
	return fence_load(ctx, r);
}

/* ---- the supervisor's other steps ---- */

static int
not_dumpable(void)
{
	return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

/* Calls that must fail by the filter; without it none would fail with EPERM. */
static int
fence_prove(void)
{
	const long tried[][4] = {
		{ SYS_setns, -1 }, { SYS_unshare, 0 }, { SYS_clone3, 0 }, { SYS_execve, 0 },
		{ SYS_ptrace, -1, -1 }, { SYS_pidfd_open, -1 }, { SYS_pidfd_getfd, -1, -1 },
		{ SYS_process_vm_writev, -1 }, { SYS_kill, getpid(), 0 },
		{ SYS_socket, AF_INET, SOCK_STREAM }, { SYS_io_uring_setup, 0 },
		{ SYS_socket, AF_UNIX, SOCK_STREAM }, { SYS_connect, -1 }, { SYS_bind, -1 },
		{ SYS_fcntl, -1, F_SETOWN }, { SYS_fcntl, -1, F_SETSIG }, { SYS_fchmodat, -1 },
		{ SYS_getsockopt, -1, SOL_SOCKET, SOCKET_PEERPIDFD },
	};

	for (size_t i = 0; i < N(tried); i++)
		if (syscall(tried[i][0], tried[i][1], tried[i][2], tried[i][3], 0, 0, 0) != -1 ||
		    errno != EPERM)
			return -ENOTRECOVERABLE;
	return 0;
}

int
fence_supervisor(const char **what_r)
{
	static const struct {
		const char *what;
		int (*enter)(void);
	} steps[] = {
		{ "not dumpable", not_dumpable },
		{ "syscall filter", fence_syscall_filter },
		{ "proof", fence_prove },
	};

	for (size_t i = 0; i < N(steps); i++) {
		int r = steps[i].enter();

		*what_r = steps[i].what;
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the usage helper's ---- */

static const char *const usage_calls[] = {
	"read", "close", "fstat", "newfstatat", "getdents64", "lseek", "statfs", "sendto", "recvfrom",
	"brk", "munmap", "mremap", "madvise", "futex", "rt_sigreturn", "restart_syscall", "exit_group",
	"clock_nanosleep", "nanosleep",
	"getpid", "gettid", "rt_sigprocmask",	/* of abort() */
};

static const struct row usage_rows[] = {
	{ "openat", { { 2, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY } } },
	{ "mmap", { WITHOUT(2, PROT_EXEC) } },
	{ "mprotect", { WITHOUT(2, PROT_EXEC) } },
	{ "kcmp", { IS_INT(2, KCMP_VM) } },
};

int
fence_usage(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < N(usage_calls); i++)
		r = fence_allow(ctx, usage_calls[i], false);
	if (r == 0)
		r = fence_add_rows(ctx, SCMP_ACT_ALLOW, usage_rows, N(usage_rows));
	return fence_load(ctx, r);
}

/* ---- the family's ---- */

/* Calls that reach other processes, kernel code that nothing here needs, and the machine itself.
 * The workers' filters refuse them too; this filter also holds in zygotes and the keeper. */
static const char *const refused[] = {
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
	"process_madvise", "process_mrelease", "migrate_pages", "move_pages",
	"bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"userfaultfd", "fanotify_init", "fanotify_mark", "lookup_dcookie", "open_by_handle_at",
	"add_key", "request_key", "keyctl",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup",
	"settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "stime",
	"iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "pciconfig_read", "pciconfig_write",
	"pciconfig_iobase", "nfsservctl", "uselib", "_sysctl", "create_module", "afs_syscall",
	"chroot", "name_to_handle_at", "setdomainname", "fspick", "memfd_secret", "ustat", "sysfs",
};

/* Kinds of sockets through which root of its own network namespace would reach packet filters,
 * tunnels and the like. NETLINK_ROUTE is not refused, because getaddrinfo(3) uses it. */
static const struct row sockets_refused[] = {
	{ "socket", { { 0, SCMP_CMP_GT, AF_NETLINK, 0 } } },
	{ "socket", { IS_INT(0, AF_NETLINK), IS_NOT(2, NETLINK_ROUTE) } },
	{ "socket", { IS_INT(0, AF_INET), { 1, SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_RAW } } },
	{ "socket", { IS_INT(0, AF_INET6), { 1, SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_RAW } } },
};

/* Programs, namespaces and mounts: neither a helper with jobs nor a module of a name service
 * needs them. */
static const char *const refused_to_helper[] = {
	"execve", "execveat", "vfork", "personality", "setns", "unshare", "chroot", "pivot_root",
	"mount", "umount", "umount2", "mount_setattr", "open_tree", "open_tree_attr", "move_mount",
	"fsopen", "fsconfig", "fsmount", "fspick", "sethostname", "setdomainname",
	"tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "pidfd_send_signal",
};

/* The helper may only fork copies of itself, and kill them. */
static const struct row rows_refused_to_helper[] = {
	{ "clone", { HAS(0, CLONE_NEWUSER) } }, { "clone", { HAS(0, CLONE_NEWNS) } },
	{ "clone", { HAS(0, CLONE_NEWPID) } }, { "clone", { HAS(0, CLONE_NEWNET) } },
	{ "clone", { HAS(0, CLONE_NEWIPC) } }, { "clone", { HAS(0, CLONE_NEWUTS) } },
	{ "clone", { HAS(0, CLONE_NEWCGROUP) } }, { "clone", { HAS(0, CLONE_PARENT) } },
	{ "kill", { IS_NOT(1, SIGKILL) } },
	{ "kill", { IS_INT(0, 0) } }, { "kill", { HAS(0, INT_SIGN) } },
	{ "prlimit64", { IS_NOT(0, 0) } },
	OPTION("getsockopt", SOL_SOCKET, SOCKET_PEERPIDFD),
	OPTION("setsockopt", SOL_SOCKET, SOCKET_PASSPIDFD),
};

static const char *const refused_to_job[] = { "fork", "kill" };

static int
fence_refuse(scmp_filter_ctx ctx, const char *const *name, size_t n)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		int nr = seccomp_syscall_resolve_name(name[i]);

		if (nr >= 0)
			r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	return r;
}

/* A filter that refuses nothing yet. */
static scmp_filter_ctx
refusing_nothing(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	/* The error is the same as in the workers' own filter. */
	if (ctx && seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)) == 0)
		return ctx;
	if (ctx)
		seccomp_release(ctx);
	return NULL;
}

static bool
is_known_family(unsigned int family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
	       family == AF_NETLINK;
}

static int
refuse_sockets(scmp_filter_ctx ctx)
{
	int r = fence_add_rows(ctx, SCMP_ACT_ERRNO(EPERM), sockets_refused, N(sockets_refused));

	for (unsigned int family = 0; r == 0 && family < AF_NETLINK; family++) {
		const struct row row = { "socket", { IS_INT(0, family) } };

		if (!is_known_family(family))
			r = fence_add_rows(ctx, SCMP_ACT_ERRNO(EPERM), &row, 1);
	}
	return r;
}

/* kcmp: refused too. */
static int
fence_common(scmp_filter_ctx ctx, bool kcmp)
{
	int r = ctx ? fence_refuse(ctx, refused, N(refused)) : -ENOMEM;

	if (r == 0 && kcmp)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(kcmp), 0);
	return r == 0 ? refuse_sockets(ctx) : r;
}

static int
fence_of_common(bool kcmp)
{
	scmp_filter_ctx ctx = refusing_nothing();
	int r = fence_common(ctx, kcmp);

	return fence_load(ctx, r);
}

int
fence_family(void)
{
	return fence_of_common(true);
}

int
fence_forker(void)
{
	return fence_of_common(false);
}

/* ---- a helper's and its jobs' ---- */

int
fence_helper(void)
{
	scmp_filter_ctx ctx = refusing_nothing();
	int r = fence_common(ctx, true);

	if (r == 0)
		r = fence_refuse(ctx, refused_to_helper, N(refused_to_helper));
	if (r == 0)
		r = fence_add_rows(ctx, SCMP_ACT_ERRNO(EPERM), rows_refused_to_helper,
				   N(rows_refused_to_helper));
	/* A filter cannot see the flags of clone3; the C library falls back to clone. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return fence_load(ctx, r);
}

int
fence_job(void)
{
	const struct row rows_refused[] = {
		{ "clone", { WITHOUT(0, CLONE_THREAD) } },	/* name services may have threads */
		{ "tgkill", { IS_NOT(0, (uint32_t)getpid()) } },	/* abort() and raise() */
	};
	scmp_filter_ctx ctx = refusing_nothing();
	int r = ctx ? fence_refuse(ctx, refused_to_job, N(refused_to_job)) : -ENOMEM;

	if (r == 0)
		r = fence_add_rows(ctx, SCMP_ACT_ERRNO(EPERM), rows_refused, N(rows_refused));
	return fence_load(ctx, r);
}
