/* SPDX-License-Identifier: Apache-2.0 */
/* run_script from its arguments to its answer, on the fake engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "policy/config.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/script/run_script.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/tiers.h"

struct refusal {
	const char *arguments;		/* JSON */
	const char *field, *text;	/* part of the text */
};

static const struct refusal refusals[] = {
	{ "{}", "script", "script is required" },
	{ "{\"script\":1}", "script", "script must be a string" },
	{ "{\"script\":null}", "script", "must be a string" },
	{ "{\"script\":\"a\\n\\u0000\"}", "script", "NUL at byte 2, in line 2" },
	{ "{\"script\":\"1\",\"stdin\":[]}", "stdin", "stdin must be a string" },
	{ "{\"script\":\"1\",\"args\":{}}", "args", "args must be an array" },
	{ "{\"script\":\"1\",\"args\":[\"a\",2]}", "args", "item 1 must be a string" },
	{ "{\"script\":\"1\",\"args\":[\"a\\u0000\"]}", "args", "item 0 must be" },
	{ "{\"script\":\"1\",\"timeout_seconds\":\"1\"}", "timeout_seconds",
	  "timeout_seconds must be a number from 0.1 to 600" },
	{ "{\"script\":\"1\",\"timeout_seconds\":0.05}", "timeout_seconds", "from 0.1 to 600" },
	{ "{\"script\":\"1\",\"cpu_seconds\":-1}", "cpu_seconds", "from 0.1 to 600" },
	{ "{\"script\":\"1\",\"memory_mb\":1.5}", "memory_mb", "an integer from 16 to 2048" },
	{ "{\"script\":\"1\",\"memory_mb\":15}", "memory_mb", "an integer from 16 to 2048" },
	{ "{\"script\":\"1\",\"pids\":0}", "pids", "an integer from 1 to 512" },
	{ "{\"script\":\"1\",\"profile\":7}", "profile", "profile must be" },
	{ "{\"script\":\"1\",\"profile\":\"a\\u0000\"}", "profile", "profile must be" },
	{ "{\"script\":\"1\",\"code\":\"2\"}", "code", "code is not an argument" },
};

static void
what_does_not_fit_is_refused_by_name(void **state)
{
	struct config *config = config_new();

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		struct run_script_arguments arguments;
		struct why why = { .field = "" };
		json_t *json = json_loads(refusals[i].arguments, JSON_ALLOW_NUL, NULL);

		assert_non_null(json);
		assert_true(run_script_read(RUN_FOR_SCRIPT, json, config, &arguments, &why) < 0);
		assert_string_equal(why.field, refusals[i].field);
		if (!strstr(why.text, refusals[i].text))
			fail_msg("%s: %s", refusals[i].arguments, why.text);
		json_decref(json);
	}
	config_free(config);
}

/* {"script": n bytes} or {"script":"1", field: n bytes}. */
static int
read_sized(const struct config *config, const char *field, size_t n)
{
	struct run_script_arguments arguments;
	json_t *json = json_pack("{s:s}", "script", "1");
	char *text = malloc(n + 1);
	json_t *value;
	int r;

	memset(text, 'a', n);
	value = json_stringn(text, n);
	if (strcmp(field, "args") == 0) {
		json_t *list = json_array();

		json_array_append_new(list, value);
		value = list;
	}
	json_object_set_new(json, field, value);
	r = run_script_read(RUN_FOR_SCRIPT, json, config, &arguments, NULL);
	if (r == 0)
		run_script_arguments_done(&arguments);
	json_decref(json);
	free(text);
	return r;
}

static void
lengths_are_bounded(void **state)
{
	struct config *config = config_new();

	(void)state;
	assert_int_equal(read_sized(config, "script", 4 << 20), 0);
	assert_true(read_sized(config, "script", (4 << 20) + 1) < 0);
	assert_int_equal(read_sized(config, "stdin", RUN_STDIN_MAX), 0);
	assert_true(read_sized(config, "stdin", RUN_STDIN_MAX + 1) < 0);
	assert_int_equal(read_sized(config, "args", 128 << 10), 0);
	assert_true(read_sized(config, "args", (128 << 10) + 1) < 0);
	config_free(config);
}

