/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper's children cannot do, tried from inside: a process that was taken over by what it
 * reads. */
#include "keeper/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/digest.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define ALL (WALLS_STORE | WALLS_READER | WALLS_VOLUME | WALLS_KEEPER)
#define NO_VOLUME (WALLS_STORE | WALLS_READER | WALLS_KEEPER)
#define NO_FORK (WALLS_READER | WALLS_VOLUME)

static long try_open(void) { return open("/etc/hostname", O_RDONLY | O_CLOEXEC); }
static long try_openat2(void) { return syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0); }
static long try_stat(void) { struct stat st; return stat("/", &st); }
static long try_unlink(void) { return unlinkat(AT_FDCWD, "/nowhere", 0); }
static long try_rename(void) { return renameat2(AT_FDCWD, "/nowhere", AT_FDCWD, "/none", 0); }
static long try_link(void) { return linkat(AT_FDCWD, "/nowhere", AT_FDCWD, "/none", 0); }
static long try_symlink(void) { return symlinkat("/", AT_FDCWD, "/nowhere/x"); }
static long try_chmod(void) { return chmod("/nowhere", 0777); }
static long try_chdir(void) { return chdir("/"); }
static long try_unix(void) { return socket(AF_UNIX, SOCK_STREAM, 0); }
static long try_inet(void) { return socket(AF_INET, SOCK_DGRAM, 0); }
static long try_netlink(void) { return socket(AF_NETLINK, SOCK_RAW, 0); }
static long try_pair(void) { int fd[2]; return socketpair(AF_UNIX, SOCK_STREAM, 0, fd); }
static long try_exec(void) { return execl("/bin/true", "true", NULL); }
static long try_fork(void) { pid_t pid = fork(); if (pid == 0) _exit(0); return pid; }
static long try_clone_user(void)
{
	return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
}
static long try_clone3(void) { return syscall(SYS_clone3, NULL, 0); }
static long try_kill(void) { return kill(getppid(), 0); }
static long try_kill_all(void) { return syscall(SYS_kill, -1, 0); }
static long try_ptrace(void) { return ptrace(PTRACE_TRACEME, 0, NULL, NULL); }
static long try_vm(void) { return syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0); }
static long try_pidfd(void) { return syscall(SYS_pidfd_open, 1, 0); }
static long try_setns(void) { return setns(0, 0); }
static long try_unshare(void) { return unshare(CLONE_NEWUSER); }
static long try_mount(void) { return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL); }
static long try_chroot(void) { return chroot("/"); }
static long try_setuid(void) { return syscall(SYS_setuid, getuid()); }
static long try_bpf(void) { return syscall(SYS_bpf, 0, NULL, 0); }
static long try_uring(void) { return syscall(SYS_io_uring_setup, 1, NULL); }
static long try_keys(void) { return syscall(SYS_keyctl, 0, 0, 0, 0, 0); }
static long try_dumpable(void) { return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static long try_limits(void) { return syscall(SYS_prlimit64, 0, 0, NULL, NULL); }
#ifndef WITH_SANITIZERS
static long
try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED ? -1 : 0;
}
static long
try_turn_to_code(void)
{
	static _Alignas(4096) char page[4096];

	return mprotect(page, sizeof(page), PROT_READ | PROT_EXEC);
}
#endif

static const struct {
	const char *what;
	long (*act)(void);
	unsigned int whom;	/* fails with EPERM for these */
} tries[] = {
	{ "open", try_open, WALLS_READER }, { "openat2", try_openat2, ALL },
	{ "stat", try_stat, WALLS_READER }, { "unlink", try_unlink, WALLS_READER },
	{ "rename", try_rename, WALLS_READER }, { "link", try_link, ALL },
	{ "symlink", try_symlink, NO_VOLUME }, { "chmod", try_chmod, ALL },
	{ "chdir", try_chdir, ALL }, { "a unix socket", try_unix, ALL },
	{ "an inet socket", try_inet, ALL }, { "a netlink socket", try_netlink, ALL },
	{ "a pair of sockets", try_pair, ALL }, { "exec", try_exec, ALL },
	{ "fork", try_fork, NO_FORK }, { "a user namespace", try_clone_user, ALL },
	{ "clone3", try_clone3, ALL }, { "a signal", try_kill, ALL },
	{ "signals to all", try_kill_all, ALL }, { "ptrace", try_ptrace, ALL },
	{ "another's memory", try_vm, ALL }, { "a pidfd", try_pidfd, ALL },
	{ "setns", try_setns, ALL }, { "unshare", try_unshare, ALL },
	{ "mount", try_mount, ALL }, { "chroot", try_chroot, ALL },
	{ "setuid", try_setuid, ALL }, { "bpf", try_bpf, ALL }, { "io_uring", try_uring, ALL },
	{ "keys", try_keys, ALL }, { "prctl", try_dumpable, NO_FORK },
	{ "limits", try_limits, NO_FORK },
#ifndef WITH_SANITIZERS
	{ "memory that is code", try_code, ALL },
	{ "memory that becomes code", try_turn_to_code, ALL },
#endif
};

