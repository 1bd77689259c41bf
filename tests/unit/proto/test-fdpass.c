/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors over a socket: the declared number arrives, more never does. */
#include "proto/fdpass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "few_fds.h"

#define MANY 200

static int
count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int pair[2], before;

static int
make_pair(void **state)
{
	(void)state;
	before = count_open();
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

/* After a test no descriptor stays open. */
static int
close_pair(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return count_open() == before ? 0 : -1;
}

/* Sends n descriptors, more than fdpass_send() would. */
static void
send_many(const char *byte, size_t n)
{
	union {
		char bytes[CMSG_SPACE(MANY * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { (void *)byte, 1 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	int *fd = (int *)CMSG_DATA(&control.align);

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++)
		fd[i] = pair[0];
	assert_int_equal(sendmsg(pair[0], &header, 0), 1);
}

static void
every_declared_number_arrives(void **state)
{
	(void)state;
	for (size_t n = 0; n <= MSG_FDS_MAX; n++) {
		struct fdpass_set set = { 0 };
		int fds[MSG_FDS_MAX] = { 0 };
		char bytes[8];

		for (size_t i = 0; i < n; i++)
			fds[i] = i % 2 ? STDIN_FILENO : pair[1];
		assert_int_equal(fdpass_send(pair[0], "hello", 5, fds, n, 0), 5);
		assert_int_equal(fdpass_recv(pair[1], bytes, sizeof(bytes), &set), 5);
		assert_memory_equal(bytes, "hello", 5);
		assert_int_equal(set.n, n);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(fcntl(set.fd[i], F_GETFD), FD_CLOEXEC);
		fdpass_close(&set);
		assert_int_equal(set.n, 0);
	}
}

static void
it_is_the_same_file_that_arrives(void **state)
{
	struct fdpass_set set = { 0 };
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fdpass_send(pair[0], "x", 1, &ends[1], 1, 0), 1);
	close(ends[1]);
	assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), 1);
	assert_int_equal(write(set.fd[0], "y", 1), 1);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	fdpass_close(&set);
	assert_int_equal(read(ends[0], &byte, 1), 0);	/* no process holds the other end */
	close(ends[0]);
}

static void
more_than_the_largest_are_all_closed(void **state)
{
	static const size_t numbers[] = { MSG_FDS_MAX + 1, MSG_FDS_MAX + 2, 50, MANY };

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct fdpass_set set = { 0 };
		int open_before = count_open();
		char byte;

		send_many("x", numbers[i]);
		assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), -EBADMSG);
		assert_int_equal(set.n, 0);
		assert_int_equal(count_open(), open_before);
	}
}

static void
the_bound_is_of_the_set_not_of_one_message(void **state)
{
	struct fdpass_set set = { 0 };
	int open_before = count_open();
	char byte;

	(void)state;
	send_many("x", MSG_FDS_MAX);
	send_many("y", 1);
	assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), 1);
	assert_int_equal(set.n, MSG_FDS_MAX);
	assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), -EBADMSG);
	assert_int_equal(set.n, 0);
	assert_int_equal(count_open(), open_before);
}

/* The peer is not to blame. Too many stay its mistake, if all could be opened. */
static void
no_free_descriptor_is_no_breach(void **state)
{
	(void)state;
	for (size_t n = 0; n < 3; n++) {
		struct fdpass_set set = { 0 };
		int open_before = count_open(), fds[3] = { 0 };
		char byte;

		assert_int_equal(fdpass_send(pair[0], "x", 1, fds, 3, 0), 1);
		few_fds(n);
		assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), -EMFILE);
		few_fds_end();
		assert_int_equal(set.n, 0);
		assert_int_equal(count_open(), open_before);
	}
}

static void
other_ancillary_data_is_refused(void **state)
{
	struct fdpass_set set = { 0 };
	int open_before = count_open(), on = 1;
	char byte;

	(void)state;
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	assert_int_equal(fdpass_send(pair[0], "x", 1, &pair[0], 1, 0), 1);
	assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), -EBADMSG);
	assert_int_equal(set.n, 0);
	assert_int_equal(count_open(), open_before);
}

static void
ends_and_gaps_are_told_apart(void **state)
{
	struct fdpass_set set = { 0 };
	char byte;

	(void)state;
	assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), -EAGAIN);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	assert_int_equal(fdpass_recv(pair[1], &byte, 1, &set), 0);
}

static void
a_closed_peer_is_an_error_and_no_signal(void **state)
{
	(void)state;
	assert_int_equal(shutdown(pair[1], SHUT_RD), 0);
	assert_int_equal(fdpass_send(pair[0], "x", 1, NULL, 0, 0), -EPIPE);
}

/* Runs as a user without rights, for root may have any number on their way. Fills the socket
 * until no more may be sent, says so by a byte to ready, and sends one more patiently. */
static int
send_too_many(int ready)
{
	static const struct rlimit few = { 64, 64 };
	int fds[MSG_FDS_MAX];
	ssize_t sent;

	for (size_t i = 0; i < MSG_FDS_MAX; i++)
		fds[i] = STDIN_FILENO;
	if ((geteuid() == 0 && setuid(65534) < 0) || setrlimit(RLIMIT_NOFILE, &few) < 0)
		return 10;
	while ((sent = fdpass_send(pair[0], "x", 1, fds, MSG_FDS_MAX, 0)) == 1)
		;
	if (sent != -ETOOMANYREFS)
		return 11;
	if (write(ready, "", 1) != 1)
		return 12;
	return fdpass_send_patiently(pair[0], "y", 1, fds, 1, 0) == 1 ? 0 : 13;
}

static void
patience_outlasts_too_many_on_their_way(void **state)
{
	int ready[2], status;
	char byte = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(send_too_many(ready[1]));
	close(ready[1]);
	/* At its end without a byte: the child's status says why. */
	if (read(ready[0], &byte, 1) == 1) {
		struct fdpass_set set = { 0 };
		struct pollfd line = { .fd = pair[1], .events = POLLIN };

		while (byte != 'y' && poll(&line, 1, 30 * 1000) == 1 &&
		       fdpass_recv(pair[1], &byte, 1, &set) == 1)
			fdpass_close(&set);
	}
	close(ready[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(byte, 'y');
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_pair, close_pair)
	const struct CMUnitTest tests[] = {
		TEST(every_declared_number_arrives),
		TEST(it_is_the_same_file_that_arrives),
		TEST(more_than_the_largest_are_all_closed),
		TEST(the_bound_is_of_the_set_not_of_one_message),
		TEST(no_free_descriptor_is_no_breach),
		TEST(other_ancillary_data_is_refused),
		TEST(ends_and_gaps_are_told_apart),
		TEST(a_closed_peer_is_an_error_and_no_signal),
		TEST(patience_outlasts_too_many_on_their_way),
	};

	return cmocka_run_group_tests_name("fdpass", tests, NULL, NULL);
}
