/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of tools that stand in for those of other servers, on the fake engine: what of a
 * call reaches it, and the answers made from its output. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "mcp/catalog.h"
#include "policy/config.h"
#include "policy/keys.h"
#include "proto/message.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/compat/run_python.h"
#include "tools/script/run_script.h"
#include "tools/toolsets.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void
set(struct config *config, const char *section, const char *key, const char *value)
{
	const struct key *row = key_at((size_t)key_find(section, key));

	assert_int_equal(key_set(row, config, value, false, NULL), 0);
}

static void
choose_sets(struct config *config)
{
	set(config, "mcp", "toolsets", "exec-sandbox python-sandbox run-python");
	set(config, "tiers", "basic", "math json xml.etree");
	set(config, "tiers", "data_science", "numpy");
}

/* Their texts are whole, for programs. */
static void
choose_whole_texts(struct config *config)
{
	choose_sets(config);
	set(config, "exec-sandbox", "text_tokens", "0");
	set(config, "python-sandbox", "text_tokens", "0");
	set(config, "run-python", "text_tokens", "0");
}

static struct bench *
open_bench(void)
{
	struct bench *bench = bench_new_with(NULL, choose_sets);

	bench_initialize(bench, "2025-11-25");
	return bench;
}

/* The result of a call; arguments: JSON. */
static json_t *
call(struct bench *bench, const char *tool, const char *arguments)
{
	json_t *answer, *result;
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"%s\",\"arguments\":%s}}", tool,
			     arguments) > 0);
	bench_say(bench, line);
	free(line);
	if (!bench_unread(bench))
		bench_wait(bench, 1);
	answer = bench_next_json(bench);
	result = json_incref(json_object_get(answer, "result"));
	assert_non_null(result);
	json_decref(answer);
	return result;
}

static json_t *
structured_of(json_t *result)
{
	return json_object_get(result, "structuredContent");
}

static const char *
text_of(json_t *result)
{
	return json_string_value(json_object_get(
		json_array_get(json_object_get(result, "content"), 0), "text"));
}

/* ---- exec-sandbox ---- */

static const struct exec_case {
	const char *script, *text;
	bool is_error;
} exec_cases[] = {
	{ "hello", "--- stdout ---\nhello\n--- exit_code: 0 ---\n--- duration_ms: 12 ---", false },
	{ "bytes 410a", "--- stdout ---\nA\n\n--- exit_code: 0 ---\n--- duration_ms: 12 ---", false },
	{ "json 1", "--- exit_code: 0 ---\n--- duration_ms: 12 ---", false },
	{ "status error", "--- exit_code: 1 ---\n--- duration_ms: 12 ---", false },
	{ "status timeout", "--- timeout: the fake says so ---\n--- exit_code: 1 ---\n"
	  "--- duration_ms: 12 ---\n--- timed_out: true ---", false },
	{ "status memory_limit", "--- memory_limit: the fake says so ---\n--- exit_code: 1 ---\n"
	  "--- duration_ms: 12 ---", false },
	{ "status overloaded", "--- overloaded: the fake says so ---\n--- exit_code: -1 ---\n"
	  "--- duration_ms: 12 ---", true },
};

static void
execute_python_answers_with_a_text(void **state)
{
	struct bench *bench = open_bench();

	(void)state;
	for (size_t i = 0; i < N(exec_cases); i++) {
		char arguments[128];
		json_t *result;

		snprintf(arguments, sizeof(arguments), "{\"script\":\"%s\"}", exec_cases[i].script);
		result = call(bench, "execute_python", arguments);
		assert_string_equal(text_of(result), exec_cases[i].text);
		assert_string_equal(json_string_value(json_object_get(structured_of(result),
								      "result")), exec_cases[i].text);
		assert_int_equal(json_is_true(json_object_get(result, "isError")),
				 exec_cases[i].is_error);
		json_decref(result);
	}
	bench_free(bench);
}

