/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that ask for a line, on the fake engine: who is asked, what they see, and what of their
 * replies becomes a line. */
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
#include "policy/rules.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"

#define FORM "{\"elicitation\":{\"form\":{}}}"
#define LINE(text) "{\"action\":\"accept\",\"content\":{\"line\":\"" text "\"}}"

static void
allow(struct config *config)
{
	config->policy.input = POLICY_INPUT_ALLOW;
}

static struct bench *
open_bench(const char *capabilities)
{
	struct bench *bench = bench_new_with(NULL, allow);

	bench_initialize_as(bench, "2025-11-25", capabilities);
	return bench;
}

/* more: members of arguments, beginning with a comma, or "". */
static void
call(struct bench *bench, int id, const char *tool, const char *name, const char *script,
     const char *more)
{
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"%s\",\"arguments\":{\"%s\":\"%s\"%s}}}", id,
			     tool, name, script, more) > 0);
	bench_say(bench, line);
	free(line);
}

static void
reply(struct bench *bench, int id, const char *result)
{
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%d,%s}", id, result) > 0);
	bench_say(bench, line);
	free(line);
}

static json_t *
next(struct bench *bench)
{
	if (!bench_unread(bench))
		bench_wait(bench, 1);
	return bench_next_json(bench);
}

/* The next line is the answer to a call; what it printed, or the type of its error. */
static void
expect_output(struct bench *bench, const char *want)
{
	json_t *answer = next(bench), *result;
	const char *text;

	result = json_object_get(json_object_get(answer, "result"), "structuredContent");
	text = json_string_value(json_object_get(json_object_get(result, "error"), "type"));
	if (!text)
		text = json_string_value(json_object_get(result, "stdout"));
	assert_non_null(text);
	assert_string_equal(text, want);
	json_decref(answer);
}

/* The next line is a question; its message, for the caller to free. */
static char *
expect_question(struct bench *bench)
{
	json_t *request = next(bench);
	const json_t *params = json_object_get(request, "params");
	char *text;

	assert_string_equal(json_string_value(json_object_get(request, "method")),
			    "elicitation/create");
	assert_string_equal(json_string_value(json_object_get(params, "mode")), "form");
	text = strdup(json_string_value(json_object_get(params, "message")));
	json_decref(request);
	return text;
}

static void
who_may_not_ask_does_not(void **state)
{
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize_as(bench, "2025-11-25", FORM);
	call(bench, 1, "run_script", "script", "ask Who?", "");
	expect_output(bench, "EOFError");
	bench_free(bench);
	bench = open_bench("{}");
	call(bench, 1, "run_script", "script", "ask Who?", "");
	expect_output(bench, "EOFError");
	bench_free(bench);
	assert_int_equal(fake_engine_record()->answered, 0);
}

