/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-python run against a service that plays a part: the whole way from the file to
 * the exit code, over a real socket in a directory of its own. */
#include "client/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "client/endpoint.h"
#include "client/exits.h"
#include "client/options.h"
#include "tests/unit/client/cmocka_all.h"

#define HEAD "{\"jsonrpc\":\"2.0\","
#define OUTCOME(members)                                                               \
	HEAD "\"id\":1,\"result\":{\"resultType\":\"complete\",\"content\":[],"        \
	     "\"structuredContent\":{" members "}}}\n"
#define OUTPUT(stream, offset, text)                                                   \
	HEAD "\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,"  \
	     "\"progress\":1,\"_meta\":{\"mcp-pythond/output\":{\"stream\":\"" stream  \
	     "\",\"offset\":" offset ",\"text\":\"" text "\"}}}}\n"

static char directory[] = "/tmp/test-run.XXXXXX";
static char socket_path[64], script_path[64];

/* ---- the service's part ---- */

struct play {
	const char *says; /* after the whole request was read */
	bool early;	  /* says it before reading anything, and closes */
	bool byte_by_byte;
	const char *wants; /* must be found in the request */
};

static int
listen_here(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, socket_path);
	unlink(socket_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void
play_service(int listen_fd, const struct play *play)
{
	size_t room = 1 << 20, len = 0, left = strlen(play->says);
	char *request = calloc(1, room + 1);
	const char *at = play->says;
	int fd = accept(listen_fd, NULL, NULL);

	while (!play->early && !memchr(request, '\n', len)) {
		ssize_t n = read(fd, request + len, room - len);

		if (n <= 0)
			_exit(2);
		len += (size_t)n;
	}
	if (play->wants && !strstr(request, play->wants)) {
		dprintf(STDERR_FILENO, "not in the request: %s\n%s", play->wants,
			request);
		_exit(3);
	}
	while (left > 0) {
		ssize_t n = send(fd, at, play->byte_by_byte ? 1 : left, MSG_NOSIGNAL);

		if (n <= 0)
			_exit(4);
		at += n, left -= (size_t)n;
	}
	_exit(0);
}

/* ---- the command's part ---- */

struct seen {
	int code;
	char out[4096], err[4096];
};

static void
read_file(const char *name, char *to, size_t size)
{
	char path[96];
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, to, size - 1);
	assert_true(n >= 0);
	to[n] = '\0';
	close(fd);
}

static void
redirect(const char *name, int to)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, to) < 0)
		_exit(99);
}

static struct seen
run(const struct play *play, const struct options *options)
{
	struct options o = *options;
	struct seen seen;
	int listen_fd = listen_here(), status;
	pid_t service = fork(), command;

	if (service == 0)
		play_service(listen_fd, play);
	close(listen_fd);
	o.socket = socket_path;
	if (!o.file)
		o.file = script_path;
	command = fork();
	if (command == 0) {
		redirect("out", STDOUT_FILENO);
		redirect("err", STDERR_FILENO);
		_exit(run_command(&o));
	}
	assert_int_equal(waitpid(command, &status, 0), command);
	assert_true(WIFEXITED(status));
	seen.code = WEXITSTATUS(status);
	assert_int_equal(waitpid(service, &status, 0), service);
	assert_int_equal(status, 0);
	read_file("out", seen.out, sizeof(seen.out));
	read_file("err", seen.err, sizeof(seen.err));
	return seen;
}

static struct seen
run_saying(const char *says)
{
	return run(&(struct play){.says = says}, &(struct options){0});
}

static void
the_answer_is_shown(void **state)
{
	struct seen seen = run_saying(
		OUTCOME("\"status\":\"ok\",\"exit_code\":0,"
			"\"stdout\":\"out\\u0000\\n\",\"stderr\":\"err\\n\""));

	(void)state;
	assert_int_equal(seen.code, 0);
	assert_memory_equal(seen.out, "out\0\n", 6);
	assert_string_equal(seen.err, "err\n");
}

