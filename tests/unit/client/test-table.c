/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and figures for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/table.h"

static const char *const titles[] = { "NAME", ">COUNT", "REST", NULL };

static char *
printed(const struct table *table, size_t rows, size_t width, const char *before,
	const char *after)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	table_print(table, out, rows, width, before, after);
	assert_int_equal(fclose(out), 0);
	return text;
}

static struct table *
make(void)
{
	struct table *table = table_new(titles);

	table_add(table, "%s", "a");
	table_add(table, "%d", 1);
	table_add(table, "%s", ">kept");
	table_add(table, "%s", "longer");
	table_add(table, "%d", 1234567);
	table_add(table, "%s", "\033[31m\n");
	return table;
}

static void
columns_are_aligned(void **state)
{
	struct table *table = make();
	char *text = printed(table, SIZE_MAX, 100, "<", ">");

	(void)state;
	assert_string_equal(text, "<NAME      COUNT  REST>\n"
			    "a             1  >kept\n"
			    "longer  1234567  \\x1b[31m\\x0a\n");
	free(text);
	table_free(table);
}

/* The size of the screen bounds it, with any contents. */
static void
lines_are_cut(void **state)
{
	(void)state;
	for (size_t width = 1; width < 40; width++) {
		struct table *table = make();
		char *text = printed(table, 1, width, "", ""), *rest = text, *line;
		size_t lines = 0;

		while ((line = strsep(&rest, "\n")) && rest) {
			assert_true(strlen(line) <= width);
			lines++;
		}
		assert_int_equal(lines, 2);
		free(text);
		table_free(table);
	}
}

static void
figures_are_short(void **state)
{
	(void)state;
	assert_string_equal(figure_bytes(0), "0");
	assert_string_equal(figure_bytes(1023), "1023");
	assert_string_equal(figure_bytes(1024), "1.0K");
	assert_string_equal(figure_bytes(UINT64_C(1) << 30), "1.0G");
	assert_string_equal(figure_bytes(UINT64_MAX), "16384.0P");
	assert_string_equal(figure_count(INT64_MIN), "-9223372036854775808");
	assert_string_equal(figure_time(0), "0.0s");
	assert_string_equal(figure_time(59.94), "59.9s");
	assert_string_equal(figure_time(61), "1m01s");
	assert_string_equal(figure_time(3 * 3600 + 120), "3h02m");
	assert_string_equal(figure_time(50 * 3600), "2d02h");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_aligned),
		cmocka_unit_test(lines_are_cut),
		cmocka_unit_test(figures_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
