/* SPDX-License-Identifier: Apache-2.0 */
/* A directory that cannot be read further has not ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "base/nextentry.h"

static void
an_error_is_no_end(void **)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC), r = 0;
	DIR *list = opendir("/");

	assert_non_null(list);
	assert_int_equal(dup2(null_fd, dirfd(list)), dirfd(list));
	assert_null(nextentry(list, &r));
	assert_int_equal(r, -ENOTDIR);
	closedir(list);
	close(null_fd);
}

static void
an_end_is_no_error(void **)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned int n = 0;
	int r = 0;

	assert_non_null(list);
	errno = EIO;
	while (nextentry(list, &r))
		n++;
	assert_int_equal(r, 0);
	assert_true(n > 2);
	closedir(list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_no_end),
		cmocka_unit_test(an_end_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
