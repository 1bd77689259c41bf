/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of modules, and the environment variables of the set python-sandbox. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/config.h"
#include "policy/imports.h"
#include "policy/sandbox_environment.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void
a_package_brings_what_is_in_it(void **state)
{
	struct import_list list = { .n = 0 };

	(void)state;
	assert_false(imports_allow(&list, "os"));
	imports_add_name(&list, "xml.etree");
	imports_add_name(&list, "os");
	assert_true(imports_allow(&list, "os"));
	assert_true(imports_allow(&list, "os.path"));
	assert_true(imports_allow(&list, "xml.etree.ElementTree"));
	assert_false(imports_allow(&list, "xml"));
	assert_false(imports_allow(&list, "xml.etre"));
	assert_false(imports_allow(&list, "xml.etree2"));
	assert_false(imports_allow(&list, "o"));
	assert_false(imports_allow(&list, ""));
	assert_null(list.item[2]);
	imports_done(&list);
	assert_null(list.item);
}

/* What a list and a wish have in common, joined by blanks. */
static const struct narrow_case {
	const char *wanted, *narrow;
} narrow_cases[] = {
	{ "math", "math" },
	{ "os", "" },
	{ "xml", "xml.etree xml.sax" },
	{ "xml.etree.ElementTree", "xml.etree.ElementTree" },
	{ "numpy.linalg", "numpy.linalg" },
	{ "m", "" },
	{ "xml.e", "" },
};

static void
a_wish_only_takes_away(void **state)
{
	struct import_list list = { .n = 0 };

	(void)state;
	imports_add_name(&list, "math");
	imports_add_name(&list, "xml.etree");
	imports_add_name(&list, "numpy");
	imports_add_name(&list, "xml.sax");
	for (size_t i = 0; i < N(narrow_cases); i++) {
		struct import_list narrow = { .n = 0 };
		char text[128] = "";

		imports_narrow(&list, narrow_cases[i].wanted, &narrow);
		for (size_t k = 0; k < narrow.n; k++) {
			strcat(text, k ? " " : "");
			strcat(text, narrow.item[k]);
		}
		assert_string_equal(text, narrow_cases[i].narrow);
		imports_done(&narrow);
	}
	imports_done(&list);
}

static void
an_empty_list_is_a_list(void **state)
{
	struct config_list nothing = { .n = 0 };
	struct import_list list = { .n = 0 };

	(void)state;
	imports_add(&list, &nothing);
	assert_non_null(list.item);
	assert_null(list.item[0]);
	assert_int_equal(list.n, 0);
	imports_done(&list);
}

static void
names_are_dotted(void **state)
{
	static const char *const good[] = { "a", "_a1.b", "xml.etree.ElementTree", "\xc3\xa4" };
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "1a", "a.1", "a b", "a-b",
					   "a,b", "a;" };
	char longest[IMPORT_NAME_MAX + 1];

	(void)state;
	for (size_t i = 0; i < N(good); i++)
		assert_true(imports_is_name(good[i], strlen(good[i])));
	for (size_t i = 0; i < N(bad); i++)
		assert_false(imports_is_name(bad[i], strlen(bad[i])));
	assert_false(imports_is_name("a\0b", 3));
	memset(longest, 'a', sizeof(longest));
	assert_true(imports_is_name(longest, IMPORT_NAME_MAX));
	assert_false(imports_is_name(longest, IMPORT_NAME_MAX + 1));
}

/* ---- the environment ---- */

/* Reads with one variable set; what is said of it is freed by the caller. */
static int
read_with(struct config *config, const char *name, const char *value, char **said_r)
{
	size_t len;
	FILE *errors = open_memstream(said_r, &len);
	int r;

	assert_non_null(errors);
	assert_int_equal(setenv(name, value, 1), 0);
	r = sandbox_environment_read(config, errors);
	assert_int_equal(unsetenv(name), 0);
	assert_int_equal(fclose(errors), 0);
	return r;
}