static json_t *
call(struct bench *bench, const char *arguments)
{
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"run_script\",\"arguments\":%s}}",
			     arguments) > 0);
	bench_say(bench, line);
	free(line);
	if (!bench_unread(bench))
		bench_wait(bench, 1);
	return bench_next_json(bench);
}

static json_t *
structured_of(json_t *answer)
{
	return json_object_get(json_object_get(answer, "result"), "structuredContent");
}

static const char *
text_of(json_t *answer)
{
	return json_string_value(json_object_get(json_array_get(json_object_get(
		json_object_get(answer, "result"), "content"), 0), "text"));
}

static void
everything_reaches_the_engine(void **state)
{
	struct bench *bench = bench_new();
	const struct fake_record *record = fake_engine_record();
	json_t *answer;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	answer = call(bench, "{\"script\":\"x\",\"stdin\":\"in\",\"args\":[\"a\",\"\",\"b\"],"
		      "\"timeout_seconds\":2.5,\"memory_mb\":64.0,\"cpu_seconds\":1,"
		      "\"pids\":7,\"profile\":\"basic\"}");
	assert_string_equal(record->last_args, "a||b|");
	assert_string_equal(record->last_stdin, "in");
	assert_string_equal(record->last_profile, "basic");
	assert_int_equal(record->last_limits.wall_ms, 2500);
	assert_int_equal(record->last_limits.cpu_ms, 1000);
	assert_int_equal(record->last_limits.memory_bytes, 64 << 20);
	assert_int_equal(record->last_limits.pids, 7);
	json_decref(answer);
	answer = call(bench, "{\"script\":\"x\"}");
	assert_string_equal(record->last_stdin, "(none)");
	assert_string_equal(record->last_profile, "(none)");
	assert_int_equal(record->last_limits.wall_ms, 30000);
	json_decref(answer);
	bench_free(bench);
}

static void
a_wish_above_its_cap_is_refused(void **state)
{
	static const char *const wishes[][2] = {
		{ "{\"script\":\"x\",\"timeout_seconds\":600.001}", "timeout_seconds" },
		{ "{\"script\":\"x\",\"timeout_seconds\":1e308}", "timeout_seconds" },
		{ "{\"script\":\"x\",\"memory_mb\":2049}", "2048" },
		{ "{\"script\":\"x\",\"memory_mb\":1e300}", "memory_mb" },
		{ "{\"script\":\"x\",\"pids\":513}", "512" },
		{ "{\"script\":\"x\",\"cpu_seconds\":601}", "cpu_seconds" },
		{ "{\"script\":\"x\",\"profile\":\"none\"}", "profile" },
	};
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-11-25");
	for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
		json_t *answer = call(bench, wishes[i][0]);

		assert_non_null(strstr(text_of(answer), wishes[i][1]));
		assert_string_equal(json_string_value(json_object_get(
			structured_of(answer), "status")), "invalid_arguments");
		json_decref(answer);
	}
	assert_int_equal(fake_engine_record()->started, 0);
	bench_free(bench);
}

static void
an_error_says_where(void **state)
{
	struct bench *bench = bench_new();
	json_t *answer, *error;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	answer = call(bench, "{\"script\":\"status error\"}");
	error = json_object_get(structured_of(answer), "error");
	assert_string_equal(json_string_value(json_object_get(error, "type")), "ValueError");
	assert_string_equal(json_string_value(json_object_get(error, "message")),
			    "bad \"value\"");
	assert_int_equal(json_integer_value(json_object_get(error, "line")), 3);
	assert_string_equal(text_of(answer),
			    "ValueError: bad \"value\" (line 3)\ntraceback:\nTraceback\n"
			    "  line 3\nValueError\n[error, 12 ms]\n");
	json_decref(answer);
	bench_free(bench);
}

static void
every_status_but_ok_is_an_error(void **state)
{
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-11-25");
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++) {
		const char *name = outcome_status_name((enum outcome_status)i);
		json_t *answer, *structured;
		char arguments[64];

		snprintf(arguments, sizeof(arguments), "{\"script\":\"status %s\"}", name);
		answer = call(bench, arguments);
		structured = structured_of(answer);
		assert_string_equal(json_string_value(json_object_get(structured, "status")),
				    name);
		assert_int_equal(json_is_true(json_object_get(json_object_get(answer, "result"),
							      "isError")),
				 i != OUTCOME_OK);
		assert_int_equal(json_is_null(json_object_get(structured, "error")),
				 i == OUTCOME_OK);
		assert_int_equal(json_object_get(structured, "retry_after_ms") != NULL,
				 i == OUTCOME_OVERLOADED);
		assert_int_equal(strstr(text_of(answer), "Try again in 250 ms") != NULL,
				 i == OUTCOME_OVERLOADED);
		json_decref(answer);
	}
	bench_free(bench);
}