static void
output_comes_early_and_once(void **state)
{
	static const char says[] = OUTPUT("stdout", "0", "one ")
		OUTPUT("stderr", "0", "E1 ") OUTPUT("stdout", "4", "two ")
			OUTCOME("\"status\":\"error\",\"exit_code\":3,\"stdout\":\"one "
				"two three\","
				"\"stderr\":\"E1 E2\"");
	struct seen seen = run_saying(says);

	(void)state;
	assert_int_equal(seen.code, 3);
	assert_string_equal(seen.out, "one two three");
	assert_string_equal(seen.err, "E1 E2");
	seen = run(&(struct play){.says = says, .byte_by_byte = true},
		   &(struct options){0});
	assert_string_equal(seen.out, "one two three");
}

static void
a_gap_is_closed_by_the_answer(void **state)
{
	struct seen seen =
		run_saying(OUTPUT("stdout", "0", "one ") OUTPUT("stdout", "8", "three ")
				   OUTPUT("stdout", "4", "two ")
					   OUTCOME("\"status\":\"ok\",\"exit_code\":0,"
						   "\"stdout\":\"one two three \""));

	(void)state;
	assert_string_equal(seen.out, "one two three ");
	assert_string_equal(seen.err, "");
}

static void
an_answer_that_differs_is_said_to(void **state)
{
	struct seen seen = run_saying(OUTPUT("stdout", "0", "same and other") OUTCOME(
		"\"status\":\"ok\",\"exit_code\":0,\"stdout\":\"same [cut] end\""));

	(void)state;
	assert_string_equal(seen.out, "same and other[cut] end");
	assert_non_null(strstr(seen.err, "from byte 5"));
}

static void
limits_are_said_on_one_line(void **state)
{
	struct seen seen = run_saying(OUTCOME(
		"\"status\":\"memory_limit\",\"exit_code\":137,"
		"\"stdout\":\"x\",\"error\":{\"message\":\"512 MiB reached\"}"));

	(void)state;
	assert_int_equal(seen.code, EXIT_MEMORY_LIMIT);
	assert_string_equal(seen.out, "x");
	assert_string_equal(seen.err, "mcp-python: memory_limit: 512 MiB reached\n");
}

static void
what_is_said_of_a_script_cannot_steer(void **state)
{
	static const char says[] = OUTCOME(
		"\"status\":\"crashed\",\"exit_code\":1,\"stdout\":\"\","
		"\"error\":{\"message\":\"a\\u009b31m\\nmcp-python: all is well\"},"
		"\"files\":[{\"path\":\"\\u202egpj.exe\\u200b\",\"size\":3,\"reason\":\"no \\u202eroom\"},"
		"{\"path\":\"b\",\"size\":4}]");
	struct seen seen = run_saying(says);

	(void)state;
	assert_string_equal(seen.err,
			    "mcp-python: crashed: a\\u009b31m\n"
			    "  > mcp-python: all is well\n"
			    "mcp-python: left: \\u202egpj.exe\\u200b (3 bytes); not kept: no \\u202eroom\n"
			    "mcp-python: left: b (4 bytes); not kept: it is too large\n");
	seen = run(&(struct play){.says = says}, &(struct options){.json = true});
	for (const char *at = seen.out; *at; at++)
		assert_true(*at == '\n' || (*at >= ' ' && *at <= '~'));
}

static void
a_status_is_said_once(void **state)
{
	struct seen seen = run_saying(OUTCOME("\"status\":\"memory_limit\",\"exit_code\":137,"
		"\"stdout\":\"\",\"error\":{\"message\":\"memory limit of 9 MiB reached\"}"));

	(void)state;
	assert_string_equal(seen.err, "mcp-python: memory limit of 9 MiB reached\n");
	seen = run_saying(OUTCOME("\"status\":\"approval_pending\",\"exit_code\":null,"
		"\"stdout\":\"\",\"error\":{\"message\":\"approval_pending: a-x\"}"));
	assert_string_equal(seen.err, "mcp-python: approval_pending: a-x\n");
}

