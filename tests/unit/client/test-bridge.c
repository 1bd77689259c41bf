/* SPDX-License-Identifier: Apache-2.0 */
/* The bridge with a child process on every side: bytes come through whole and in order,
 * a slow side holds the other back, ends are passed on, and nothing spins. */
#include "client/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/client/cmocka_all.h"

enum { DEADLINE_MS = 60000, LARGE = 8 << 20 };

/* The three streams of a bridge, from outside. in and out are pipes or sockets. */
struct sides {
	int in_fd, out_fd, service_fd;
	pid_t pid;
};

static void
make_pair(bool is_pipe, int *read_r, int *write_r)
{
	int fd[2];

	assert_int_equal(
		is_pipe ? pipe2(fd, O_CLOEXEC)
			: socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd),
		0);
	*read_r = fd[0];
	*write_r = fd[1];
}

/* The bridge in a process of its own, whose exit status says what bridge() returned. */
static struct sides
start(bool is_pipe)
{
	struct sides s;
	int in, out, service[2];

	make_pair(is_pipe, &in, &s.in_fd);
	make_pair(is_pipe, &s.out_fd, &out);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, service),
			 0);
	s.service_fd = service[0];
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (s.pid == 0) {
		const char *what = NULL;

		close(s.in_fd), close(s.out_fd), close(s.service_fd);
		fcntl(service[1], F_SETFL, O_NONBLOCK);
		signal(SIGPIPE, SIG_IGN);
		_exit(bridge(in, out, service[1], &what) == 0 ? 0 : 1);
	}
	close(in), close(out), close(service[1]);
	return s;
}

static struct rusage
finish(struct sides *s, int expected)
{
	struct rusage usage;
	int status;

	assert_int_equal(wait4(s->pid, &status, 0, &usage), s->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), expected);
	return usage;
}

static bool
wait_for(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, ms) == 1;
}

static void
read_exactly(int fd, char *to, size_t len)
{
	while (len > 0) {
		ssize_t n;

		assert_true(wait_for(fd, POLLIN, DEADLINE_MS));
		n = read(fd, to, len);
		assert_true(n > 0);
		to += n, len -= (size_t)n;
	}
}

static void
assert_ended(int fd)
{
	char c;

	assert_true(wait_for(fd, POLLIN, DEADLINE_MS));
	assert_int_equal(read(fd, &c, 1), 0);
}

static char
pattern(size_t i)
{
	return (char)(i * 2654435761u >> 13);
}

/* Writes until the other side takes no more; how much that was. */
static size_t
fill(int fd, size_t at)
{
	char bytes[4096];

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	/* More than it holds it takes, however slow it is. After that full for a quarter of a
	 * second is full. */
	while (wait_for(fd, POLLOUT, at > BRIDGE_BUFFER ? 250 : DEADLINE_MS)) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = pattern(at + i);
		n = write(fd, bytes, sizeof(bytes));
		if (n < 0)
			break;
		at += (size_t)n;
	}
	return at;
}

static void
drain(int fd, size_t from, size_t to)
{
	char bytes[1000];

	while (from < to) {
		size_t n = to - from < sizeof(bytes) ? to - from : sizeof(bytes);

		read_exactly(fd, bytes, n);
		for (size_t i = 0; i < n; i++)
			if (bytes[i] != pattern(from + i))
				fail_msg("byte %zu differs", from + i);
		from += n;
	}
}

static void
a_question_and_its_answer(bool is_pipe)
{
	struct sides s = start(is_pipe);
	char text[8] = "";

	assert_int_equal(write(s.in_fd, "ping\n", 5), 5);
	read_exactly(s.service_fd, text, 5);
	assert_memory_equal(text, "ping\n", 5);
	assert_int_equal(write(s.service_fd, "pong\n", 5), 5);
	read_exactly(s.out_fd, text, 5);
	assert_memory_equal(text, "pong\n", 5);
	close(s.service_fd);
	assert_ended(s.out_fd);
	finish(&s, 0);
}

static void
pipes_carry(void **state)
{
	(void)state;
	a_question_and_its_answer(true);
}

static void
sockets_carry(void **state)
{
	(void)state;
	a_question_and_its_answer(false);
}

/* stdin ends: the service sees the end, may still answer, and closes. */
static void
the_end_of_input_is_a_half_close(void **state)
{
	struct sides s = start(true);
	char text[8];

	(void)state;
	assert_int_equal(write(s.in_fd, "last", 4), 4);
	close(s.in_fd);
	read_exactly(s.service_fd, text, 4);
	assert_ended(s.service_fd);
	assert_int_equal(write(s.service_fd, "answer", 6), 6);
	read_exactly(s.out_fd, text, 6);
	assert_memory_equal(text, "answer", 6);
	close(s.service_fd);
	assert_ended(s.out_fd);
	finish(&s, 0);
}

