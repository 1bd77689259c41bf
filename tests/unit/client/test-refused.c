/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of which the kernel refuses a call: each ends soon, and says why. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/programs.h"
#include "client/exits.h"
#include "client/host/probe.h"
#include "client/operator.h"
#include "client/options.h"
#include "client/repl.h"
#include "client/show.h"
#include "tests/unit/client/cmocka_all.h"

static char directory[] = "/tmp/test-refused.XXXXXX";
static char socket_path[64], program[64];

/* ---- the kernel's part ---- */

static const char *refused = "";	/* the call that fails */
static int refusal;			/* its error */

static bool
refuses(const char *call)
{
	if (strcmp(call, refused) != 0)
		return false;
	errno = refusal;
	return true;
}

FILE *
fdopen(int fd, const char *mode)
{
	FILE *(*real)(int, const char *);
	void *at = dlsym(RTLD_NEXT, "fdopen");

	memcpy(&real, &at, sizeof(real));
	return refuses("fdopen") ? NULL : real(fd, mode);
}

int
pipe2(int fd[2], int flags)
{
	return refuses("pipe2") ? -1 : (int)syscall(SYS_pipe2, fd, flags);
}

/* Only the wait for standard input alone is refused. */
int
ppoll(struct pollfd *fds, nfds_t n, const struct timespec *most, const sigset_t *mask)
{
	if (n == 1 && refuses("ppoll"))
		return -1;
	return (int)syscall(SYS_ppoll, fds, n, most, mask, _NSIG / 8);
}

ssize_t
send(int to, const void *bytes, size_t len, int flags)
{
	return refuses("send") ? -1 : syscall(SYS_sendto, to, bytes, len, flags, NULL, 0);
}

