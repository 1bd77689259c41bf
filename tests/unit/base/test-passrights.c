/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that take no descriptors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/passrights.h"
#include "tests/unit/base/linger.h"

static bool
kernel_is_older(void)
{
	int pair[2], r;

	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	r = passrights_set(pair[0], false);
	close(pair[0]);
	close(pair[1]);
	if (r == -ENOPROTOOPT)
		print_message("this kernel has no SO_PASSRIGHTS\n");
	return r == -ENOPROTOOPT;
}

static int
pass_something(int socket)
{
	int fd = dup(STDOUT_FILENO), error = linger_pass(socket, fd);

	if (error)
		close(fd);
	return error;
}

static void
one_end_refuses(void **state)
{
	int pair[2];

	(void)state;
	if (kernel_is_older())
		skip();
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	assert_int_equal(passrights_set(pair[0], false), 0);
	assert_int_equal(pass_something(pair[1]), EPERM);
	assert_int_equal(pass_something(pair[0]), 0);
	assert_int_equal(passrights_set(pair[0], true), 0);
	assert_int_equal(pass_something(pair[1]), 0);
	close(pair[0]);
	close(pair[1]);
}

/* A client may send before it was accepted. */
static void
connections_are_as_the_socket_that_they_are_made_to(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int listens = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t len;
	int fd;

	(void)state;
	if (kernel_is_older())
		skip();
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			  (size_t)snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1,
					   "mcp-passrights-%d", (int)getpid()));
	assert_return_code(bind(listens, (struct sockaddr *)&at, len), errno);
	assert_return_code(listen(listens, 1), errno);
	assert_int_equal(passrights_set(listens, false), 0);
	assert_return_code(connect(client, (struct sockaddr *)&at, len), errno);
	assert_int_equal(pass_something(client), EPERM);
	fd = accept(listens, NULL, NULL);
	assert_int_equal(pass_something(client), EPERM);
	close(fd);
	close(client);
	close(listens);
}

static void
other_sockets_have_no_such_thing(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_true(passrights_set(fd, false) < 0);
	assert_int_equal(passrights_set(-1, false), -EBADF);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_end_refuses),
		cmocka_unit_test(connections_are_as_the_socket_that_they_are_made_to),
		cmocka_unit_test(other_sockets_have_no_such_thing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
