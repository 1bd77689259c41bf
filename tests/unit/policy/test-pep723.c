/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of inline metadata are found as the reference expression of PEP 723 finds them. */
#include "policy/pep723.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *script;
	unsigned int n, line, second_line;
	const char *toml;	/* NULL: none */
} cases[] = {
	{ "", 0, 0, 0, NULL },
	{ "print(1)\n", 0, 0, 0, NULL },
	{ "# /// script\n# a = 1\n# ///\n", 1, 1, 0, "a = 1\n" },
	{ "# /// script\n# a = 1\n# ///", 1, 1, 0, "a = 1\n" },
	{ "\xef\xbb\xbf# /// script\n# a = 1\n# ///", 1, 1, 0, "a = 1\n" },
	{ "#!x\n\n# /// script\n#\n#  b\n# ///\nx", 1, 3, 0, "\n b\n" },
	{ "# /// script\r\n# a = 1\r\n# ///\r\n", 1, 1, 0, "a = 1\n" },
	{ "x\r# /// script\r# a = 1\r# ///\r", 1, 2, 0, "a = 1\n" },
	{ "# /// script\n# ///\n", 0, 0, 0, NULL },
	{ "# /// script\n# ///\n# ///\n", 1, 1, 0, "///\n" },
	{ "# /// script\n# a = 1\n", 0, 0, 0, NULL },
	{ "# /// script\n# a = 1\n# /// \n", 0, 0, 0, NULL },
	{ "# /// script\n# a = 1\n\n# ///\n", 0, 0, 0, NULL },
	{ "# /// script\n#a = 1\n# ///\n", 0, 0, 0, NULL },
	{ "# /// script \n# a = 1\n# ///\n", 0, 0, 0, NULL },
	{ " # /// script\n# a = 1\n# ///\n", 0, 0, 0, NULL },
	{ "# /// scripts\n# a = 1\n# ///\n", 0, 0, 0, NULL },
	{ "# /// other\n# /// script\n# a = 1\n# ///\n", 0, 0, 0, NULL },
	{ "# /// script\n# a\n# ///\n# b\n# ///\n#\n", 1, 1, 0, "a\n///\nb\n" },
	{ "# /// script\n# a\n# ///\n\n# /// script\n# b\n# ///\n", 2, 1, 5, "a\n" },
	{ "# /// script\n# a\n# ///\nx\n# /// script\n# b\n# ///\nx\n# /// script\n# c\n# ///\n",
	  3, 1, 5, "a\n" },
	{ "# /// script", 0, 0, 0, NULL },
};

static void
blocks_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct pep723 found;

		assert_int_equal(pep723_find(cases[i].script, strlen(cases[i].script),
					     &found), 0);
		if (found.n != cases[i].n || found.line != cases[i].line ||
		    found.second_line != cases[i].second_line)
			fail_msg("%s: %u in %u and %u", cases[i].script, found.n, found.line,
				 found.second_line);
		if (cases[i].toml)
			assert_string_equal(found.toml, cases[i].toml);
		else
			assert_null(found.toml);
		pep723_done(&found);
	}
}

static void
nul_and_other_bytes_are_kept(void **state)
{
	static const char script[] = "# /// script\n# a\0b\xff\n# ///\n";
	struct pep723 found;

	(void)state;
	assert_int_equal(pep723_find(script, sizeof(script) - 1, &found), 0);
	assert_int_equal(found.toml_len, 5);
	assert_memory_equal(found.toml, "a\0b\xff\n", 5);
	pep723_done(&found);
}

/* A search that began again at each opening line would take hours here. */
static void
many_opening_lines_take_no_longer(void **state)
{
	static const char line[] = "# /// script\n";
	const size_t n = 300000, len = n * (sizeof(line) - 1);
	char *script = malloc(len);
	struct pep723 found;
	clock_t begin = clock();

	(void)state;
	assert_non_null(script);
	for (size_t i = 0; i < n; i++)
		memcpy(script + i * (sizeof(line) - 1), line, sizeof(line) - 1);
	assert_int_equal(pep723_find(script, len, &found), 0);
	assert_int_equal(found.n, 0);
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
	pep723_done(&found);
	free(script);
}

static void
lines_are_told(void **state)
{
	static const char script[] = "#!\n# /// script\n# requires-python = \"3\"\n"
				     "# dependencies = [\n#  \"a\", 'b c',\n#  \"\",\n# ]\n# ///\n";
	struct pep723 found;

	(void)state;
	assert_int_equal(pep723_find(script, strlen(script), &found), 0);
	assert_int_equal(pep723_line_of(&found, "a", 1, NULL), 5);
	assert_int_equal(pep723_line_of(&found, "b c", 3, "dependencies"), 5);
	assert_int_equal(pep723_line_of(&found, "", 0, "dependencies"), 6);
	assert_int_equal(pep723_line_of(&found, "none", 4, "dependencies"), 4);
	assert_int_equal(pep723_line_of(&found, NULL, 0, "requires-python"), 3);
	assert_int_equal(pep723_line_of(&found, NULL, 0, "requires"), 2);
	pep723_done(&found);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_found),
		cmocka_unit_test(nul_and_other_bytes_are_kept),
		cmocka_unit_test(many_opening_lines_take_no_longer),
		cmocka_unit_test(lines_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
