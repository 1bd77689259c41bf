/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/jsonout.h"
#include "mcp/jsonrpc.h"

#define REQ JSONRPC_REQUEST
#define NOTE JSONRPC_NOTIFICATION
#define RESP JSONRPC_RESPONSE
#define BAD JSONRPC_INVALID

struct a_case {
	const char *name, *text;
	size_t len;
	enum jsonrpc_kind kind;
	int code;
	const char *id;		/* as spelled; NULL: none to be found */
};

#define CASE(name, text, kind, code, id) { name, text, sizeof(text) - 1, kind, code, id }
#define V "\"jsonrpc\":\"2.0\""
#define PING "\"method\":\"ping\""

static const struct a_case cases[] = {
	CASE("request", "{" V ",\"id\":1," PING "}", REQ, 0, "1"),
	CASE("spaces", " {\t" V " , \"id\" : 7 ,\r " PING "\t} ", REQ, 0, "7"),
	CASE("id last", "{" V "," PING ",\"id\":\"z\"}", REQ, 0, "\"z\""),
	CASE("params", "{" V ",\"id\":1," PING ",\"params\":{\"id\":2,\"x\":[{\"id\":3}]}}", REQ, 0, "1"),
	CASE("params before id", "{" V "," PING ",\"params\":{\"id\":2},\"id\":1}", REQ, 0, "1"),
	CASE("id is a value elsewhere", "{" V ",\"x\":\"id\",\"id\":4," PING "}", REQ, 0, "4"),
	CASE("escaped id key", "{" V ",\"\\u0069d\":5," PING "}", REQ, 0, "5"),
	CASE("both letters escaped", "{" V ",\"\\u0069\\u0064\":5," PING "}", REQ, 0, "5"),
	CASE("escaped method key", "{" V ",\"id\":5,\"\\u006dethod\":\"p\\u0069ng\"}", REQ, 0, "5"),
	CASE("id zero", "{" V ",\"id\":0," PING "}", REQ, 0, "0"),
	CASE("id minus zero", "{" V ",\"id\":-0," PING "}", REQ, 0, "-0"),
	CASE("id negative", "{" V ",\"id\":-12," PING "}", REQ, 0, "-12"),
	CASE("id past 2^53", "{" V ",\"id\":9007199254740993," PING "}", REQ, 0, "9007199254740993"),
	CASE("id greatest", "{" V ",\"id\":9223372036854775807," PING "}", REQ, 0, "9223372036854775807"),
	CASE("id past 64 bits", "{" V ",\"id\":92233720368547758070," PING "}", BAD, -32600, "92233720368547758070"),
	CASE("id empty", "{" V ",\"id\":\"\"," PING "}", REQ, 0, "\"\""),
	CASE("id with escapes", "{" V ",\"id\":\"a\\u0062\\\"\\\\\"," PING "}", REQ, 0, "\"a\\u0062\\\"\\\\\""),
	CASE("id with brackets", "{" V ",\"id\":\"{[,:]}\"," PING "}", REQ, 0, "\"{[,:]}\""),
	CASE("id with NUL", "{" V ",\"id\":\"\\u0000\"," PING "}", REQ, 0, "\"\\u0000\""),
	CASE("id in UTF-8", "{" V ",\"id\":\"\xc3\xa9\"," PING "}", REQ, 0, "\"\xc3\xa9\""),
	CASE("id null", "{" V ",\"id\":null," PING "}", BAD, -32600, NULL),
	CASE("id true", "{" V ",\"id\":true," PING "}", BAD, -32600, NULL),
	CASE("id fraction", "{" V ",\"id\":1.5," PING "}", BAD, -32600, NULL),
	CASE("id 1.0", "{" V ",\"id\":1.0," PING "}", BAD, -32600, NULL),
	CASE("id exponent", "{" V ",\"id\":1e3," PING "}", BAD, -32600, NULL),
	CASE("id object", "{" V ",\"id\":{\"id\":1}," PING "}", BAD, -32600, NULL),
	CASE("id array", "{" V ",\"id\":[1]," PING "}", BAD, -32600, NULL),
	CASE("notification", "{" V "," PING "}", NOTE, 0, NULL),
	CASE("notification, params no object", "{" V "," PING ",\"params\":3}", NOTE, 0, NULL),
	CASE("result", "{" V ",\"id\":1,\"result\":{}}", RESP, 0, "1"),
	CASE("error", "{" V ",\"id\":1,\"error\":{}}", RESP, 0, "1"),
	CASE("error with null id", "{" V ",\"id\":null,\"error\":{}}", RESP, 0, NULL),
	CASE("result and method", "{" V ",\"id\":1,\"result\":{}," PING "}", BAD, -32600, "1"),
	CASE("params array", "{" V ",\"id\":1," PING ",\"params\":[]}", BAD, -32602, "1"),
	CASE("params null", "{" V ",\"id\":1," PING ",\"params\":null}", BAD, -32602, "1"),
	CASE("no method", "{" V ",\"id\":1}", BAD, -32600, "1"),
	CASE("method number", "{" V ",\"id\":1,\"method\":7}", BAD, -32600, "1"),
	CASE("method with NUL", "{" V ",\"id\":1,\"method\":\"ping\\u0000\"}", BAD, -32600, "1"),
	CASE("no version", "{\"id\":1," PING "}", BAD, -32600, "1"),
	CASE("version 1.0", "{\"jsonrpc\":\"1.0\",\"id\":1," PING "}", BAD, -32600, "1"),
	CASE("version number", "{\"jsonrpc\":2.0,\"id\":1," PING "}", BAD, -32600, "1"),
	CASE("empty object", "{}", BAD, -32600, NULL),
	CASE("number", "42", BAD, -32600, NULL),
	CASE("string", "\"id\"", BAD, -32600, NULL),
	CASE("empty array", "[]", BAD, -32600, NULL),
	CASE("key twice", "{" V ",\"id\":1," PING "," PING "}", BAD, -32600, "1"),
	CASE("id twice", "{" V ",\"id\":1,\"id\":2," PING "}", BAD, -32600, NULL),
	CASE("id twice, one escaped", "{" V ",\"id\":1,\"\\u0069d\":{}," PING "}", BAD, -32600, NULL),
	CASE("number too large", "{" V ",\"id\":1," PING ",\"params\":{\"x\":99999999999999999999}}", BAD, -32600, "1"),
	CASE("number far too large", "{" V ",\"id\":1," PING ",\"params\":{\"x\":1e999}}", BAD, -32600, "1"),
	CASE("NUL in a key", "{" V ",\"id\":1," PING ",\"a\\u0000b\":1}", BAD, -32600, "1"),
	CASE("garbage", "hello", BAD, -32700, NULL),
	CASE("cut", "{" V ",\"id\":1," PING, BAD, -32700, NULL),
	CASE("trailing comma", "{" V ",\"id\":1," PING ",}", BAD, -32700, NULL),
	CASE("comment", "{" V ",/* */\"id\":1," PING "}", BAD, -32700, NULL),
	CASE("NaN", "{" V ",\"id\":NaN," PING "}", BAD, -32700, NULL),
	CASE("leading zero", "{" V ",\"id\":012," PING "}", BAD, -32700, NULL),
	CASE("two values", "{" V ",\"id\":1," PING "} {}", BAD, -32700, NULL),
	CASE("raw NUL", "{" V ",\"id\":1,\"method\":\"pi\0ng\"}", BAD, -32700, NULL),
	CASE("raw tab in a string", "{" V ",\"id\":1,\"method\":\"pi\tng\"}", BAD, -32700, NULL),
	CASE("not UTF-8", "{" V ",\"id\":1," PING ",\"x\":\"\xff\xfe\"}", BAD, -32700, NULL),
	CASE("overlong UTF-8", "{" V ",\"id\":1," PING ",\"x\":\"\xc0\x80\"}", BAD, -32700, NULL),
	CASE("lone surrogate", "{" V ",\"id\":1," PING ",\"x\":\"\\ud800\"}", BAD, -32600, "1"),
	CASE("lone low surrogate", "{" V "," PING ",\"x\":\"\\\\\\uDFFF\",\"id\":\"a\"}", BAD, -32600, "\"a\""),
	CASE("surrogates the wrong way", "{" V ",\"id\":1," PING ",\"x\":\"\\udc00\\ud800\"}", BAD, -32600, "1"),
	CASE("lone surrogate in the id", "{" V ",\"id\":\"\\ud800\"," PING "}", BAD, -32600, NULL),
	CASE("lone surrogate and more that is wrong", "{" V ",\"id\":1," PING ",\"x\":\"\\ud800\",}", BAD, -32700, NULL),
	CASE("lone surrogate in a batch", "[{" V ",\"id\":1," PING ",\"x\":\"\\ud800\"}]", BAD, -32600, NULL),
	CASE("bad escape", "{" V ",\"id\":1,\"method\":\"\\x70ing\"}", BAD, -32700, NULL),
	CASE("quote at the end", "{\"", BAD, -32700, NULL),
	CASE("backslash at the end", "{\"\\", BAD, -32700, NULL),
	CASE("NaN in a result", "{" V ",\"id\":1,\"result\":NaN}", RESP, -32700, "1"),
	CASE("NaN in a result, and no id", "{" V ",\"id\":[],\"result\":NaN}", BAD, -32700, NULL),
	CASE("NaN in a result, ids twice", "{" V ",\"id\":1,\"id\":2,\"result\":NaN}", BAD, -32600, NULL),
	CASE("NaN in a result with a method", "{" V ",\"id\":1," PING ",\"result\":NaN}", BAD, -32700, NULL),
	CASE("NaN in a batch of results", "[{" V ",\"id\":1,\"result\":NaN}]", BAD, -32700, NULL),
	CASE("number too large in a result", "{" V ",\"result\":1e999,\"id\":1}", RESP, -32600, "1"),
	CASE("key twice in an error", "{" V ",\"id\":1,\"error\":{\"a\":1,\"a\":1}}", RESP, -32600, "1"),
	CASE("closing only", "]}]}", BAD, -32700, NULL),
};