static void
results_that_are_no_json_are_left_out(void **state)
{
	static const struct {
		const char *script, *expect;	/* part of the line */
		bool json;
	} rows[] = {
		{ "json [1,{\\\"a\\\":0.1}]", "\"json\":[1,{\"a\":0.1}]", true },
		{ "json 123456789012345678901234567890", "\"json\":123456789012345678901234567890}", true },
		{ "json [1,", "\"repr\":\"[1,\"", false },
		{ "json 1 2", "\"repr\":\"1 2\"", false },
		{ "json [1,\\n2]", "\"repr\"", false },
		{ "json {\\\"a\\\":1,\\\"a\\\":2}", "\"repr\"", false },
		{ "json NaN", "\"repr\":\"NaN\"", false },
		{ "json }", "\"repr\":\"}\"", false },
		{ "json ", "\"repr\":\"\"", false },
	};
	struct bench *bench = bench_new();
	char line[512];

	(void)state;
	bench_initialize(bench, "2025-11-25");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *answer;

		snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			 "\"tools/call\",\"params\":{\"name\":\"run_script\",\"arguments\":"
			 "{\"script\":\"%s\"}}}", rows[i].script);
		bench_say(bench, line);
		bench_wait(bench, 1);
		answer = bench_next(bench);
		assert_non_null(strstr(answer, rows[i].expect));
		assert_int_equal(strstr(answer, "\"json\":") != NULL, rows[i].json);
	}
	bench_free(bench);
}

/* Bytes that each cost six in JSON, and are sent twice. */
static void
an_answer_stays_below_what_clients_take(void **state)
{
	struct bench *bench = bench_new();
	const size_t n = 2 << 20;
	char *hex = malloc(2 * n + 64), *at = stpcpy(hex, "{\"script\":\"bytes ");
	json_t *answer, *structured, *truncated;
	size_t shown;

	(void)state;
	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, "01");
	strcpy(at, "\"}");
	bench_initialize(bench, "2025-11-25");
	/* the script itself is just below its bound */
	hex[strlen("{\"script\":\"bytes ") + 2 * (n - 8)] = '\0';
	strcat(hex, "\"}");
	answer = call(bench, hex);
	structured = structured_of(answer);
	shown = json_string_length(json_object_get(structured, "stdout"));
	truncated = json_object_get(structured, "truncated");
	assert_true(shown > 200000 && shown < n - 8);
	assert_int_equal(json_integer_value(json_object_get(truncated, "stdout_dropped")),
			 n - 8 - shown);
	assert_non_null(strstr(text_of(answer), "bytes of stdout were dropped"));
	json_decref(answer);
	free(hex);
	bench_free(bench);
}

static void
output_is_shown_as_text(void **state)
{
	struct bench *bench = bench_new();
	json_t *answer;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	answer = call(bench, "{\"script\":\"bytes ff410a\"}");
	assert_string_equal(json_string_value(json_object_get(structured_of(answer), "stdout")),
			    "\xef\xbf\xbd" "A\n");
	json_decref(answer);
	answer = call(bench, "{\"script\":\"bytes \"}");
	assert_int_equal(strncmp(text_of(answer), "(no output)\n[ok, ", 17), 0);
	json_decref(answer);
	bench_free(bench);
}

static bool
requires(const json_t *schema, const char *name)
{
	const json_t *required = json_object_get(schema, "required"), *item;
	size_t i;

	json_array_foreach(required, i, item)
		if (strcmp(json_string_value(item), name) == 0)
			return true;
	return false;
}

/* A number that the schema says is the table's. */
static void
expect_number(const json_t *property, const char *keyword, double number)
{
	const json_t *said = json_object_get(property, keyword);

	if (said)
		assert_true(json_number_value(said) == number);
}