static void
execute_python_keeps_its_bounds(void **state)
{
	static const struct {
		const char *timeout;
		uint32_t wall_ms;
	} rows[] = { { "1", 1000 }, { "0", 1000 }, { "-1e9", 1000 }, { "300", 300000 },
		     { "301", 300000 }, { "1e18", 300000 } };
	const struct fake_record *record = fake_engine_record();
	struct bench *bench = open_bench();

	(void)state;
	json_decref(call(bench, "execute_python", "{\"script\":\"x\"}"));
	assert_int_equal(record->last_limits.wall_ms, 30000);
	assert_int_equal(record->last_limits.output_bytes, 102400);
	assert_string_equal(record->last_imports, "any");
	for (size_t i = 0; i < N(rows); i++) {
		char arguments[128];

		snprintf(arguments, sizeof(arguments), "{\"script\":\"x\",\"timeout_seconds\":%s}",
			 rows[i].timeout);
		json_decref(call(bench, "execute_python", arguments));
		assert_int_equal(record->last_limits.wall_ms, rows[i].wall_ms);
	}
	bench_free(bench);
}

/* ---- python-sandbox ---- */

static const struct imports_case {
	const char *arguments, *imports;
} imports_cases[] = {
	{ "", "math json xml.etree" },
	{ ",\"allowed_imports\":[]", "math json xml.etree" },
	{ ",\"allowed_imports\":null", "math json xml.etree" },
	{ ",\"allowed_imports\":[\"math\",\"os\"]", "math" },
	{ ",\"allowed_imports\":[\"os\"]", "" },
	{ ",\"allowed_imports\":[\"xml\"]", "xml.etree" },
	{ ",\"allowed_imports\":[\"json.decoder\"]", "json.decoder" },
	{ ",\"use_container\":true", "math json xml.etree numpy" },
	{ ",\"use_container\":true,\"allowed_imports\":[\"numpy\"]", "numpy" },
	{ ",\"allowed_imports\":[\"numpy\"]", "" },
};

static void
execute_code_asks_for_modules(void **state)
{
	const struct fake_record *record = fake_engine_record();
	struct bench *bench = open_bench();

	(void)state;
	for (size_t i = 0; i < N(imports_cases); i++) {
		char arguments[256];

		snprintf(arguments, sizeof(arguments), "{\"code\":\"x\"%s}",
			 imports_cases[i].arguments);
		json_decref(call(bench, "execute_code", arguments));
		assert_string_equal(record->last_imports, imports_cases[i].imports);
	}
	assert_int_equal(record->last_limits.wall_ms, 30000);
	assert_int_equal(record->last_limits.memory_bytes, 128 << 20);
	assert_int_equal(record->last_limits.output_bytes, 1 << 20);
	json_decref(call(bench, "execute_code", "{\"code\":\"x\",\"memory_limit\":\"65536K\","
			 "\"timeout\":300}"));
	assert_int_equal(record->last_limits.memory_bytes, 64 << 20);
	assert_int_equal(record->last_limits.wall_ms, 300000);
	bench_free(bench);
}

/* The names may be any text of a worker. */
static const struct names_case {
	const char *names, *variables, *values;		/* JSON */
} names_cases[] = {
	{ "{\\\"names\\\":[\\\"a\\\",\\\"b\\\"],\\\"values\\\":{\\\"a\\\":1}}", "[\"a\",\"b\"]",
	  "{\"a\":1}" },
	{ "", "[]", "{}" },
	{ "no JSON", "[]", "{}" },
	{ "[1]", "[]", "{}" },
	{ "7", "[]", "{}" },
	{ "{\\\"names\\\":7,\\\"values\\\":[]}", "[]", "{}" },
	{ "{\\\"names\\\":[7,\\\"a\\\",null,[]]}", "[\"a\"]", "{}" },
	{ "{\\\"names\\\":[],\\\"names\\\":[]}", "[]", "{}" },
};