static void
check(const char *name, const struct jsonrpc_message *m, const struct a_case *c)
{
	if (m->kind != c->kind || m->code != c->code)
		fail_msg("%s: kind %d code %d", name, m->kind, m->code);
	if (!c->id != !m->id.raw || (c->id && strcmp(c->id, m->id.raw) != 0))
		fail_msg("%s: id %s", name, m->id.raw ? m->id.raw : "(none)");
	assert_int_equal(m->id.raw == NULL, m->id.value == NULL);
	if (m->kind == REQ || m->kind == NOTE)
		assert_string_equal(m->method, "ping");
	assert_int_equal(m->text == NULL, m->code == 0);
}

static void
every_line_is_what_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct jsonrpc_line line;

		jsonrpc_parse(cases[i].text, cases[i].len, &line);
		assert_false(line.is_batch);
		assert_int_equal(line.n, 1);
		check(cases[i].name, &line.message[0], &cases[i]);
		jsonrpc_line_done(&line);
	}
}

static void
every_prefix_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct a_case *c = &cases[i];
		size_t end = c->len;

		while (end && c->text[end - 1] == ' ')
			end--;
		for (size_t len = 1; c->code == 0 && len < end; len++) {
			struct jsonrpc_line line;
			char *copy = malloc(len);	/* exactly so long, for sanitizers */

			memcpy(copy, c->text, len);
			jsonrpc_parse(copy, len, &line);
			assert_int_equal(line.n, 1);
			assert_int_equal(line.message[0].code, JSONRPC_PARSE_ERROR);
			if (line.message[0].kind != RESP)
				assert_int_equal(line.message[0].kind, BAD);
			assert_int_equal(line.message[0].id.raw != NULL,
					 line.message[0].kind == RESP);
			jsonrpc_line_done(&line);
			free(copy);
		}
	}
}

