/* SPDX-License-Identifier: Apache-2.0 */
/* A start by hand whose look at the cgroups fails: a shortage of the moment is told from what the
 * machine lacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/why.h"
#include "host/forker.h"
#include "host/launcher.h"
#include "host/startup.h"
#include "policy/config.h"

#define NOT_REACHED 2

static const char *unread = "";		/* the file that cannot be opened to read it */
static int reason;
static unsigned int refused;

int
openat(int dir, const char *path, int flags, ...)
{
	va_list more;
	int mode;

	if (strcmp(path, unread) == 0 && (flags & O_ACCMODE) == O_RDONLY) {
		refused++;
		errno = reason;
		return -1;
	}
	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

/* 0, or an exit code. */
static int
start(void)
{
	struct startup_programs programs = { .worker_fd = -1, .keeper_fd = -1, .egress_fd = -1,
					     .tools_fd = -1 };
	struct config *config = config_new();
	struct cgroup_root *cgroups = NULL;
	struct launcher *launcher = NULL;
	struct why why = { .text = "" };
	int r;

	log_init(LOG_WARNING);
	memset(programs.interpreter_fd, -1, sizeof(programs.interpreter_fd));
	r = startup_privilege(config, false, &programs, &launcher, &cgroups, &why);
	if (r == 0) {
		cgroup_root_free(cgroups);
		launcher_free(launcher);
		forkers_stop();
	}
	config_free(config);
	return r < 0 ? 1 : refused == 0 ? NOT_REACHED : 0;
}

/* Starts in a child, which cannot read the file. What it logs; the result is that of start(). */
static int
start_without(const char *file, int error, char *said, size_t size)
{
	int logged[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(logged, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(logged[1], STDERR_FILENO);
		unread = file;
		reason = error;
		_exit(start());
	}
	close(logged[1]);
	while ((n = read(logged[0], said + len, size - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	close(logged[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
a_shortage_is_a_warning(void **)
{
	char said[4096];

	assert_int_equal(start_without("/proc/self/cgroup", EMFILE, said, sizeof(said)), 0);
	assert_non_null(strstr(said, "fallback memory=sampled pids=sampled"));
	assert_non_null(strstr(said, strerror(EMFILE)));
}

static void
what_the_machine_lacks_is_none(void **)
{
	char said[4096];

	assert_int_equal(start_without("/proc/self/cgroup", ENOENT, said, sizeof(said)), 0);
	assert_null(strstr(said, "fallback"));
}

/* Else the service would sample what the kernel could count. Where this user may make no cgroup,
 * nothing is read. */
static void
controllers_that_cannot_be_read_are_not_absent(void **)
{
	char said[4096];
	int r = start_without("cgroup.subtree_control", EIO, said, sizeof(said));

	if (r == NOT_REACHED)
		skip();
	assert_int_equal(r, 0);
	assert_non_null(strstr(said, "fallback memory=sampled pids=sampled"));
	assert_non_null(strstr(said, strerror(EIO)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shortage_is_a_warning),
		cmocka_unit_test(what_the_machine_lacks_is_none),
		cmocka_unit_test(controllers_that_cannot_be_read_are_not_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