/* The file of the schema and the table, by which arguments are read, say the same. */
static void
the_schema_agrees_with_the_table(void **state)
{
	struct config *config = config_new();

	(void)state;
	config->workspace.volume = true;	/* else it is not listed: the next test */
	for (int tool = RUN_FOR_SCRIPT; tool <= RUN_FOR_REPL; tool++) {
		char *text = run_script_input_schema((enum run_for)tool, config);
		json_t *schema = json_loads(text, 0, NULL);
		const json_t *properties = json_object_get(schema, "properties");
		size_t n = 0;

		for (const struct argument *row = run_script_argument; row->name; row++) {
			const json_t *property = json_object_get(properties, row->name);
			const char *type = json_string_value(json_object_get(property, "type"));

			assert_true(!property == !(row->tools & (1u << tool)));
			if (!property)
				continue;
			n++;
			assert_true(requires(schema, row->name) == (row->needed != NULL));
			assert_non_null(json_object_get(property, "description"));
			expect_number(property, "minimum", row->least);
			expect_number(property, "minLength", row->least);
			expect_number(property, "maxLength", row->most);
			if (type && strcmp(type, "array") == 0 && row->most > 0)
				assert_int_equal(json_integer_value(json_object_get(property, "maxItems")),
						 row->most);
		}
		assert_int_equal(json_object_size(properties), n);
		json_decref(schema);
		free(text);
	}
	config_free(config);
}

static void
a_volume_is_listed_where_there_are_some(void **state)
{
	struct config *config = config_new();

	(void)state;
	for (int volume = 0; volume <= 1; volume++) {
		char *text;

		config->workspace.volume = volume != 0;
		text = run_script_input_schema(RUN_FOR_SCRIPT, config);
		assert_true(!strstr(text, "\"volume\"") == !volume);
		free(text);
	}
	config_free(config);
}

static void
the_schema_has_the_tiers(void **state)
{
	struct config *config = config_new();
	char *text = run_script_input_schema(RUN_FOR_SCRIPT, config);
	json_t *schema = json_loads(text, 0, NULL);
	const json_t *names = json_object_get(json_object_get(json_object_get(
			schema, "properties"), "tier"), "enum");

	(void)state;
	for (size_t i = 0; i < json_array_size(names); i++)
		assert_string_equal(json_string_value(json_array_get(names, i)),
				    tier_name((enum tier)i));
	assert_int_equal(json_array_size(names), TIER_COUNT);
	json_decref(schema);
	free(text);
	config_free(config);
}

static size_t structured_len;

static void
on_answer(void *arg, const struct tool_answer *answer)
{
	(void)arg;
	assert_true(answer->text_len > 0);
	structured_len = answer->structured_len;
}

static bool
wants(void *arg)
{
	return *(bool *)arg;
}

/* For clients that get the text alone, structured content would be written and then dropped. */
static void
what_nobody_gets_is_not_written(void **state)
{
	const struct limits limits = { .wall_ms = 1 };
	const struct outcome outcome = {
		.status = OUTCOME_OK, .transcript = "", .message = "",
		.stream = { { .text = "" }, { .text = "" } }, .limits = &limits,
	};
	struct config *config = config_new();
	bool wanted;
	const struct tool_host host = { .config = config, .arg = &wanted, .on_answer = on_answer,
					.wants_structured = wants };

	(void)state;
	for (int i = 0; i < 2; i++) {
		wanted = i;
		run_script_answer(&outcome, 100, NULL, &host);
		assert_int_equal(structured_len > 0, wanted);
	}
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_fit_is_refused_by_name),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(the_schema_agrees_with_the_table),
		cmocka_unit_test(a_volume_is_listed_where_there_are_some),
		cmocka_unit_test(the_schema_has_the_tiers),
		cmocka_unit_test(everything_reaches_the_engine),
		cmocka_unit_test(a_wish_above_its_cap_is_refused),
		cmocka_unit_test(an_error_says_where),
		cmocka_unit_test(every_status_but_ok_is_an_error),
		cmocka_unit_test(results_that_are_no_json_are_left_out),
		cmocka_unit_test(an_answer_stays_below_what_clients_take),
		cmocka_unit_test(what_nobody_gets_is_not_written),
		cmocka_unit_test(output_is_shown_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