/* The service ends while stdin is open: what it said before is delivered first. */
static void
the_end_of_the_service_ends_it(void **state)
{
	struct sides s = start(true);
	size_t sent;

	(void)state;
	sent = fill(s.service_fd, 0);
	assert_true(sent > BRIDGE_BUFFER);
	close(s.service_fd);
	drain(s.out_fd, 0, sent);
	assert_ended(s.out_fd);
	finish(&s, 0);
}

/* Both directions are full, and no side reads: the held bytes are bounded; then all of it comes. */
static void
slow_sides_hold_back_and_lose_nothing(void **state)
{
	struct sides s = start(true);
	size_t up, down, bound = BRIDGE_BUFFER + (2 << 20);

	(void)state;
	up = fill(s.in_fd, 0);
	down = fill(s.service_fd, 0);
	assert_true(up > BRIDGE_BUFFER && up < bound);
	assert_true(down > BRIDGE_BUFFER && down < bound);
	drain(s.out_fd, 0, down);
	drain(s.service_fd, 0, up);
	close(s.service_fd);
	finish(&s, 0);
}

/* Its input and the service have ended, its output is full: it must neither end before
 * that is read, nor burn the processor until then. */
static void
nothing_spins(void **state)
{
	struct sides s = start(true);
	int ended = (int)syscall(SYS_pidfd_open, s.pid, 0);
	struct rusage usage;
	size_t sent;

	(void)state;
	sent = fill(s.service_fd, 0);
	shutdown(s.service_fd, SHUT_WR);
	close(s.in_fd);
	assert_ended(s.service_fd);
	assert_true(ended >= 0);
	assert_false(wait_for(ended, POLLIN, 700));
	drain(s.out_fd, 0, sent);
	usage = finish(&s, 0);
	assert_true(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec == 0);
	assert_true(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec < 200000);
	close(s.service_fd);
	close(ended);
}

/* 8 MiB through each direction at once, read in odd pieces by processes of their own.
 */
static void
much_in_both_directions_comes_whole(void **state)
{
	struct sides s = start(false);
	pid_t writers[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		writers[i] = fork();
		if (writers[i] == 0) {
			int fd = i ? s.service_fd : s.in_fd;
			char *bytes = malloc(LARGE);

			for (size_t at = 0; at < LARGE; at++)
				bytes[at] = pattern(at);
			for (size_t at = 0; at < LARGE;) {
				ssize_t n = write(fd, bytes + at, LARGE - at);

				if (n <= 0)
					_exit(1);
				at += (size_t)n;
			}
			_exit(0);
		}
	}
	drain(s.service_fd, 0, LARGE);
	drain(s.out_fd, 0, LARGE);
	for (int i = 0; i < 2; i++) {
		int status;

		waitpid(writers[i], &status, 0);
		assert_int_equal(status, 0);
	}
	close(s.in_fd);
	assert_ended(s.service_fd);
	close(s.service_fd);
	finish(&s, 0);
}

/* The program that started this one is gone: a running script must not wait for a reader. */
static void
a_reader_that_goes_ends_it(void **state)
{
	struct sides s = start(true);

	(void)state;
	close(s.out_fd);
	finish(&s, 0);
	assert_ended(s.service_fd);
	close(s.service_fd);
	close(s.in_fd);
}

/* The service takes no more, but what it has said is still delivered. */
static void
a_deaf_service_is_still_heard(void **state)
{
	struct sides s = start(true);
	char text[8];

	(void)state;
	shutdown(s.service_fd, SHUT_RD);
	assert_int_equal(write(s.in_fd, "x", 1), 1);
	assert_int_equal(write(s.service_fd, "too long", 8), 8);
	shutdown(s.service_fd, SHUT_WR);
	read_exactly(s.out_fd, text, 8);
	assert_memory_equal(text, "too long", 8);
	assert_ended(s.out_fd);
	finish(&s, 0);
	close(s.service_fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipes_carry),
		cmocka_unit_test(sockets_carry),
		cmocka_unit_test(the_end_of_input_is_a_half_close),
		cmocka_unit_test(the_end_of_the_service_ends_it),
		cmocka_unit_test(slow_sides_hold_back_and_lose_nothing),
		cmocka_unit_test(nothing_spins),
		cmocka_unit_test(much_in_both_directions_comes_whole),
		cmocka_unit_test(a_reader_that_goes_ends_it),
		cmocka_unit_test(a_deaf_service_is_still_heard),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