int
socket(int domain, int type, int protocol)
{
	return refuses("socket") ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

/* Only what goes to standard output is refused. */
ssize_t
write(int fd, const void *bytes, size_t len)
{
	return fd == STDOUT_FILENO && refuses("write") ? -1 : syscall(SYS_write, fd, bytes, len);
}

/* The service is a program that waits for the end of its input. */
bool
program_path(const char *, char *path, size_t size)
{
	snprintf(path, size, "%s", program);
	return true;
}

/* ---- commands ---- */

struct seen {
	int code;
	char err[2048];		/* what it says */
};

/* Runs body in a child, to which the kernel refuses this call. out: of its standard output. */
static struct seen
run_refused(int (*body)(const void *arg), const void *arg, const char *out, const char *call,
	    int error)
{
	int said[2], status, to;
	struct seen seen;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		to = open(out, O_WRONLY | O_CLOEXEC);
		if (to < 0 || dup2(to, STDOUT_FILENO) < 0 || dup2(said[1], STDERR_FILENO) < 0)
			_exit(99);
		refused = call;
		refusal = error;
		_exit(show_conclude(body(arg)));
	}
	close(said[1]);
	while ((n = read(said[0], seen.err + len, sizeof(seen.err) - 1 - len)) > 0)
		len += (size_t)n;
	seen.err[len] = '\0';
	close(said[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	seen.code = WEXITSTATUS(status);
	return seen;
}

static void
expect(const struct seen *seen, int code, const char *said)
{
	if (seen->code != code || !strstr(seen->err, said))
		fail_msg("%d, not %d with \"%s\": %s", seen->code, code, said, seen->err);
}

static int
listen_here(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, socket_path);
	unlink(socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* ---- operators ---- */

static int
operate(const void *arg)
{
	const char *const *words = arg;
	char *argv[8] = { NULL };
	int n = 0;

	for (; words[n]; n++)
		argv[n] = strdup(words[n]);
	return operator_command(argv[0])(n, argv);
}

static void
operators_are_told(void **)
{
	static const char *const commands[][6] = {
		{ "approvals", "--admin-socket", socket_path },
		{ "metrics", "--admin-socket", socket_path },
		{ "packages", "--admin-socket", socket_path },
		{ "ps", "--admin-socket", socket_path },
		{ "status", "--admin-socket", socket_path },
		{ "suspend", "--admin-socket", socket_path },
		{ "tools", "--admin-socket", socket_path },
		{ "top", "--once", "--admin-socket", socket_path },
		{ "approvals", "review", "--admin-socket", socket_path },
	};
	int fd = listen_here();

	for (size_t i = 0; i < N(commands); i++) {
		struct seen seen = run_refused(operate, commands[i], "/dev/null", "fdopen", ENOMEM);

		expect(&seen, EX_UNAVAILABLE, "Cannot allocate memory");
		seen = run_refused(operate, commands[i], "/dev/null", "socket", EMFILE);
		expect(&seen, EX_UNAVAILABLE, "Too many open files");
	}
	close(fd);
}

static int
end_with(const void *code)
{
	puts("all of it");
	return *(const int *)code;
}

static void
lost_output_is_told(void **)
{
	static const char *const help[] = { "packages", "--help", NULL };
	static const int codes[] = { 0, 3 };
	struct seen seen = run_refused(operate, help, "/dev/full", "", 0);

	expect(&seen, EX_IOERR, "standard output: No space left on device");
	seen = run_refused(end_with, &codes[0], "/dev/full", "", 0);
	expect(&seen, EX_IOERR, "standard output: No space left on device");
	seen = run_refused(end_with, &codes[1], "/dev/full", "", 0);
	expect(&seen, 3, "standard output: No space left on device");
	seen = run_refused(end_with, &codes[1], "/dev/null", "", 0);
	expect(&seen, 3, "");
	assert_string_equal(seen.err, "");
}

/* ---- a session ---- */

/* A service that answers each call. */
static _Noreturn void
answer_calls(int listen_fd)
{
	FILE *from = fdopen(accept(listen_fd, NULL, NULL), "r+");
	char *line = NULL;
	size_t size = 0;

	while (from && getline(&line, &size, from) > 0) {
		json_t *call = json_loads(line, 0, NULL);
		json_int_t id = json_integer_value(json_object_get(call, "id"));

		dprintf(fileno(from), "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"resultType\":"
			"\"complete\",\"content\":[],\"structuredContent\":{\"status\":\"ok\","
			"\"exit_code\":0,\"session\":\"r-one\",\"result\":{\"repr\":\"42\"}}}}\n",
			(int)id);
	}
	_exit(0);
}

static int
converse(const void *)
{
	const struct options options = { .socket = socket_path };
	int cells[2];

	if (syscall(SYS_pipe2, cells, 0) < 0 || write(cells[1], "6 * 7\n", 6) != 6 ||
	    dup2(cells[0], STDIN_FILENO) < 0)
		return 99;
	close(cells[1]);
	return repl_command(&options);
}

static struct seen
converse_refused(const char *call, int error)
{
	int fd = listen_here();
	pid_t service = fork();
	struct seen seen;

	if (service == 0)
		answer_calls(fd);
	close(fd);
	seen = run_refused(converse, NULL, "/dev/null", call, error);
	assert_int_equal(waitpid(service, NULL, 0), service);
	return seen;
}

static void
a_session_says_why_it_ends(void **)
{
	struct seen seen = converse_refused("", 0);

	expect(&seen, 0, "");
	assert_string_equal(seen.err, "");
	seen = converse_refused("ppoll", ENOMEM);
	expect(&seen, EX_IOERR, "standard input: Cannot allocate memory");
	seen = converse_refused("write", ENOSPC);
	expect(&seen, EX_IOERR, "standard output: No space left on device");
}

/* ---- check-host ---- */

static void
a_call_that_cannot_be_sent_is_no_hang(void **)
{
	static const int errors[] = { ENOBUFS, EAGAIN };

	for (size_t i = 0; i < N(errors); i++) {
		struct finding finding = { .name = "first call" };

		refused = "send";
		refusal = errors[i];
		probe_call(NULL, &finding);
		refused = "";
		assert_int_equal(finding.verdict, VERDICT_MISSING);
		assert_non_null(strstr(finding.found, strerror(errors[i])));
	}
}

static void
pipes_that_cannot_be_made_are_no_property_of_the_host(void **)
{
	struct finding finding = { .name = "ids" };

	refused = "pipe2";
	refusal = EMFILE;
	probe_ids(NULL, &finding);
	refused = "";
	assert_int_equal(finding.verdict, VERDICT_WEAKER);
	assert_string_equal(finding.found, "Too many open files");
	assert_string_equal(finding.advice, "");
}

static int
set_up(void **)
{
	static const char service[] = "#!/bin/sh\nwhile read line; do :; done\n";
	int fd;

	if (!mkdtemp(directory))
		return -1;
	snprintf(socket_path, sizeof(socket_path), "%s/s", directory);
	snprintf(program, sizeof(program), "%s/mcp-pythond", directory);
	fd = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, service, strlen(service)) < 0)
		return -1;
	return close(fd);
}

static int
tear_down(void **)
{
	unlink(socket_path);
	unlink(program);
	return rmdir(directory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_are_told),
		cmocka_unit_test(lost_output_is_told),
		cmocka_unit_test(a_session_says_why_it_ends),
		cmocka_unit_test(a_call_that_cannot_be_sent_is_no_hang),
		cmocka_unit_test(pipes_that_cannot_be_made_are_no_property_of_the_host),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
