/* SPDX-License-Identifier: Apache-2.0 */
/* How many values a JSON text may have, counted before it is parsed. */
#include "base/jsonbound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *text;
	size_t values;
} rows[] = {
	{ "", 0 },
	{ "1", 0 },
	{ "[]", 1 },
	{ "[1]", 1 },
	{ "[1,2]", 2 },
	{ "{\"a\":{},\"b\":[1,2,3]}", 6 },
	{ "\"[,,,{\"", 0 },
	{ "\"\\\"[,\"", 0 },
	{ "\"\\\\\",[", 2 },
	{ "\"[[[", 0 },
	{ "\"\\", 0 },
	{ "]]]][", 1 },
};

static void
values_are_counted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(jsonbound_values(rows[i].text, strlen(rows[i].text)),
				 rows[i].values);
	/* The text need not end. */
	assert_int_equal(jsonbound_values("[,,,", 2), 2);
}

static void
what_is_too_deep_is_told(void **state)
{
	char text[JSON_DEPTH_MAX + 1];

	(void)state;
	memset(text, '[', sizeof(text));
	assert_int_equal(jsonbound_values(text, JSON_DEPTH_MAX), JSON_DEPTH_MAX);
	assert_true(jsonbound_values(text, JSON_DEPTH_MAX + 1) == SIZE_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_counted),
		cmocka_unit_test(what_is_too_deep_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