static void
a_batch_keeps_each_id(void **state)
{
	static const char text[] = "[{" V ",\"id\":1," PING "},"
				   "{" V "," PING ",\"params\":{\"id\":[1,2,3]}},"
				   "7,{" V ",\"\\u0069d\":\"b\"," PING "},[{\"id\":9}],"
				   "{" V "," PING ",\"id\":1}]";
	static const char *const ids[] = { "1", NULL, NULL, "\"b\"", NULL, "1" };
	static const enum jsonrpc_kind kinds[] = { REQ, NOTE, BAD, REQ, BAD, REQ };
	struct jsonrpc_line line;

	(void)state;
	jsonrpc_parse(text, sizeof(text) - 1, &line);
	assert_true(line.is_batch);
	assert_int_equal(line.n, 6);
	for (size_t i = 0; i < line.n; i++) {
		assert_int_equal(line.message[i].kind, kinds[i]);
		if (ids[i])
			assert_string_equal(line.message[i].id.raw, ids[i]);
		else
			assert_null(line.message[i].id.raw);
	}
	jsonrpc_line_done(&line);
}

/* n times unit between prefix and suffix. */
static char *
repeated(const char *prefix, const char *unit, size_t n, const char *suffix)
{
	char *text = malloc(strlen(prefix) + n * strlen(unit) + strlen(suffix) + 1);
	char *at = stpcpy(text, prefix);

	while (n--)
		at = stpcpy(at, unit);
	strcpy(at, suffix);
	return text;
}