static void
names_are_a_strangers(void **state)
{
	struct bench *bench = open_bench();

	(void)state;
	for (size_t i = 0; i < N(names_cases); i++) {
		json_t *result, *variables = json_loads(names_cases[i].variables, 0, NULL),
			*values = json_loads(names_cases[i].values, 0, NULL);
		char arguments[256];

		snprintf(arguments, sizeof(arguments), "{\"code\":\"names %s\"}",
			 names_cases[i].names);
		result = call(bench, "execute_code", arguments);
		if (!json_equal(json_object_get(structured_of(result), "variables"), variables) ||
		    !json_equal(json_object_get(structured_of(result), "variable_values"), values))
			fail_msg("%s: %s", names_cases[i].names, text_of(result));
		json_decref(variables);
		json_decref(values);
		json_decref(result);
	}
	bench_free(bench);
}

static void
execute_code_tells_how_it_ended(void **state)
{
	static const struct {
		const char *code, *key, *value;		/* value: JSON */
		bool is_error;
	} rows[] = {
		{ "x", "success", "true", false },
		{ "x", "result", "42", false },
		{ "json [1", "result", "\"[1\"", false },
		{ "json [1,2]", "result", "[1,2]", false },
		{ "status error", "error", "\"bad \\\"value\\\"\"", false },
		{ "status error", "success", "false", false },
		{ "status timeout", "error", "\"Execution timeout\"", false },
		{ "status timeout", "timeout", "30", false },
		{ "status memory_limit", "error", "\"the fake says so\"", false },
		{ "status crashed", "use_container", "true", false },
		{ "status overloaded", "success", "false", true },
	};
	struct bench *bench = open_bench();

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		json_t *result, *again, *value = json_loads(rows[i].value, JSON_DECODE_ANY, NULL);
		char arguments[128];

		snprintf(arguments, sizeof(arguments), "{\"code\":\"%s\"}", rows[i].code);
		result = call(bench, "execute_code", arguments);
		again = json_loads(text_of(result), 0, NULL);
		assert_true(json_equal(again, structured_of(result)));
		if (!json_equal(json_object_get(again, rows[i].key), value))
			fail_msg("%s: %s", rows[i].code, text_of(result));
		assert_int_equal(json_is_true(json_object_get(result, "isError")),
				 rows[i].is_error);
		json_decref(again);
		json_decref(value);
		json_decref(result);
	}
	bench_free(bench);
}

static size_t
longest_line(struct bench *bench, const char *tool, const char *argument)
{
	size_t most = 0, n = 1 << 20;
	char *hex = malloc(2 * n + 1), *line;

	memset(hex, '0', 2 * n);	/* NULs: six characters each, and escaped a second time */
	hex[2 * n] = '\0';
	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"%s\",\"arguments\":{\"%s\":\"bytes %s\"}}}",
			     tool, argument, hex) > 0);
	bench_say(bench, line);
	if (!bench_unread(bench))
		bench_wait(bench, 1);
	most = strlen(bench_next(bench));
	free(line);
	free(hex);
	return most;
}

static void
answers_stay_below_what_clients_take(void **state)
{
	struct bench *bench = bench_new_with(NULL, choose_whole_texts);

	(void)state;
	bench_initialize(bench, "2025-11-25");
	assert_in_range(longest_line(bench, "execute_python", "script"), 1 << 20, RUN_ANSWER_MAX);
	assert_in_range(longest_line(bench, "execute_code", "code"), 1 << 20, RUN_ANSWER_MAX);
	assert_in_range(longest_line(bench, "run_python_code", "python_code"), 1 << 20,
			RUN_ANSWER_MAX);
	bench_free(bench);
}

/* ---- run-python ---- */

