/* SPDX-License-Identifier: Apache-2.0 */
/* What a process can and cannot do behind each fence; each try in a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/fence.h"
#include "host/fence_files.h"

#define SOMEBODY 54321

/* Runs a function in a child, which has no privilege and can get none by exec. Returns its wait
 * status. */
static int
in_child(int (*body)(void))
{
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if ((geteuid() == 0 && (setgid(SOMEBODY) < 0 || setuid(SOMEBODY) < 0)) ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(99);
		_exit(body());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int
enter(void)
{
	const char *what = "";
	int r = fence_supervisor(&what);

	if (r < 0)
		fprintf(stderr, "%s: %s\n", what, strerror(-r));
	return r;
}

static int
supervisor_does_its_work(void)
{
	int pair[2], fd;
	void *at;

	if (enter() < 0)
		return 1;
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return 2;
	at = mmap(NULL, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || mprotect(at, 4096, PROT_READ) < 0)
		return 3;
	if (getpwuid(0) == NULL)
		return 4;
	return prctl(PR_GET_DUMPABLE) <= 0 ? 0 : 5;	/* sanitizers alone may ask: it is not */
}

static int
nothing_else_is_possible(void)
{
	pid_t parent = getppid();

	if (enter() < 0)
		return 1;
	if (fork() != -1 || errno != EPERM)
		return 2;
	if (unshare(CLONE_NEWUSER) != -1 || errno != EPERM)
		return 3;
	if (execl("/bin/true", "true", NULL) != -1 || errno != EPERM)
		return 4;
#ifndef WITH_SANITIZERS
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED || errno != EPERM)
		return 5;
#endif
	if (syscall(SYS_tgkill, parent, parent, 0) != -1 || errno != EPERM)
		return 6;
	/* The kernel would see the lower half alone. */
	if (syscall(SYS_socket, 1L << 32 | AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 7;
	return 0;
}

static int
abort_still_works(void)
{
	if (enter() < 0)
		return 1;
	abort();
}

static int
family_is_bounded(void)
{
	if (fence_family() < 0)
		return 1;
	if (syscall(SYS_ptrace, -1, -1, 0, 0) != -1 || errno != EPERM)
		return 2;
	if (syscall(SYS_pidfd_getfd, -1, -1, 0) != -1 || errno != EPERM)
		return 3;
	if (syscall(SYS_io_uring_setup, 0, NULL) != -1 || errno != EPERM)
		return 4;
	if (syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 12) != -1 || errno != EPERM ||
	    syscall(SYS_socket, AF_INET, SOCK_RAW | SOCK_CLOEXEC, 0) != -1 || errno != EPERM ||
	    syscall(SYS_socket, AF_INET6, SOCK_RAW, 58) != -1 || errno != EPERM ||
	    syscall(SYS_socket, AF_PACKET, SOCK_DGRAM, 0) != -1 || errno != EPERM ||
	    syscall(SYS_socket, AF_AX25, SOCK_DGRAM, 0) != -1 || errno != EPERM ||
	    syscall(SYS_chroot, "/") != -1 || errno != EPERM)
		return 6;
	if (socket(AF_NETLINK, SOCK_RAW, 0) < 0 || socket(AF_INET, SOCK_STREAM, 0) < 0 ||
	    socket(AF_UNIX, SOCK_DGRAM, 0) < 0)
		return 7;
	/* What it is for stays. */
	return syscall(SYS_setns, -1, 0) == -1 && errno == EBADF ? 0 : 5;
}

/* The helper's own work, and that of a module which is loaded behind the fence. */
static int
helper_does_its_work(void)
{
	int status, fd;
	void *at;
	pid_t pid;

	if (fence_helper() < 0)
		return 1;
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 2;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || close(fd) < 0 || getpwuid(0) == NULL)
		return 3;
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	if (pid < 0 || kill(pid, SIGKILL) < 0 || waitpid(pid, &status, 0) != pid)
		return 4;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 5;
}

static int
helper_is_bounded(void)
{
	const long tried[][4] = {
		{ SYS_execve, 0 }, { SYS_execveat, -1 }, { SYS_setns, -1 },
		{ SYS_unshare, CLONE_NEWUSER }, { SYS_clone, CLONE_NEWUSER | SIGCHLD },
		{ SYS_clone, CLONE_NEWNS | SIGCHLD }, { SYS_clone, CLONE_PARENT | SIGCHLD },
		{ SYS_mount, 0 }, { SYS_umount2, 0 }, { SYS_fsopen, 0 }, { SYS_move_mount, -1 },
		{ SYS_chroot, 0 }, { SYS_ptrace, -1, -1 }, { SYS_bpf, -1 },
		{ SYS_io_uring_setup, 0 }, { SYS_keyctl, 0 }, { SYS_pidfd_getfd, -1, -1 },
		{ SYS_kill, getppid(), 0 }, { SYS_kill, getppid(), SIGTERM },
		{ SYS_kill, -1, SIGKILL }, { SYS_kill, 0, SIGKILL }, { SYS_kill, 1L << 32, SIGKILL },
		{ SYS_tkill, getppid(), 0 }, { SYS_pidfd_open, getppid() },
		{ SYS_pidfd_send_signal, -1 }, { SYS_prlimit64, getppid() },
		{ SYS_socket, AF_PACKET, SOCK_RAW }, { SYS_socket, AF_UNSPEC, SOCK_RAW },
		{ SYS_socket, AF_AX25, SOCK_RAW }, { SYS_socket, AF_VSOCK, SOCK_STREAM },
		{ SYS_socket, 1L << 32 | AF_AX25, SOCK_RAW },
		{ SYS_getsockopt, -1, SOL_SOCKET, 77 },		/* SO_PEERPIDFD */
	};

	if (fence_helper() < 0)
		return 1;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 2;
	for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++)
		if (syscall(tried[i][0], tried[i][1], tried[i][2], tried[i][3], 0, 0) != -1 ||
		    errno != EPERM)
			return 10 + (int)i;
	return 0;
}

