/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of a server's tools and results: what is known of them, within bounds. */
#include "policy/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *
read_json(const char *text)
{
	json_t *json = json_loads(text, JSON_ALLOW_NUL, NULL);

	if (json == NULL)
		fail_msg("no JSON: %s", text);
	return json;
}

static void
tools_are_reduced_to_what_is_known(void **state)
{
	json_t *tool = read_json("{\"name\":\"a-b\",\"title\":7,\"description\":\"d\",\"x\":1,"
				 "\"inputSchema\":{},\"annotations\":{\"readOnlyHint\":true,"
				 "\"destructiveHint\":\"no\",\"y\":2}}");
	struct shape_tool shaped;

	(void)state;
	assert_true(shape_tool(tool, &shaped));
	assert_string_equal(shaped.name, "a-b");
	assert_true(shaped.read_only);
	assert_string_equal(shaped.about, "{\"name\":\"a-b\",\"description\":\"d\",\"inputSchema\":"
			    "{},\"annotations\":{\"readOnlyHint\":true}}");
	free(shaped.about);
	json_decref(tool);
}

static void
tools_that_cannot_be_used_are_left_out(void **state)
{
	static const char *const wrong[] = {
		"7", "{}", "{\"name\":\"\",\"inputSchema\":{}}", "{\"name\":\"a\"}",
		"{\"name\":\"a\",\"inputSchema\":[]}", "{\"name\":\"a b\",\"inputSchema\":{}}",
		"{\"name\":\"a\\u0000\",\"inputSchema\":{}}",
		"{\"name\":\"\\u202e\",\"inputSchema\":{}}",
	};
	struct shape_tool shaped;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		json_t *tool = json_loads(wrong[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

		assert_non_null(tool);
		if (shape_tool(tool, &shaped))
			fail_msg("taken: %s", wrong[i]);
		json_decref(tool);
	}
}

/* Too much is cut where the rest is of use, else it is left out; a hint must be a hint. */
static void
tools_have_bounds(void **state)
{
	char *text = malloc(TOOL_ABOUT_MAX + 1);
	json_t *tool = json_pack("{s:s,s:{},s:{s:s}}", "name", "a", "inputSchema", "annotations",
				 "readOnlyHint", "true");
	struct shape_tool shaped;

	(void)state;
	memset(text, 'x', TOOL_ABOUT_MAX);
	text[TOOL_ABOUT_MAX] = '\0';
	json_object_set_new(tool, "description", json_string(text));
	json_object_set_new(tool, "outputSchema", json_pack("{s:s}", "title", text));
	assert_true(shape_tool(tool, &shaped));
	assert_false(shaped.read_only);
	assert_true(strlen(shaped.about) < 20000);
	assert_null(strstr(shaped.about, "outputSchema"));
	free(shaped.about);
	json_object_set_new(tool, "inputSchema", json_pack("{s:s}", "title", text));
	assert_false(shape_tool(tool, &shaped));
	json_decref(tool);
	free(text);
}

static void
results_are_checked(void **state)
{
	static const struct {
		const char *result;
		enum tool_status status;
		const char *body;		/* how it begins */
	} rows[] = {
		{ "{\"content\":[]}", TOOL_RETURNED, "{\"content\":[]}" },
		{ "{\"content\":[],\"x\":1,\"structuredContent\":{\"a\":1}}", TOOL_RETURNED,
		  "{\"content\":[],\"structuredContent\":{\"a\":1}}" },
		{ "{\"structuredContent\":{}}", TOOL_RETURNED,
		  "{\"content\":[],\"structuredContent\":{}}" },
		{ "{\"content\":[{\"type\":\"text\",\"text\":\"\\u0000\"}],\"isError\":true}",
		  TOOL_RAISED, "{\"content\":[{\"type\":\"text\",\"text\":\"\\u0000\"}]}" },
		{ "{\"content\":[],\"resultType\":\"complete\"}", TOOL_RETURNED, "{" },
		{ "{\"resultType\":\"input_required\"}", TOOL_FAILED, "the server wants" },
		{ "{}", TOOL_FAILED, "the server's answer is no result" },
		{ "[]", TOOL_FAILED, "the server's answer is no result" },
		{ "{\"content\":{}}", TOOL_FAILED, "the server's answer is no result" },
		{ "{\"content\":[7]}", TOOL_FAILED, "the server's answer is no result" },
		{ "{\"content\":[{\"type\":\"text\",\"text\":\"0123456789012345678901234567890123456"
		  "7890123456789012345678901234567890123456789\"}]}", TOOL_FAILED,
		  "the result has 1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *result = read_json(rows[i].result);
		char *body;

		assert_int_equal(shape_result(result, 100, &body), rows[i].status);
		if (strncmp(body, rows[i].body, strlen(rows[i].body)) != 0)
			fail_msg("%s, not %s", body, rows[i].body);
		free(body);
		json_decref(result);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tools_are_reduced_to_what_is_known),
		cmocka_unit_test(tools_that_cannot_be_used_are_left_out),
		cmocka_unit_test(tools_have_bounds),
		cmocka_unit_test(results_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