static void
a_traceback_is_shown_once(void **state)
{
	struct seen seen =
		run_saying(OUTCOME("\"status\":\"error\",\"exit_code\":1,"
				   "\"stderr\":\"\",\"error\":{\"traceback\":"
				   "\"Traceback: ValueError\\n\"}"));

	(void)state;
	assert_string_equal(seen.err, "Traceback: ValueError\n");
	seen = run_saying(
		OUTCOME("\"status\":\"error\",\"exit_code\":1,"
			"\"stderr\":\"Traceback: ValueError\\n\","
			"\"error\":{\"traceback\":\"Traceback: ValueError\\n\"}"));
	assert_string_equal(seen.err, "Traceback: ValueError\n");
}

static void
json_is_the_whole_answer(void **state)
{
	struct seen seen = run(
		&(struct play){.says = OUTCOME("\"status\":\"timeout\","
					       "\"exit_code\":-1,\"stdout\":\"x\"")},
		&(struct options){.json = true});
	json_t *json = json_loads(seen.out, 0, NULL);

	(void)state;
	assert_int_equal(seen.code, EXIT_TIMEOUT);
	assert_string_equal(json_string_value(json_object_get(json, "status")),
			    "timeout");
	assert_string_equal(seen.err, "");
	json_decref(json);
}

static void
the_request_says_what_was_asked(void **state)
{
	static const char ok[] = OUTCOME("\"status\":\"ok\",\"exit_code\":0");
	const char *args[] = {"a", ""};
	const struct {
		struct options options;
		const char *wants;
	} cases[] = {
		{{0}, "\"script\":\"print(6 * 7)\\n\""},
		{{0}, "\"name\":\"run_script\""},
		{{0}, "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""},
		{{0}, "\"mcp-pythond/stream\":true"},
		{{.timeout_seconds = 2.5}, "\"timeout_seconds\":2.5"},
		{{.timeout_seconds = 2}, "\"timeout_seconds\":2,"},
		{{.cpu_seconds = 9}, "\"cpu_seconds\":9,"},
		{{.memory_mb = 64}, "\"memory_mb\":64,"},
		{{.pids = 5}, "\"pids\":5,"},
		{{.profile = "data"}, "\"profile\":\"data\""},
		{{.args = args, .n_args = 2}, "\"args\":[\"a\",\"\"]"},
		{{.with = {{"rich>=13", "six"}, 2}}, "\"dependencies\":[\"rich>=13\",\"six\"]"},
		{{0}, "\"spill\":true"},
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct seen seen =
			run(&(struct play){.says = ok, .wants = cases[i].wants},
			    &cases[i].options);

		assert_int_equal(seen.code, 0);
	}
}

static void
refusals_are_passed_on(void **state)
{
	struct seen seen = run_saying(
		HEAD
		"\"id\":1,\"result\":{\"isError\":true,"
		"\"content\":[{\"type\":\"text\",\"text\":\"pids: at most 512\"}]}}\n");

	(void)state;
	assert_int_equal(seen.code, EX_USAGE);
	assert_non_null(strstr(seen.err, "pids: at most 512"));
	seen = run_saying(HEAD
			  "\"id\":1,\"error\":{\"code\":-32603,\"message\":\"oh\"}}\n");
	assert_int_equal(seen.code, EX_PROTOCOL);
	assert_non_null(strstr(seen.err, "oh"));
}

static void
a_service_that_fails_is_told_apart(void **state)
{
	struct seen seen = run_saying("");

	(void)state;
	assert_int_equal(seen.code, EX_UNAVAILABLE);
	seen = run_saying(OUTPUT("stdout", "0", "part"));
	assert_int_equal(seen.code, EX_UNAVAILABLE);
	assert_string_equal(seen.out, "part");
	seen = run_saying("SSH-2.0-OpenSSH\r\n");
	assert_int_equal(seen.code, EX_PROTOCOL);
	/* Who has no terminal has said so. */
	seen = run_saying(HEAD "\"id\":1,\"method\":\"elicitation/create\",\"params\":{}}\n");
	assert_int_equal(seen.code, EX_PROTOCOL);
	seen = run_saying(OUTCOME("\"status\":\"unheard of\",\"exit_code\":0"));
	assert_int_equal(seen.code, EX_PROTOCOL);
}

/* It may refuse a request that it has not read to its end. */
static void
an_early_refusal_is_heard(void **state)
{
	struct seen seen = run(
		&(struct play){
			.early = true,
			.says = HEAD
			"\"error\":{\"code\":-32600,\"message\":\"too many\"}}\n"},
		&(struct options){0});

	(void)state;
	assert_int_equal(seen.code, EX_PROTOCOL);
	assert_non_null(strstr(seen.err, "too many"));
}

/* ---- where it looks ---- */

static void
the_first_named_socket_counts(void **state)
{
	struct endpoints list;
	char longest[109];

	(void)state;
	setenv("MCP_PYTHON_SOCKET", "/env", 1);
	setenv("XDG_RUNTIME_DIR", "/xdg", 1);
	assert_int_equal(endpoints_find("/asked", &list), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.path[0], "/asked");
	assert_int_equal(endpoints_find(NULL, &list), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.path[0], "/env");
	setenv("MCP_PYTHON_SOCKET", "", 1);
	assert_int_equal(endpoints_find(NULL, &list), 0);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.path[0], "/xdg/mcp-pythond.sock");
	assert_string_equal(list.path[1], ENDPOINT_SYSTEM);
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(endpoints_find(NULL, &list), 0);
	assert_int_equal(list.n, 1);
	memset(longest, 'x', sizeof(longest));
	longest[108] = '\0';
	assert_int_equal(endpoints_find(longest, &list), -ENAMETOOLONG);
	longest[107] = '\0';
	assert_int_equal(endpoints_find(longest, &list), 0);
	unsetenv("MCP_PYTHON_SOCKET");
}