static void
global_variables_are_names_with_values(void **state)
{
	static const struct {
		const char *variables, *said;		/* JSON; of the refusal; NULL: it is run */
	} rows[] = {
		{ "{\"a\":4,\"_b2\":[1.5,null,{\"x y\":true}]}", NULL },
		{ "{\"gr\303\266\303\237e\":\"\\u0000\"}", NULL },
		{ "{\"_\":0,\"__x\":0}", "\"__x\" cannot be the name" },
		{ "{\"__builtins__\":{}}", "\"__builtins__\" cannot be the name" },
		{ "{\"a b\":1}", "\"a b\" cannot be the name" },
		{ "{\"1a\":1}", "\"1a\" cannot be the name" },
		{ "{\"\":1}", "\"\" cannot be the name" },
		{ "{\"lambda\":1}", "\"lambda\" cannot be the name" },
		{ "{\"a;import os\":1}", "cannot be the name" },
		{ "[1]", "must be an object" },
		{ "7", "must be an object" },
	};
	struct bench *bench = open_bench();

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		char arguments[256];
		json_t *result, *got, *wanted;

		snprintf(arguments, sizeof(arguments),
			 "{\"python_code\":\"x\",\"global_variables\":%s}", rows[i].variables);
		result = call(bench, "run_python_code", arguments);
		assert_int_equal(json_is_true(json_object_get(result, "isError")), !!rows[i].said);
		if (rows[i].said) {
			assert_non_null(strstr(text_of(result), "global_variables"));
			assert_non_null(strstr(text_of(result), rows[i].said));
		} else {
			got = json_loads(fake_engine_record()->last_globals, JSON_ALLOW_NUL, NULL);
			wanted = json_loads(rows[i].variables, JSON_ALLOW_NUL, NULL);
			assert_true(json_equal(got, wanted));
			json_decref(got);
			json_decref(wanted);
		}
		json_decref(result);
	}
	json_decref(call(bench, "run_python_code", "{\"python_code\":\"x\",\"global_variables\":{}}"));
	assert_string_equal(fake_engine_record()->last_globals, "(none)");
	bench_free(bench);
}

static void
too_many_variables_are_refused(void **state)
{
	struct bench *bench = open_bench();
	char *arguments, *long_name = calloc(1, 258);
	json_t *result;

	(void)state;
	memset(long_name, 'a', 257);
	assert_true(asprintf(&arguments, "{\"python_code\":\"x\",\"global_variables\":{\"%s\":1}}",
			     long_name) > 0);
	result = call(bench, "run_python_code", arguments);
	assert_non_null(strstr(text_of(result), "cannot be the name"));
	json_decref(result);
	free(arguments);
	free(long_name);
	assert_true(asprintf(&arguments, "{\"python_code\":\"x\",\"global_variables\":{\"a\":\"%*s\"}}",
			     GLOBALS_MAX, "") > 0);
	result = call(bench, "run_python_code", arguments);
	assert_non_null(strstr(text_of(result), "takes 1048584 bytes as JSON; at most 1048576 are"));
	json_decref(result);
	free(arguments);
	bench_free(bench);
}

static void
values_are_indented(void **state)
{
	static const struct {
		const char *json, *text;
	} rows[] = {
		{ "4", "4" }, { "[]", "[]" }, { "{ }", "{}" }, { "[[],{}]", "[\n  [],\n  {}\n]" },
		{ "[1, 2.50,null]", "[\n  1,\n  2.50,\n  null\n]" },
		{ "{\"a\": [1], \"b, {c}\": \"\\\"[]\\\\\"}",
		  "{\n  \"a\": [\n    1\n  ],\n  \"b, {c}\": \"\\\"[]\\\\\"\n}" },
		/* What is no JSON is written as far as it goes. */
		{ "]]", "\n]\n]" }, { "\"a", "\"a" }, { "\"\\", "\"\\" },
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		char *text = NULL;
		size_t len;
		FILE *to = open_memstream(&text, &len);

		run_python_indent(to, rows[i].json);
		fclose(to);
		assert_string_equal(text, rows[i].text);
		free(text);
	}
}