static const struct variable_case {
	const char *name, *value, *said;	/* said: "" when it is right */
} variable_cases[] = {
	{ "SANDBOX_TIMEOUT", "45", "" },
	{ "SANDBOX_TIMEOUT", "", "" },
	{ "SANDBOX_TIMEOUT", "300", "" },
	{ "SANDBOX_TIMEOUT", "301", "SANDBOX_TIMEOUT: 301 is above the most, which is 300 "
	  "(SANDBOX_MAX_TIMEOUT)\n" },
	{ "SANDBOX_TIMEOUT", "-1", "SANDBOX_TIMEOUT: \"-1\" is not a whole number from 1 to 86400\n" },
	{ "SANDBOX_DEFAULT_TIMEOUT", "x", "SANDBOX_DEFAULT_TIMEOUT: \"x\" is not a whole number from "
	  "1 to 86400\n" },
	{ "SANDBOX_MAX_TIMEOUT", "20", "SANDBOX_TIMEOUT: 30 is above the most, which is 20 "
	  "(SANDBOX_MAX_TIMEOUT)\n" },
	{ "SANDBOX_MAX_OUTPUT_SIZE", "1048576", "" },
	{ "SANDBOX_MAX_OUTPUT_SIZE", "1m", "" },
	{ "SANDBOX_MAX_OUTPUT_SIZE", "10", "SANDBOX_MAX_OUTPUT_SIZE: \"10\" is not a number of bytes "
	  "(K, M or G may follow) from 1024 to 67108864\n" },
	{ "SANDBOX_ENABLE_NETWORK", "TRUE", "" },
	{ "SANDBOX_ENABLE_NETWORK", "yes\x1b", "SANDBOX_ENABLE_NETWORK: \"yes \" is neither true nor "
	  "false\n" },
	{ "SANDBOX_ALLOWED_IMPORTS", "math, json", "" },
	{ "SANDBOX_ALLOWED_IMPORTS", "os;", "SANDBOX_ALLOWED_IMPORTS: \"os;\" is not the name of a "
	  "Python module\n" },
	{ "SANDBOX_DEFAULT_MEMORY_LIMIT", "64M", "" },
	{ "SANDBOX_DEFAULT_MEMORY_LIMIT", "64t", "SANDBOX_DEFAULT_MEMORY_LIMIT: \"64t\" is not a number "
	  "of bytes (K, M or G may follow) from 16777216 to 1099511627776\n" },
};

static void
variables_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(variable_cases); i++) {
		const struct variable_case *row = &variable_cases[i];
		struct config *config = config_new();
		char *said;
		int r = read_with(config, row->name, row->value, &said);

		if (r != (*row->said ? -EINVAL : 0) || strcmp(said, row->said) != 0)
			fail_msg("%s=%s: %d %s", row->name, row->value, r, said);
		free(said);
		config_free(config);
	}
}

static void
variables_set_keys(void **state)
{
	struct config *config = config_new();
	char *said;

	(void)state;
	assert_int_equal(read_with(config, "SANDBOX_TIMEOUT", "45", &said), 0);
	free(said);
	assert_int_equal(read_with(config, "SANDBOX_DEFAULT_MEMORY_LIMIT", "96m", &said), 0);
	free(said);
	assert_int_equal(read_with(config, "SANDBOX_ENABLE_FILESYSTEM", "true", &said), 0);
	free(said);
	assert_int_equal(read_with(config, "SANDBOX_ALLOWED_IMPORTS", "math,xml.etree", &said), 0);
	free(said);
	assert_int_equal(config->python_sandbox.default_timeout, 45);
	assert_int_equal(config->python_sandbox.memory_limit, 96 << 20);
	assert_true(config->python_sandbox.filesystem);
	assert_false(config->python_sandbox.network);
	assert_int_equal(config->python_sandbox.allowed_imports.n, 2);
	assert_string_equal(config->python_sandbox.allowed_imports.item[1], "xml.etree");
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_package_brings_what_is_in_it),
		cmocka_unit_test(a_wish_only_takes_away),
		cmocka_unit_test(an_empty_list_is_a_list),
		cmocka_unit_test(names_are_dotted),
		cmocka_unit_test(variables_are_checked),
		cmocka_unit_test(variables_set_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
