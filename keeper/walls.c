/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the keeper and its children.   Owns: nothing. */
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
#define NOT_READER (WALLS_STORE | WALLS_KEEPER)
#define FILES (NOT_READER | WALLS_VOLUME)
#define ALL (BOTH | WALLS_VOLUME | WALLS_KEEPER)
#define VOLUME (WALLS_VOLUME | WALLS_MOUNTER)	/* a child has its parent's walls too */
#define NEW_NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | \
	CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* ---- calls ---- */

static const struct {
	const char *call;
	unsigned int whom;
	const char *reason;
} rows[] = {
	{ "read", ALL, "streams" },		{ "write", ALL, "streams, files" },
	{ "pread64", ALL, "the wheel" },	{ "close", ALL, "descriptors" },
	{ "lseek", FILES, "the list of the files" },
	{ "fcntl", FILES, "stdio asks how a file is open" },
	{ "openat", FILES, "files of the store" },
	{ "newfstatat", FILES, "files of the store" },
	{ "fstat", FILES, "files of the store" },
	{ "mkdirat", FILES, "the tree" },
	{ "unlinkat", FILES, "the unfinished sets" },
	{ "getdents64", FILES, "the unfinished sets" },
	{ "renameat2", FILES, "the name of the set" },
	{ "syncfs", NOT_READER, "the disk" },	{ "fsync", NOT_READER, "the disk" },
	{ "sendmsg", NOT_READER, "TAKEN" },
	{ "pipe2", NOT_READER, "to a reader" }, { "wait4", NOT_READER, "for a reader" },
	{ "set_robust_list", NOT_READER, "fork" },
	{ "prctl", NOT_READER, "a reader, before its own walls" },
	{ "prlimit64", NOT_READER, "a reader, before its own walls" },
	{ "seccomp", NOT_READER, "a reader's own walls" },
	{ "capset", NOT_READER, "a reader's own walls" },
	{ "close_range", NOT_READER, "a reader, before its own walls" },
	{ "dup3", NOT_READER, "a reader, before its own walls" },
	{ "getpid", ALL, "abort" },		{ "gettid", ALL, "abort" },
	{ "getppid", NOT_READER, "whether a parent is gone" },
	{ "brk", ALL, "memory" },		{ "munmap", ALL, "memory" },
	{ "mremap", ALL, "memory" },		{ "madvise", ALL, "memory" },
	{ "futex", ALL, "locks of the C library" },
	{ "clock_gettime", ALL, "time" },	{ "getrandom", ALL, "malloc" },
	{ "rt_sigreturn", ALL, "signals" },	{ "rt_sigprocmask", ALL, "signals" },
	{ "rt_sigaction", ALL, "signals" },	{ "restart_syscall", ALL, "the kernel's own" },
	{ "exit", ALL, "the end" },		{ "exit_group", ALL, "the end" },
	{ "tgkill", WALLS_KEEPER, "abort, also of its children, which have a rule of their own" },
	{ "writev", VOLUME, "answers to the kernel" },
	{ "pwrite64", VOLUME, "a volume's files" },
	{ "symlinkat", VOLUME, "a volume's files" },
	{ "readlinkat", VOLUME, "a volume's files" },
	{ "ftruncate", VOLUME, "a volume's files" },
	{ "fallocate", VOLUME, "a volume's files" },
	{ "fchmod", VOLUME, "a volume's files" },
	{ "utimensat", VOLUME, "a volume's files" },
	{ "fstatfs", VOLUME, "room on the disk" },
	{ "openat2", WALLS_FOLDER, "a folder's files, by no link" },
	{ "umask", VOLUME, "a volume's files have the modes that are asked for" },
	{ "recvmsg", WALLS_KEEPER, "messages" },
	{ "poll", WALLS_MOUNTER, "whether the server of a volume lives" },
	{ "fsopen", WALLS_MOUNTER, "a volume's file system" },
	{ "fsconfig", WALLS_MOUNTER, "a volume's file system" },
	{ "fsmount", WALLS_MOUNTER, "a volume's file system" },
	{ "flock", WALLS_KEEPER | WALLS_MOUNTER, "a store that is made again; a volume" },
	{ "fchdir", WALLS_MOUNTER, "the server of a volume, before its own walls" },
	{ "pivot_root", WALLS_MOUNTER, "the server of a volume, before its own walls" },
	{ "chdir", WALLS_MOUNTER, "the server of a volume, before its own walls" },
	{ "timer_settime", WALLS_KEEPER, "the guard against waits" },
	{ "timer_delete", WALLS_KEEPER, "the guard against waits, in a child" },
	{ "getrusage", WALLS_KEEPER, "the guard against waits" },
	{ "open_tree", WALLS_KEEPER, "a set's mount" },
	{ "mount_setattr", WALLS_KEEPER, "a set's mount" },
	{ "move_mount", WALLS_KEEPER, "a set's mount" },
	{ "umount2", WALLS_KEEPER, "an earlier mount of a session" },
#ifdef WITH_SANITIZERS
	{ "mprotect", ALL, "sanitizers" },	{ "sigaltstack", ALL, "sanitizers" },
	{ "sched_yield", ALL, "sanitizers" },
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
add_rows(scmp_filter_ctx filter, unsigned int whom)
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

		if (nr >= 0 && (whom & NOT_READER))
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0);
	}
	return r;
}

/* Has the filter refused a call? Without the filter the call succeeds, or fails otherwise. */
static bool
is_refused(long result)
{
	return result < 0 && errno == EPERM;
}

/* Ways out that must be closed. */
static int
walls_prove(enum walls_for whom)
{
	bool stand = is_refused(socket(AF_UNIX, SOCK_STREAM, 0)) &&
		     is_refused(socket(AF_INET, SOCK_STREAM, 0)) &&
		     is_refused(syscall(SYS_setns, 0, 0)) && is_refused(syscall(SYS_unshare, 0)) &&
		     is_refused(syscall(SYS_execve, "", NULL, NULL));

	if (whom == WALLS_READER)
		stand = stand && is_refused(open("/", O_PATH | O_CLOEXEC));
	if (!(whom & NOT_READER))
		stand = stand && is_refused(fork());
	return stand ? 0 : -EPERM;
}

/* ---- entering the walls ---- */

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
load_filter(unsigned int whom)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? add_rows(filter, whom) : -ENOMEM;

	if (r == 0)
		r = allow_memory(filter);
	if (r == 0 && (whom & NOT_READER))
		r = allow_fork(filter);
	/* abort() */
	if (r == 0 && !(whom & WALLS_KEEPER))
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				     SCMP_A0(SCMP_CMP_EQ, (uint32_t)getpid(), 0));
	if (r == 0 && (whom & WALLS_KEEPER))
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(setns), 1,
				     SCMP_A1(SCMP_CMP_EQ, CLONE_NEWNS, 0));
	if (r == 0 && (whom & WALLS_MOUNTER))
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(unshare), 1,
				     SCMP_A0(SCMP_CMP_EQ, CLONE_NEWNS, 0));
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
	return r < 0 ? r : walls_prove(whom);
}

int
walls_keep(bool volumes, bool folder)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return load_filter(WALLS_KEEPER | (volumes || folder ? WALLS_MOUNTER : 0) |
			   (folder ? WALLS_FOLDER : 0));
}
