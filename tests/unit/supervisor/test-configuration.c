/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration that is read again: only what its files say makes a difference to the start. */
#include "supervisor/configuration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/config.h"

static struct config *
read_it(const char *path, enum configuration_for whom)
{
	const struct configuration_source source = { .path = path, .whom = whom };
	struct config *config = configuration_read(&source, stderr);

	assert_non_null(config);
	return config;
}

/* A directory of its own for the file: conf.d beside it would be read, too. */
static void
places_of_a_unit_are_no_difference(void **state)
{
	char directory[] = "/tmp/test-configuration.XXXXXX", path[64];
	struct config *first, *second, *by_hand;
	char *text;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/conf", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("[workspace]\nvolume = yes\n", file);
	fclose(file);
	setenv("STATE_DIRECTORY", "/var/lib/some", 1);
	first = read_it(path, FOR_UNIT);
	second = read_it(path, FOR_UNIT);
	by_hand = read_it(path, FOR_HAND);
	assert_string_equal(first->files.directory, "/var/lib/some/files");
	assert_string_equal(first->workspace.directory, "/var/lib/some/volumes");
	assert_null(by_hand->files.directory);
	text = config_needs_restart(first, second);
	assert_string_equal(text, "");
	free(text);
	config_free(first);
	config_free(second);
	config_free(by_hand);
	unlink(path);
	rmdir(directory);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_of_a_unit_are_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
