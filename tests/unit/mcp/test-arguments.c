/* SPDX-License-Identifier: Apache-2.0 */
/* What clients send for arguments, and what a tool gets of it. */
#include "mcp/arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/jsonbound.h"

static const char schema_text[] =
	"{\"type\":\"object\",\"required\":[\"script\"],\"properties\":{"
	"\"script\":{\"type\":\"string\"},"
	"\"seconds\":{\"type\":\"number\"},"
	"\"pids\":{\"type\":\"integer\"},"
	"\"quiet\":{\"type\":\"boolean\"},"
	"\"args\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	"\"imports\":{\"type\":[\"array\",\"null\"]},"
	"\"session\":{\"type\":\"string\",\"minLength\":1,\"pattern\":\"^[a-z]+$\"},"
	"\"key\":{\"type\":\"string\",\"minLength\":1},"
	"\"stdin\":{\"type\":\"string\"},"
	"\"tier\":{\"enum\":[\"basic\",null]},"
	"\"level\":{\"enum\":[\"low\",\"high\"]},"
	"\"mode\":{\"enum\":[\"\",\"x\"]},"
	"\"step\":{\"enum\":[1,2]},"
	"\"files\":{\"type\":\"array\"}}}";

static const struct {
	const char *given, *settled;
} rows[] = {
	{ "{}", "{}" },
	/* null is not given, where it is not wanted and not required */
	{ "{\"script\":\"1\",\"seconds\":null,\"args\":null,\"session\":null}", "{\"script\":\"1\"}" },
	{ "{\"script\":null}", "{\"script\":null}" },
	{ "{\"imports\":null}", "{\"imports\":null}" },
	{ "{\"tier\":null}", "{\"tier\":null}" },
	{ "{\"level\":null}", "{}" },
	{ "{\"unknown\":null}", "{\"unknown\":null}" },
	/* nor is an empty name */
	{ "{\"session\":\"\",\"level\":\"\"}", "{}" },
	{ "{\"mode\":\"\"}", "{\"mode\":\"\"}" },
	{ "{\"key\":\"\"}", "{\"key\":\"\"}" },
	{ "{\"stdin\":\"\"}", "{\"stdin\":\"\"}" },
	{ "{\"script\":\"\"}", "{\"script\":\"\"}" },
	/* JSON in a string */
	{ "{\"seconds\":\"5\"}", "{\"seconds\":5}" },
	{ "{\"seconds\":\"2.5\"}", "{\"seconds\":2.5}" },
	{ "{\"pids\":\"7\"}", "{\"pids\":7}" },
	{ "{\"pids\":\"7.5\"}", "{\"pids\":\"7.5\"}" },
	{ "{\"pids\":\"0x10\"}", "{\"pids\":\"0x10\"}" },
	{ "{\"pids\":\"NaN\"}", "{\"pids\":\"NaN\"}" },
	{ "{\"pids\":\"7 8\"}", "{\"pids\":\"7 8\"}" },
	{ "{\"pids\":\"99999999999999999999\"}", "{\"pids\":\"99999999999999999999\"}" },
	{ "{\"quiet\":\"true\"}", "{\"quiet\":true}" },
	{ "{\"quiet\":\"yes\"}", "{\"quiet\":\"yes\"}" },
	{ "{\"args\":\"[\\\"a\\\", \\\"b\\\"]\"}", "{\"args\":[\"a\",\"b\"]}" },
	{ "{\"args\":\"{\\\"a\\\":1}\"}", "{\"args\":\"{\\\"a\\\":1}\"}" },
	{ "{\"args\":\"a\"}", "{\"args\":\"a\"}" },
	{ "{\"imports\":\"[]\"}", "{\"imports\":[]}" },
	{ "{\"imports\":\"null\"}", "{\"imports\":\"null\"}" },
	/* a string is wanted: it is left alone */
	{ "{\"script\":\"5\",\"stdin\":\"[1]\"}", "{\"script\":\"5\",\"stdin\":\"[1]\"}" },
	{ "{\"tier\":\"1\",\"level\":\"1\"}", "{\"tier\":\"1\",\"level\":\"1\"}" },
	{ "{\"step\":\"2\"}", "{\"step\":2}" },
	{ "{\"unknown\":\"5\"}", "{\"unknown\":\"5\"}" },
	/* what is run has two names */
	{ "{\"code\":\"1\"}", "{\"script\":\"1\"}" },
	{ "{\"code\":\"1\",\"script\":\"2\"}", "{\"code\":\"1\",\"script\":\"2\"}" },
	/* what is as it should be */
	{ "{\"script\":\"1\",\"pids\":3,\"args\":[\"5\",\"null\"]}",
	  "{\"script\":\"1\",\"pids\":3,\"args\":[\"5\",\"null\"]}" },
};

static void
what_is_meant_is_taken(void **state)
{
	json_t *schema = json_loads(schema_text, 0, NULL);

	(void)state;
	assert_non_null(schema);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *given = json_loads(rows[i].given, 0, NULL);
		json_t *before = json_deep_copy(given), *settled;
		char *text;

		assert_non_null(given);
		settled = arguments_settle(given, schema);
		text = json_dumps(settled, JSON_COMPACT);
		assert_string_equal(text, rows[i].settled);
		assert_true(json_equal(given, before));
		free(text);
		json_decref(settled);
		json_decref(before);
		json_decref(given);
	}
	json_decref(schema);
}

/* A string with more values than a line may have, in one argument or in several, is a string. */
static void
strings_hold_no_more_than_a_line(void **state)
{
	json_t *schema = json_loads(schema_text, 0, NULL), *given, *settled;
	char list[JSON_VALUES_MAX + 2] = "[", deep[JSON_DEPTH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < JSON_VALUES_MAX / 2; i++)
		memcpy(list + 1 + 2 * i, "1,", 2);
	list[JSON_VALUES_MAX] = ']';
	given = json_pack("{s:s,s:s,s:s}", "args", list, "files", list, "imports", list);
	settled = arguments_settle(given, schema);
	assert_int_equal(json_is_array(json_object_get(settled, "args")) +
			 json_is_array(json_object_get(settled, "files")) +
			 json_is_array(json_object_get(settled, "imports")), 2);
	json_decref(settled);
	json_decref(given);
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	deep[JSON_DEPTH_MAX + 1] = '\0';
	given = json_pack("{s:s}", "args", deep);
	settled = arguments_settle(given, schema);
	assert_true(json_is_string(json_object_get(settled, "args")));
	json_decref(settled);
	json_decref(given);
	json_decref(schema);
}

/* A tool without properties gets what was sent. */
static void
schemas_may_say_little(void **state)
{
	static const char *const schemas[] = {
		"{}", "{\"type\":\"object\"}", "{\"properties\":{}}", "{\"properties\":{\"a\":{}}}",
		"{\"properties\":{\"a\":true}}", "{\"required\":\"a\",\"properties\":{\"a\":{\"type\":1}}}",
	};
	json_t *given = json_loads("{\"a\":\"5\",\"b\":null}", 0, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		json_t *schema = json_loads(schemas[i], 0, NULL), *settled;

		assert_non_null(schema);
		settled = arguments_settle(given, schema);
		assert_non_null(json_object_get(settled, "b"));
		json_decref(settled);
		json_decref(schema);
	}
	json_decref(given);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_meant_is_taken),
		cmocka_unit_test(strings_hold_no_more_than_a_line),
		cmocka_unit_test(schemas_may_say_little),
	};

	return cmocka_run_group_tests_name("arguments", tests, NULL, NULL);
}
