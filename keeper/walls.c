/* Runs in: the keeper's children.   Owns: nothing. */
#include "keeper/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#define BOTH (WALLS_STORE | WALLS_READER)
#define NEW_NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
	CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* ---- calls ---- */

static const struct {
	const char *call;
	unsigned int whom;
	const char *reason;
} rows[] = {
	{ "read", BOTH, "streams" },		{ "write", BOTH, "streams, files" },
	{ "pread64", BOTH, "the wheel" },	{ "close", BOTH, "descriptors" },
	{ "lseek", WALLS_STORE, "the list of the files" },
	{ "fcntl", WALLS_STORE, "stdio asks how a file is open" },
	{ "openat", WALLS_STORE, "files of the store" },
	{ "newfstatat", WALLS_STORE, "files of the store" },
	{ "fstat", WALLS_STORE, "files of the store" },
	{ "mkdirat", WALLS_STORE, "the tree" },
	{ "unlinkat", WALLS_STORE, "what was half made" },
	{ "getdents64", WALLS_STORE, "what was half made" },
	{ "renameat2", WALLS_STORE, "the name of the set" },
	{ "syncfs", WALLS_STORE, "the disk" },	{ "fsync", WALLS_STORE, "the disk" },
	{ "sendmsg", WALLS_STORE, "TAKEN" },
	{ "pipe2", WALLS_STORE, "to a reader" }, { "wait4", WALLS_STORE, "for a reader" },
	{ "set_robust_list", WALLS_STORE, "fork" },
	{ "prctl", WALLS_STORE, "a reader, before its own walls" },
	{ "prlimit64", WALLS_STORE, "a reader, before its own walls" },
	{ "seccomp", WALLS_STORE, "a reader's own walls" },
	{ "capset", WALLS_STORE, "a reader's own walls" },
	{ "close_range", WALLS_STORE, "a reader, before its own walls" },
	{ "dup3", WALLS_STORE, "a reader, before its own walls" },
	{ "getpid", BOTH, "abort" },		{ "gettid", BOTH, "abort" },
	{ "getppid", WALLS_STORE, "whether a parent is gone" },
	{ "brk", BOTH, "memory" },		{ "munmap", BOTH, "memory" },
	{ "mremap", BOTH, "memory" },		{ "madvise", BOTH, "memory" },
	{ "futex", BOTH, "locks of the C library" },
	{ "clock_gettime", BOTH, "time" },	{ "getrandom", BOTH, "malloc" },
	{ "rt_sigreturn", BOTH, "signals" },	{ "rt_sigprocmask", BOTH, "signals" },
	{ "rt_sigaction", BOTH, "signals" },	{ "restart_syscall", BOTH, "the kernel's own" },
	{ "exit", BOTH, "the end" },		{ "exit_group", BOTH, "the end" },
	{ "tgkill", BOTH, "abort" },
#ifdef WITH_SANITIZERS
	{ "mprotect", BOTH, "sanitizers" },	{ "sigaltstack", BOTH, "sanitizers" },
	{ "sched_yield", BOTH, "sanitizers" },
#endif
};

/* Calls that exist on some architectures only. */
static const char *const old_calls[] = { "dup2" };

/* Memory, but none that is executable; sanitizers need all kinds. */
static int
allow_memory(scmp_filter_ctx filter)
{
#ifdef WITH_SANITIZERS
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 0);
#else
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
#endif
}

static int
allow_fork(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0));
}

static int
add_rows(scmp_filter_ctx filter, enum walls_for whom)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(*rows); i++) {
		int nr = seccomp_syscall_resolve_name(rows[i].call);

		if (nr == __NR_SCMP_ERROR)
			return -ENOENT;
		if (rows[i].whom & whom)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0);
	}
	for (size_t i = 0; r == 0 && i < sizeof(old_calls) / sizeof(*old_calls); i++) {
		int nr = seccomp_syscall_resolve_name(old_calls[i]);

		if (nr >= 0 && whom == WALLS_STORE)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0);
	}
	return r;
}

/* Ways out that must be closed. */
static int
prove(enum walls_for whom)
{
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0 ||
	    syscall(SYS_setns, 0, 0) >= 0 || syscall(SYS_unshare, 0) >= 0 ||
	    syscall(SYS_execve, "", NULL, NULL) >= 0 || errno != EPERM)
		return -EPERM;
	if (whom == WALLS_READER &&
	    (open("/", O_PATH | O_CLOEXEC) >= 0 || errno != EPERM || fork() >= 0))
		return -EPERM;
	return 0;
}

/* ---- all of it ---- */

static int
drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0)
		return -errno;
	return 0;
}

static int
load_filter(enum walls_for whom)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? add_rows(filter, whom) : -ENOMEM;

	if (r == 0)
		r = allow_memory(filter);
	if (r == 0 && whom == WALLS_STORE)
		r = allow_fork(filter);
	if (r == 0)
		r = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return r;
}

int
walls_enter(enum walls_for whom)
{
	int r = drop_capabilities();

	if (r == 0)
		r = load_filter(whom);
	return r < 0 ? r : prove(whom);
}