static void *
in_thread(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

static int
job_is_bounded(void)
{
	bool ran = false;
	pthread_t thread;

	if (fence_helper() < 0 || fence_job() < 0)
		return 1;
	if (pthread_create(&thread, NULL, in_thread, &ran) != 0 ||
	    pthread_join(thread, NULL) != 0 || !ran)
		return 2;
	if (getpwuid(0) == NULL)
		return 3;
	if (fork() != -1 || errno != EPERM)
		return 4;
	if (kill(getppid(), SIGKILL) != -1 || errno != EPERM)
		return 5;
	if (syscall(SYS_tgkill, getppid(), getppid(), SIGKILL) != -1 || errno != EPERM)
		return 6;
	abort();
}

static void
the_supervisors_fence(void **state)
{
	int status;

	(void)state;
	assert_int_equal(in_child(supervisor_does_its_work), 0);
	assert_int_equal(in_child(nothing_else_is_possible), 0);
	status = in_child(abort_still_works);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_false(WCOREDUMP(status));
}

static void
the_familys_fence(void **state)
{
	(void)state;
	assert_int_equal(in_child(family_is_bounded), 0);
}

static void
the_fence_of_a_helper(void **state)
{
	(void)state;
	assert_int_equal(in_child(helper_does_its_work), 0);
	assert_int_equal(in_child(helper_is_bounded), 0);
}

static void
the_fence_of_a_job(void **state)
{
	int status = in_child(job_is_bounded);

	(void)state;
	assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- files ---- */

#define PLACE "/tmp/mcp-test-fence-XXXXXX"

static char place[sizeof(PLACE)];

static const char *
in_place(const char *name)
{
	static char path[2][128];
	static unsigned int turn;

	turn ^= 1;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", place, name);
	return path[turn];
}

static int
try(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* In place: read/conf, a link from read/link to far/target, write/. */
static void
make_place(void)
{
	static const char *const folders[] = { "read", "write", "far", "other" };
	static const char *const files[] = { "read/conf", "far/target", "other/file" };

	strcpy(place, PLACE);
	assert_non_null(mkdtemp(place));
	assert_int_equal(chmod(place, 0777), 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(mkdir(in_place(folders[i]), 0777), 0);
		assert_int_equal(chmod(in_place(folders[i]), 0777), 0);
	}
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(try(in_place(files[i]), O_WRONLY | O_CREAT), 0);
		assert_int_equal(chmod(in_place(files[i]), 0666), 0);
	}
	assert_int_equal(symlink("../far/target", in_place("read/link")), 0);
}

static void
remove_place(void)
{
	static const char *const files[] = { "read/conf", "far/target", "other/file", "read/link",
					     "write/file", "read", "write", "far", "other", "" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)remove(in_place(files[i]));
}

static int
files_are_bounded(void)
{
	struct fence_files *files = fence_files_new();
	int held = open(in_place("other/file"), O_RDWR | O_CLOEXEC);

	if (!files)
		return 77;
	if (fence_files_add_around(files, in_place("read/conf"), FENCE_READ) < 0 ||
	    fence_files_add_around(files, in_place("read/link"), FENCE_READ) < 0 ||
	    fence_files_add_around(files, NULL, FENCE_READ) < 0 ||
	    fence_files_add(files, in_place("write"), FENCE_WRITE) < 0 ||
	    fence_files_add(files, in_place("missing"), FENCE_WRITE) < 0 ||
	    fence_files_entered() || fence_files_enter(files) < 0 || !fence_files_entered())
		return 1;
	fence_files_free(files);
	if (try(in_place("read/conf"), O_RDONLY) || try(in_place("read/link"), O_RDONLY) ||
	    try(in_place("read"), O_RDONLY | O_DIRECTORY))
		return 2;
	if (try(in_place("read/conf"), O_WRONLY) != EACCES ||
	    try(in_place("read/new"), O_WRONLY | O_CREAT) != EACCES ||
	    unlink(in_place("read/conf")) == 0)
		return 3;
	/* As files are replaced. */
	if (try(in_place("write/new"), O_RDWR | O_CREAT) ||
	    rename(in_place("write/new"), in_place("write/file")) < 0 ||
	    try(in_place("write/file"), O_WRONLY | O_TRUNC))
		return 4;
	if (try(in_place("other/file"), O_RDONLY) != EACCES || try(place, O_RDONLY) != EACCES ||
	    try("/etc/passwd", O_RDONLY) != EACCES || try("/proc/self/status", O_RDONLY) != EACCES)
		return 5;
	/* Not what is open already. */
	return held >= 0 && write(held, "x", 1) == 1 ? 0 : 6;
}

static void
the_fence_around_files(void **state)
{
	int status;

	(void)state;
	make_place();
	status = in_child(files_are_bounded);
	remove_place();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_supervisors_fence),
		cmocka_unit_test(the_familys_fence),
		cmocka_unit_test(the_fence_of_a_helper),
		cmocka_unit_test(the_fence_of_a_job),
		cmocka_unit_test(the_fence_around_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
