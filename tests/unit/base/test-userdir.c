/* SPDX-License-Identifier: Apache-2.0 */
/* A user's own files lie where the variables say, and else at home. */
#include "base/userdir.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void
place_is(const char *named, const char *home, const char *expected)
{
	char *path;

	if (named)
		setenv("XDG_STATE_HOME", named, 1);
	else
		unsetenv("XDG_STATE_HOME");
	if (home)
		setenv("HOME", home, 1);
	else
		unsetenv("HOME");
	path = userdir("XDG_STATE_HOME", ".local/state", "mcp-python");
	if (expected)
		assert_string_equal(path, expected);
	else
		assert_null(path);
	free(path);
}

static void
the_variable_comes_first(void **state)
{
	(void)state;
	place_is("/var/mine", "/tmp", "/var/mine/mcp-python");
	place_is("/var/mine", NULL, "/var/mine/mcp-python");
	place_is(NULL, "/tmp", "/tmp/.local/state/mcp-python");
}

static void
no_relative_path_is_taken(void **state)
{
	(void)state;
	place_is("mine", "/tmp", "/tmp/.local/state/mcp-python");
	place_is("", "/tmp", "/tmp/.local/state/mcp-python");
	place_is("mine", "me", NULL);
	place_is(NULL, "/tmp/no such home", NULL);
	place_is(NULL, NULL, NULL);
}

static void
directories_are_made_where_they_are_missing(void **state)
{
	char root[] = "/tmp/test-userdir-XXXXXX", path[64], beside[64];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/a/b", root);
	snprintf(beside, sizeof(beside), "%s/a/b/c", root);
	assert_int_equal(userdir_make(path, 0700), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(userdir_make(path, 0700), 0);
	assert_int_equal(symlink("/dev/null", beside), 0);
	strcat(beside, "/d");
	assert_int_equal(userdir_make(beside, 0700), -ENOTDIR);
	beside[strlen(beside) - 2] = '\0';
	unlink(beside);
	rmdir(path);
	path[strlen(path) - 2] = '\0';
	rmdir(path);
	rmdir(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_variable_comes_first),
		cmocka_unit_test(no_relative_path_is_taken),
		cmocka_unit_test(directories_are_made_where_they_are_missing),
	};

	return cmocka_run_group_tests_name("userdir", tests, NULL, NULL);
}
