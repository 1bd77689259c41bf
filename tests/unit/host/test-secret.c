/* SPDX-License-Identifier: Apache-2.0 */
/* A file with a secret: one line, that others cannot write. */
#include "host/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int
read_as(const char *content, size_t len, mode_t mode, char *text)
{
	char path[] = "/tmp/mcp-test-secret-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, len), (ssize_t)len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	r = secret_read(path, text);
	unlink(path);
	return r;
}

static void
a_line_is_taken(void **state)
{
	static const char *const contents[] = { "a secret", "a secret\n", "a secret\r\n" };
	char text[SECRET_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		assert_int_equal(read_as(contents[i], strlen(contents[i]), 0400, text), 0);
		assert_string_equal(text, "a secret");
	}
}

static void
what_is_no_secret_is_refused(void **state)
{
	static char longest[SECRET_MAX + 8];
	char text[SECRET_MAX + 1];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(read_as(longest, SECRET_MAX, 0400, text), 0);
	assert_int_equal(strlen(text), SECRET_MAX);
	assert_int_equal(read_as(longest, SECRET_MAX + 1, 0400, text), -EBADMSG);
	assert_int_equal(read_as(longest, sizeof(longest), 0400, text), -EBADMSG);
	assert_int_equal(read_as("", 0, 0400, text), -EBADMSG);
	assert_int_equal(read_as("\r\n", 2, 0400, text), -EBADMSG);
	assert_int_equal(read_as("too few", 7, 0400, text), -EBADMSG);
	assert_int_equal(read_as("two lines\nof it\n", 16, 0400, text), -EBADMSG);
	assert_int_equal(read_as("with\0 a NUL", 11, 0400, text), -EBADMSG);
	assert_int_equal(read_as("a secret", 8, 0420, text), -EPERM);
	assert_int_equal(read_as("a secret", 8, 0402, text), -EPERM);
	assert_int_equal(secret_read("/tmp", text), -EINVAL);
	assert_int_equal(secret_read("/nonexistent/secret", text), -ENOENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_taken),
		cmocka_unit_test(what_is_no_secret_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