static void
prompts_are_quotations(void **state)
{
	static const struct {
		const char *prompt, *shown;
	} cases[] = {
		{ "Who?", "> Who?" },
		{ "", "> " },
		{ "\\n\\nWe need", "> \n> \n> We need" },
		{ "a\\tb\\r\\u001b[1mc\\u007f", "> a        b\\x0d\\x1b[1mc\\x7f" },
		{ "\\u202exe.gpj", "> \\u202exe.gpj" },
		{ "\\u200b\\ufeff\\u2028\\u00ad", "> \\u200b\\ufeff\\u2028\\u00ad" },
		{ "\\udb40\\udc41", "> \\U000e0041" },
		{ "\\u00e9\\u20ac\\ud83d\\ude00", "> \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n10\\n11\\n12\\n13\\n14\\n15\\n16\\n17",
		  "> 1\n> 2\n> 3\n> 4\n> 5\n> 6\n> 7\n> 8\n> 9\n> 10\n> 11\n> 12\n> 13\n> 14\n"
		  "> 15\n> 16\n> [...]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct bench *bench = open_bench(FORM);
		char script[256], *message, *quoted;

		snprintf(script, sizeof(script), "ask %s", cases[i].prompt);
		call(bench, 1, "run_script", "script", script, "");
		message = expect_question(bench);
		quoted = strstr(message, "\n\n");
		assert_non_null(quoted);
		assert_string_equal(quoted + 2, cases[i].shown);
		*quoted = '\0';
		assert_non_null(strstr(message, "(run_script, x-"));
		assert_non_null(strstr(message, "the script's own text and not this server's"));
		free(message);
		bench_free(bench);
	}
}

static void
replies_are_a_line_or_none(void **state)
{
	static const struct {
		const char *result, *output;
		enum engine_input told;
	} cases[] = {
		{ "\"result\":" LINE("Ann"), "Ann", INPUT_LINE },
		{ "\"result\":" LINE(""), "", INPUT_LINE },
		{ "\"result\":" LINE("one\\r\\ntwo"), "one", INPUT_LINE },
		{ "\"result\":" LINE("a\\u0000b"), "a", INPUT_LINE },
		{ "\"result\":{\"action\":\"accept\",\"content\":{}}", "", INPUT_LINE },
		{ "\"result\":{\"action\":\"accept\",\"content\":{\"line\":1}}", "EOFError",
		  INPUT_CANCELLED },
		{ "\"result\":{\"action\":\"decline\"}", "EOFError", INPUT_DECLINED },
		{ "\"result\":{\"action\":\"cancel\"}", "EOFError", INPUT_CANCELLED },
		{ "\"result\":7", "EOFError", INPUT_CANCELLED },
		{ "\"error\":{\"code\":-1,\"message\":\"no\"}", "EOFError", INPUT_CANCELLED },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		struct bench *bench = open_bench(FORM);

		call(bench, 1, i % 2 ? "run_repl" : "run_script", i % 2 ? "code" : "script",
		     "ask Who?", "");
		free(expect_question(bench));
		reply(bench, 1, cases[i / 2].result);
		expect_output(bench, cases[i / 2].output);
		reply(bench, 1, cases[i / 2].result);
		bench_turn(bench);
		assert_int_equal(bench_unread(bench), 0);
		assert_int_equal(fake_engine_record()->answered, 1);
		assert_int_equal(fake_engine_record()->input[INPUT_ASKED], 1);
		assert_int_equal(fake_engine_record()->input[cases[i / 2].told], 1);
		bench_free(bench);
	}
}

static void
in_the_background_nobody_is_asked(void **state)
{
	struct bench *bench = open_bench(FORM);
	json_t *answer;

	(void)state;
	call(bench, 1, "run_script", "script", "ask Who?", ",\"background\":true");
	answer = next(bench);
	bench_turn(bench);
	assert_int_equal(bench_unread(bench), 0);
	assert_int_equal(fake_engine_record()->answered, 0);
	json_decref(answer);
	bench_free(bench);
}

static void
who_cannot_be_asked_is_not_asked_in_the_place_of_another(void **state)
{
	struct bench *bench = open_bench(FORM), *other = bench_beside(bench, 1000);

	(void)state;
	bench_initialize_as(other, "2025-11-25", "{}");
	call(bench, 1, "run_script", "script", "ask Who?", ",\"idempotency_key\":\"k\"");
	free(expect_question(bench));
	call(other, 1, "run_script", "script", "ask Who?", ",\"idempotency_key\":\"k\"");
	bench_turn(other);
	assert_int_equal(bench_unread(other), 0);
	bench_hang_up(bench);
	expect_output(other, "EOFError");
	bench_free(other);
	bench_free(bench);
}

#define META \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":" FORM "}"

static void
call_modern(struct bench *bench, const char *script, const char *more)
{
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
			     "\"params\":{" META ",\"name\":\"run_script\",\"arguments\":{"
			     "\"script\":\"%s\"}%s}}", script, more) > 0);
	bench_say(bench, line);
	free(line);
}

static void
a_modern_call_is_made_again(void **state)
{
	struct bench *bench = bench_new_with(NULL, allow);
	json_t *answer, *result;
	char *more;

	(void)state;
	call_modern(bench, "ask Who?", "");
	answer = next(bench);
	result = json_object_get(answer, "result");
	assert_string_equal(json_string_value(json_object_get(result, "resultType")),
			    "input_required");
	assert_non_null(json_object_get(json_object_get(result, "inputRequests"), "line-1"));
	assert_true(asprintf(&more, ",\"requestState\":\"%s\",\"inputResponses\":{\"line-1\":"
			     LINE("Ann") "}",
			     json_string_value(json_object_get(result, "requestState"))) > 0);
	json_decref(answer);
	call_modern(bench, "ask Whom?", more);
	answer = next(bench);
	assert_non_null(json_object_get(answer, "error"));
	json_decref(answer);
	assert_int_equal(fake_engine_record()->answered, 0);
	call_modern(bench, "ask Who?", more);
	expect_output(bench, "Ann");
	call_modern(bench, "ask Who?", more);
	answer = next(bench);
	assert_non_null(json_object_get(answer, "error"));
	json_decref(answer);
	assert_int_equal(fake_engine_record()->answered, 1);
	free(more);
	bench_free(bench);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_not_ask_does_not),
		cmocka_unit_test(prompts_are_quotations),
		cmocka_unit_test(replies_are_a_line_or_none),
		cmocka_unit_test(in_the_background_nobody_is_asked),
		cmocka_unit_test(who_cannot_be_asked_is_not_asked_in_the_place_of_another),
		cmocka_unit_test(a_modern_call_is_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
