/* Runs in: the supervisor before its loop; the launcher before its loop.   Owns: nothing. */
#include "host/fence.h"

#include <errno.h>
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

/* The kernel looks at the lower half alone of what it takes for an int. */
#define INT_MASK 0xffffffffu

/* ---- the supervisor's calls ---- */

static const char *const calls[] = {
	/* descriptors that are there */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "close", "close_range",
	"dup", "dup3", "fcntl", "lseek", "ftruncate", "fallocate", "fsync", "fdatasync", "flock",
	"sendfile", "splice", "copy_file_range",
	/* new ones that are nobody else's */
	"pipe2", "socketpair", "memfd_create", "eventfd2", "timerfd_create", "timerfd_settime",
	"signalfd4", "inotify_init1", "inotify_add_watch", "inotify_rm_watch",
	/* sockets; which families and options is said below */
	"accept4", "connect", "bind", "getsockname", "getpeername", "shutdown", "sendto",
	"recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg",
	/* files: configuration, tokens, records, packages, cgroups, /proc of workers */
	"openat", "fstat", "newfstatat", "statx", "fstatfs", "statfs", "faccessat", "faccessat2",
	"readlinkat", "getdents64", "mkdirat", "unlinkat", "renameat", "renameat2", "linkat",
	"fchmod", "fchmodat", "umask", "getcwd",
	/* waiting, time, chance */
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "ppoll", "pselect6",
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "getrandom",
	"timer_create", "timer_settime", "timer_gettime", "timer_delete", "restart_syscall",
	/* memory */
	"brk", "munmap", "mremap", "madvise", "futex", "mincore",
	/* its children, which it did not make itself */
	"waitid", "wait4", "pidfd_send_signal",
	/* itself */
	"getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid",
	"getresgid", "getgroups", "getrusage", "uname", "sysinfo", "sched_yield",
	"sched_getaffinity", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
	"rt_sigtimedwait", "sigaltstack", "set_robust_list", "rseq", "exit", "exit_group",
};

/* Exist on some architectures only, or in newer kernels and libraries than the oldest. */
static const char *const other_calls[] = {
	"open", "stat", "lstat", "access", "readlink", "mkdir", "rmdir", "unlink", "rename",
	"link", "chmod", "poll", "select", "epoll_wait", "epoll_create", "eventfd", "pipe", "dup2",
	"time", "accept", "inotify_init", "signalfd", "getdents", "fstat64", "fstatat64",
};

struct row {
	const char *call;
	struct scmp_arg_cmp when[2];
};

#define IS_INT(which, value) { which, SCMP_CMP_MASKED_EQ, INT_MASK, value }
#define WITHOUT(which, bits) { which, SCMP_CMP_MASKED_EQ, bits, 0 }
#define OPTION(call, level, option) { call, { IS_INT(1, level), IS_INT(2, option) } }

#define SOCKET_PASSRIGHTS 83		/* since Linux 6.16 */

/* Not among the options: SO_PEERPIDFD and SO_PASSPIDFD, which give ways to signal clients. */
static const struct row rows[] = {
	{ "socket", { IS_INT(0, AF_UNIX) } },
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
allow(scmp_filter_ctx ctx, const char *name, bool must_exist)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		return must_exist ? -ENOENT : 0;
	return nr < 0 && !must_exist ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
}

static int
allow_rows(scmp_filter_ctx ctx)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];

		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
					   seccomp_syscall_resolve_name(row->call),
					   row->when[1].op != 0 ? 2 : 1, row->when);
	}
	/* abort() and raise(); and what the C library wakes itself with. */
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, INT_MASK, (uint32_t)getpid()));
	return r;
}

/* A tree of calls in place of a list: what the kernel has not found to be always allowed, and
 * remembers as such, takes some steps and not a hundred. */
static int
load(scmp_filter_ctx ctx)
{
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	return r == 0 ? seccomp_load(ctx) : r;
}

static int
syscall_filter(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = ctx ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
		r = allow(ctx, calls[i], true);
	for (size_t i = 0; r == 0 && i < sizeof(other_calls) / sizeof(other_calls[0]); i++)
		r = allow(ctx, other_calls[i], false);
#ifdef WITH_SANITIZERS
	for (size_t i = 0; r == 0 && i < sizeof(sanitizer_calls) / sizeof(sanitizer_calls[0]); i++)
		r = allow(ctx, sanitizer_calls[i], false);
#endif
	if (r == 0)
		r = allow_rows(ctx);
	if (r == 0)
		r = load(ctx);
	if (ctx)
		seccomp_release(ctx);
	return r;
}

/* ---- the supervisor's other steps ---- */

static int
no_core(void)
{
	static const struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

/* Each of these fails by the filter; without it none would say EPERM. */
static int
prove(void)
{
	const long tried[][4] = {
		{ SYS_setns, -1 }, { SYS_unshare, 0 }, { SYS_clone3, 0 }, { SYS_execve, 0 },
		{ SYS_ptrace, -1, -1 }, { SYS_pidfd_open, -1 }, { SYS_pidfd_getfd, -1, -1 },
		{ SYS_process_vm_writev, -1 }, { SYS_kill, getpid(), 0 },
		{ SYS_socket, AF_INET, SOCK_STREAM }, { SYS_io_uring_setup, 0 },
		{ SYS_getsockopt, -1, SOL_SOCKET, 77 },		/* SO_PEERPIDFD */
	};

	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++)
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
		{ "no core", no_core },
		{ "syscall filter", syscall_filter },
		{ "proof", prove },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int r = steps[i].enter();

		*what_r = steps[i].what;
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the family's ---- */

/* Ways into other processes, kernel code that nobody here needs, and the machine itself. The
 * filters of workers refuse them too; this one holds in zygotes and the keeper as well. */
static const char *const refused[] = {
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
	"process_madvise", "process_mrelease", "migrate_pages", "move_pages",
	"bpf", "perf_event_open", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"userfaultfd", "fanotify_init", "fanotify_mark", "lookup_dcookie", "open_by_handle_at",
	"add_key", "request_key", "keyctl",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup",
	"settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "stime",
	"iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "pciconfig_read", "pciconfig_write",
	"pciconfig_iobase", "nfsservctl", "uselib", "_sysctl", "create_module", "afs_syscall",
};

int
fence_family(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int r = ctx ? 0 : -ENOMEM;

	/* As the workers' own filter says it. */
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	for (size_t i = 0; r == 0 && i < sizeof(refused) / sizeof(refused[0]); i++) {
		int nr = seccomp_syscall_resolve_name(refused[i]);

		if (nr >= 0)
			r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	if (r == 0)
		r = load(ctx);
	if (ctx)
		seccomp_release(ctx);
	return r;
}