static void
tags_in_a_text_are_escaped(void **state)
{
	static const struct {
		const char *text, *escaped;
	} rows[] = {
		{ "plain <b> & more", "plain <b> & more" }, { "<", "<" }, { "</", "</" },
		{ "</output>", "&lt;/output&gt;" }, { "a<output>b", "a&lt;output&gt;b" },
		{ "</ OUTPUT x='1'>y>", "&lt;/ OUTPUT x='1'&gt;y>" },
		{ "</output\n>", "&lt;/output\n>" }, { "<<output>", "<&lt;output&gt;" },
		{ "<outpu", "<outpu" }, { "<outputs", "&lt;outputs" },
		{ "</output</output>", "&lt;/output&lt;/output&gt;" },
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		char *text = NULL;
		size_t len;
		FILE *to = open_memstream(&text, &len);

		run_python_escape(to, rows[i].text, strlen(rows[i].text), "output");
		fclose(to);
		assert_string_equal(text, rows[i].escaped);
		free(text);
	}
}

static void
run_python_code_tells_how_it_ended(void **state)
{
	static const struct {
		const char *code, *text;	/* what the text begins with */
		bool is_error;
	} rows[] = {
		{ "x", "<status>success</status>\n<output>\nx\n</output>\n<return_value>\n42\n", false },
		{ "json [1,2]", "<status>success</status>\n<return_value>\n[\n  1,\n  2\n]\n", false },
		{ "json [1", "<status>success</status>\n<return_value>\n[1\n</return_value>", false },
		{ "json \\\"</Return_Value>\\\"",
		  "<status>success</status>\n<return_value>\n&lt;/Return_Value&gt;\n", false },
		{ "status error", "<status>run-error</status>\n<error>\n", false },
		{ "status timeout", "<status>run-error</status>\n<error>\n", false },
		{ "status overloaded", "<status>run-error</status>\n<error>\noverloaded: ", true },
	};
	struct bench *bench = open_bench();

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		char arguments[128];
		json_t *result;

		snprintf(arguments, sizeof(arguments), "{\"python_code\":\"%s\"}", rows[i].code);
		result = call(bench, "run_python_code", arguments);
		if (strncmp(text_of(result), rows[i].text, strlen(rows[i].text)) != 0)
			fail_msg("%s: %s", rows[i].code, text_of(result));
		assert_null(structured_of(result));
		assert_int_equal(json_is_true(json_object_get(result, "isError")),
				 rows[i].is_error);
		json_decref(result);
	}
	bench_free(bench);
}

/* ---- which sets go together ---- */

static void
sets_with_a_name_in_common_exclude_each_other(void **state)
{
	static const struct {
		const char *sets;
		int result;
	} rows[] = {
		{ "native", 0 }, { "exec-sandbox", 0 }, { "python-sandbox native", 0 },
		{ "python-sandbox exec-sandbox", 0 }, { "native run-python", 0 }, { "native exec-sandbox", -EINVAL },
		{ "exec-sandbox python-sandbox native", -EINVAL }, { "native native", -EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		struct config *config = config_new();
		struct catalog catalog = { .n_tools = 0 };
		char *said = NULL;
		size_t len;
		FILE *errors = open_memstream(&said, &len);

		set(config, "mcp", "toolsets", rows[i].sets);
		assert_int_equal(toolsets_check(config, errors), rows[i].result);
		fclose(errors);
		assert_int_equal(len > 0, rows[i].result < 0);
		if (rows[i].result == 0) {
			toolsets_add(&catalog, config);
			assert_true(catalog.n_tools >= 3);
		} else {
			assert_non_null(strstr(said, "have a tool check_environment\n"));
		}
		free(said);
		config_free(config);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(execute_python_answers_with_a_text),
		cmocka_unit_test(execute_python_keeps_its_bounds),
		cmocka_unit_test(execute_code_asks_for_modules),
		cmocka_unit_test(names_are_a_strangers),
		cmocka_unit_test(execute_code_tells_how_it_ended),
		cmocka_unit_test(global_variables_are_names_with_values),
		cmocka_unit_test(too_many_variables_are_refused),
		cmocka_unit_test(values_are_indented),
		cmocka_unit_test(tags_in_a_text_are_escaped),
		cmocka_unit_test(run_python_code_tells_how_it_ended),
		cmocka_unit_test(answers_stay_below_what_clients_take),
		cmocka_unit_test(sets_with_a_name_in_common_exclude_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