/* The code of a refused line. said: of text; NULL: none is expected. */
static int
code_that_says(char *text, const char *said)
{
	struct jsonrpc_line line;
	int code;

	jsonrpc_parse(text, strlen(text), &line);
	if (said)
		assert_non_null(strstr(line.message[0].text, said));
	code = line.is_batch ? 1 : line.message[0].code;
	jsonrpc_line_done(&line);
	free(text);
	return code;
}

static int
code_of(char *text)
{
	return code_that_says(text, NULL);
}

/* What is too much is refused by the id all the same, wherever it stands. */
static void
what_is_too_much_is_refused_by_its_id(void **state)
{
	static const struct {
		const char *head, *unit;
		size_t n;
		const char *tail, *id;
		enum jsonrpc_kind kind;
	} lines[] = {
		{ "{" V ",\"id\":1," PING ",\"params\":{\"x\":", "[", 1000, "", "1", BAD },
		{ "{" V ",\"params\":{\"x\":", "{\"id\":", 1000, "", NULL, BAD },
		{ "{" V ",\"params\":{\"x\":[0", ",0", JSONRPC_VALUES_MAX, "]},\"id\":\"a\"}",
		  "\"a\"", BAD },
		{ "{" V ",\"params\":{\"id\":[0", ",0", JSONRPC_VALUES_MAX, "]}}", NULL, BAD },
		{ "{" V ",\"id\":1,\"x\":[0", ",0", JSONRPC_VALUES_MAX, "],\"id\":2}", NULL, BAD },
		{ "[{" V ",\"id\":1,\"x\":[0", ",0", JSONRPC_VALUES_MAX, "]}]", NULL, BAD },
		{ "{" V ",\"id\":1.5,\"x\":[0", ",0", JSONRPC_VALUES_MAX, "]}", NULL, BAD },
		{ "{" V ",\"id\":1,\"result\":[0", ",0", JSONRPC_VALUES_MAX, "]}", "1", RESP },
		{ "{" V ",\"result\":{\"id\":[0", ",0", JSONRPC_VALUES_MAX, "]},\"id\":7}", "7", RESP },
		{ "{" V ",\"id\":1,\"error\":", "[", 1000, "", "1", RESP },
		{ "{" V ",\"id\":1,\"method\":1,\"result\":[0", ",0", JSONRPC_VALUES_MAX, "]}", "1", BAD },
		{ "{" V ",\"result\":{\"id\":1,\"x\":[0", ",0", JSONRPC_VALUES_MAX, "]}}", NULL, BAD },
		{ "[{" V ",\"id\":1,\"result\":[0", ",0", JSONRPC_VALUES_MAX, "]}]", NULL, BAD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char *text = repeated(lines[i].head, lines[i].unit, lines[i].n, lines[i].tail);
		struct jsonrpc_line line;

		jsonrpc_parse(text, strlen(text), &line);
		assert_int_equal(line.n, 1);
		assert_int_equal(line.message[0].code, JSONRPC_INVALID_REQUEST);
		assert_int_equal(line.message[0].kind, lines[i].kind);
		if (lines[i].id)
			assert_string_equal(line.message[0].id.raw, lines[i].id);
		else
			assert_null(line.message[0].id.raw);
		jsonrpc_line_done(&line);
		free(text);
	}
}

static void
bounds_hold_at_n_and_past_it(void **state)
{
	const char *head = "{" V ",\"id\":1," PING ",\"params\":{\"x\":";
	char *nested, *head2;

	(void)state;
	/* params and the message itself are two of the levels */
	nested = repeated(head, "[", JSONRPC_DEPTH_MAX - 2, "");
	assert_int_equal(code_of(repeated(nested, "]", JSONRPC_DEPTH_MAX - 2, "}}")), 0);
	free(nested);
	nested = repeated(head, "[", JSONRPC_DEPTH_MAX - 1, "");
	assert_int_equal(code_of(repeated(nested, "]", JSONRPC_DEPTH_MAX - 1, "}}")),
			 JSONRPC_INVALID_REQUEST);
	free(nested);
	assert_int_equal(code_of(repeated(head, "[", 100000, "")), JSONRPC_INVALID_REQUEST);

	/* two objects, the array and three commas before it are there already */
	head2 = repeated(head, "[0", 1, "");
	assert_int_equal(code_of(repeated(head2, ",0", JSONRPC_VALUES_MAX - 6, "]}}")), 0);
	assert_int_equal(code_of(repeated(head2, ",0", JSONRPC_VALUES_MAX - 5, "]}}")),
			 JSONRPC_INVALID_REQUEST);
	free(head2);

	assert_int_equal(code_of(repeated("[{}", ",{}", JSONRPC_BATCH_MAX - 1, "]")), 1);
	assert_int_equal(code_that_says(repeated("[{}", ",{}", JSONRPC_BATCH_MAX, "]"),
					"at most 100"),
			 JSONRPC_INVALID_REQUEST);

	assert_int_equal(code_of(repeated("{" V "," PING ",\"id\":\"", "i",
					  JSONRPC_ID_MAX - 2, "\"}")), 0);
	assert_int_equal(code_of(repeated("{" V "," PING ",\"id\":\"", "i",
					  JSONRPC_ID_MAX - 1, "\"}")),
			 JSONRPC_INVALID_REQUEST);
}

static void
answers_carry_the_id_as_it_was(void **state)
{
	struct jsonout out;
	char *text;

	(void)state;
	jsonout_init(&out);
	jsonrpc_open_result(&out, "\"\\u0061\"");
	jsonout_raw(&out, "{}", 2);
	jsonrpc_close_result(&out);
	text = jsonout_take(&out);
	assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"result\":{}}");
	free(text);
	jsonrpc_write_error(&out, NULL, -32700, "no", NULL);
	text = jsonout_take(&out);
	assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
				  "\"message\":\"no\"}}");
	free(text);
	jsonrpc_write_error(&out, "7", -1, "no", "[1]");
	text = jsonout_take(&out);
	assert_string_equal(text, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1,"
				  "\"message\":\"no\",\"data\":[1]}}");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_line_is_what_it_is),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(a_batch_keeps_each_id),
		cmocka_unit_test(what_is_too_much_is_refused_by_its_id),
		cmocka_unit_test(bounds_hold_at_n_and_past_it),
		cmocka_unit_test(answers_carry_the_id_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
