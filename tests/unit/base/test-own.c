/* SPDX-License-Identifier: Apache-2.0 */
/* Owned variables are closed and freed on the way out, unless they were given away. */
#include "base/own.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int
open_something(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int
leave_early(int fd)
{
	own_fd int owned = fd;

	errno = EXDEV;
	return owned;
}

static void
an_owned_descriptor_is_closed_and_errno_kept(void **state)
{
	int fd = leave_early(open_something());

	(void)state;
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(leave_early(-1), -1);
}

static int
give_on(int fd)
{
	own_fd int owned = fd;
	int given = give_fd(owned);

	assert_int_equal(owned, -1);
	return given;
}

static void
a_given_descriptor_stays_open(void **state)
{
	int fd = give_on(open_something());

	(void)state;
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

static char *
give_memory_on(void)
{
	own_mem char *kept = malloc(10);	/* the leak checker watches */
	own_mem char *given = malloc(10);
	own_mem char *none = NULL;
	char *result;

	assert_non_null(kept);
	assert_non_null(given);
	assert_null(none);
	result = give_ptr(given);
	assert_null(given);
	return result;
}

static void
given_memory_stays(void **state)
{
	char *mem = give_memory_on();

	(void)state;
	mem[9] = 1;
	free(mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_owned_descriptor_is_closed_and_errno_kept),
		cmocka_unit_test(a_given_descriptor_stays_open),
		cmocka_unit_test(given_memory_stays),
	};

	return cmocka_run_group_tests_name("own", tests, NULL, NULL);
}
