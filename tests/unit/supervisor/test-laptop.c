/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a laptop, when pip's answer cannot be read: that is not an empty answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policy/config.h"
#include "supervisor/laptop.h"

/* A pipe of which the reading end is a directory: each read fails. */
int
pipe2(int fd[2], int)
{
	fd[0] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd[1] = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return 0;
}

/* It is asked once, so what failed at the start fails when the configuration is read again. */
static void
an_answer_that_cannot_be_read_is_an_error(void **)
{
	char directory[] = "/tmp/test-laptop.XXXXXX";

	assert_non_null(mkdtemp(directory));
	setenv("XDG_CACHE_HOME", directory, 1);
	for (int i = 0; i < 2; i++) {
		struct config *config = config_new();
		char *said = NULL;
		size_t len;
		FILE *errors = open_memstream(&said, &len);

		assert_int_equal(laptop_packages(config, "", errors), -EINVAL);
		fclose(errors);
		assert_string_equal(said, "--packages: Is a directory\n");
		free(said);
		config_free(config);
	}
	assert_int_equal(rmdir(directory), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_that_cannot_be_read_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