/* In a child behind the walls; its exit status. 100: they were not put up. */
static int
inside(enum walls_for whom, int (*act)(size_t i), size_t i)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit((whom == WALLS_KEEPER ? walls_keep(false, false) : walls_enter(whom)) < 0
		      ? 100 : act(i));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
fails(size_t i)
{
	errno = 0;
	return tries[i].act() < 0 && errno == EPERM ? 0 : 1;
}

static void
ways_out_are_closed(void **state)
{
	static const enum walls_for whom[] = { WALLS_STORE, WALLS_READER, WALLS_VOLUME,
						WALLS_KEEPER };

	(void)state;
	for (size_t w = 0; w < N(whom); w++)
		for (size_t i = 0; i < N(tries); i++) {
			int refused = inside(whom[w], fails, i);

			assert_int_not_equal(refused, 100);
			if ((tries[i].whom & whom[w]) && refused != 0)
				fail_msg("%s works for %d", tries[i].what, whom[w]);
		}
	/* The server of a folder has one call more than that of a volume. */
	for (size_t i = 0; i < N(tries); i++)
		if (tries[i].whom & WALLS_VOLUME)
			assert_int_equal(inside(WALLS_VOLUME | WALLS_FOLDER, fails, i),
					 tries[i].act == try_openat2);
}

static int
has_no_capability(size_t i)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct now[2];

	(void)i;
	/* The reader cannot even ask. */
	if (syscall(SYS_capget, &head, now) < 0)
		return errno == EPERM ? 0 : 1;
	for (int k = 0; k < 2; k++)
		if (now[k].effective || now[k].permitted || now[k].inheritable)
			return 1;
	return 0;
}

/* Memory and digests, descriptors that are there, and for the other one files of the store. */
static int
does_its_work(size_t whom)
{
	static char block[1 << 20];
	struct digest digest = { NULL };
	unsigned char sum[DIGEST_BYTES];
	char *more = malloc(64 << 20);
	int fd;

	digest_begin(&digest);
	digest_add(&digest, block, sizeof(block));
	digest_end(&digest, sum);
	digest_free(&digest);
	if (!more || !memset(more, 1, 64 << 20) || write(STDERR_FILENO, "", 0) < 0)
		return 1;
	free(more);
	if (whom == WALLS_READER)
		return 0;
	fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && faccessat(fd, "nowhere", F_OK, 0) < 0 && try_fork() > 0 ? 0 : 2;
}

/* It comes as far as to what it was given. */
static int
mounts_in_workers(size_t i)
{
	(void)i;
	return setns(-1, CLONE_NEWNS) < 0 && errno == EBADF && setns(-1, CLONE_NEWUSER) < 0 &&
	       errno == EPERM && open_tree(-1, "", AT_EMPTY_PATH) < 0 && errno == EBADF
	       ? 0 : 1;
}

/* A keeper of volumes makes file systems and namespaces of mounts, and no others. */
static void
a_keeper_of_volumes_has_a_little_more(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(walls_keep(true, false) == 0 && mounts_in_workers(0) == 0 &&
		      try_unshare() < 0 && errno == EPERM && try_mount() < 0 && errno == EPERM &&
		      try_exec() < 0 && errno == EPERM && try_unix() < 0 && errno == EPERM &&
		      try_ptrace() < 0 && errno == EPERM && try_clone_user() < 0 &&
		      errno == EPERM && syscall(SYS_fsmount, -1, 0, 0) < 0 && errno != EPERM
		      ? 0 : 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
capabilities_are_gone(void **state)
{
	(void)state;
	assert_int_equal(inside(WALLS_STORE, has_no_capability, 0), 0);
	assert_int_equal(inside(WALLS_READER, has_no_capability, 0), 0);
	assert_int_equal(inside(WALLS_VOLUME, has_no_capability, 0), 0);
}

static void
their_work_is_done(void **state)
{
	(void)state;
	assert_int_equal(inside(WALLS_STORE, does_its_work, WALLS_STORE), 0);
	assert_int_equal(inside(WALLS_READER, does_its_work, WALLS_READER), 0);
	assert_int_equal(inside(WALLS_KEEPER, does_its_work, WALLS_KEEPER), 0);
	assert_int_equal(inside(WALLS_KEEPER, mounts_in_workers, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways_out_are_closed),
		cmocka_unit_test(a_keeper_of_volumes_has_a_little_more),
		cmocka_unit_test(capabilities_are_gone),
		cmocka_unit_test(their_work_is_done),
	};

	if (digest_prepare() < 0)
		return 1;
	return cmocka_run_group_tests_name("walls", tests, NULL, NULL);
}