static void
an_unreachable_service_is_explained(void **state)
{
	static const struct {
		const char *file, *said;
	} cases[] = {
		{"none.sock", "there is no such socket"},
		{"script.py", "it is not a socket"},
		{"dead.sock", "no program listens"},
	};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/dead.sock", directory);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	for (size_t i = 0; i < N(cases); i++) {
		char path[96], err[4096];
		int status;
		pid_t pid;

		snprintf(path, sizeof(path), "%s/%s", directory, cases[i].file);
		pid = fork();
		if (pid == 0) {
			struct options o = {.socket = path, .file = script_path};

			redirect("err", STDERR_FILENO);
			_exit(run_command(&o));
		}
		waitpid(pid, &status, 0);
		assert_int_equal(WEXITSTATUS(status), EX_UNAVAILABLE);
		read_file("err", err, sizeof(err));
		if (!strstr(err, cases[i].said) || !strstr(err, path) ||
		    !strstr(err, "mcp-pythond --socket"))
			fail_msg("%s: %s", cases[i].file, err);
	}
}

static int
set_up(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(socket_path, sizeof(socket_path), "%s/s", directory);
	snprintf(script_path, sizeof(script_path), "%s/script.py", directory);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		return -1;
	close(fd);
	fd = open(script_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "print(6 * 7)\n", 13) != 13)
		return -1;
	return close(fd);
}

static int
tear_down(void **state)
{
	static const char *const names[] = {"s", "script.py", "out", "err",
					    "dead.sock"};
	char path[96];

	(void)state;
	for (size_t i = 0; i < N(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_is_shown),
		cmocka_unit_test(output_comes_early_and_once),
		cmocka_unit_test(a_gap_is_closed_by_the_answer),
		cmocka_unit_test(an_answer_that_differs_is_said_to),
		cmocka_unit_test(limits_are_said_on_one_line),
		cmocka_unit_test(what_is_said_of_a_script_cannot_steer),
		cmocka_unit_test(a_status_is_said_once),
		cmocka_unit_test(a_traceback_is_shown_once),
		cmocka_unit_test(json_is_the_whole_answer),
		cmocka_unit_test(the_request_says_what_was_asked),
		cmocka_unit_test(refusals_are_passed_on),
		cmocka_unit_test(a_service_that_fails_is_told_apart),
		cmocka_unit_test(an_early_refusal_is_heard),
		cmocka_unit_test(the_first_named_socket_counts),
		cmocka_unit_test(an_unreachable_service_is_explained),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
