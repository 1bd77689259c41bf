/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/jsonout.h"

#define BYTES(text) text, sizeof(text) - 1

static void
values_and_commas(void **state)
{
	struct jsonout out;
	size_t len;
	char *text;

	(void)state;
	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "a", "x");
	jsonout_member_uint(&out, "b", UINT64_MAX);
	jsonout_member_open(&out, "c", '[');
	jsonout_int(&out, INT64_MIN);
	jsonout_null(&out);
	jsonout_open(&out, '{');
	jsonout_close(&out, '}');
	jsonout_bool(&out, true);
	jsonout_close(&out, ']');
	jsonout_member_bool(&out, "d", false);
	jsonout_member_raw(&out, "e", "1e3");
	jsonout_member_real(&out, "f", 0.5);
	jsonout_close(&out, '}');
	text = jsonout_take_line(&out, &len);
	assert_string_equal(text, "{\"a\":\"x\",\"b\":18446744073709551615,\"c\":"
				  "[-9223372036854775808,null,{},true],\"d\":false,"
				  "\"e\":1e3,\"f\":0.5}\n");
	assert_int_equal(len, strlen(text));
	free(text);
	assert_int_equal(out.len, 0);
}

static const struct {
	const char *text;
	size_t len;
	const char *json;
} texts[] = {
	{ BYTES(""), "\"\"" },
	{ BYTES("plain"), "\"plain\"" },
	{ BYTES("a\"b\\c/"), "\"a\\\"b\\\\c/\"" },
	{ BYTES("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"" },
	{ BYTES("\0\x01\x1f\x7f"), "\"\\u0000\\u0001\\u001f\\u007f\"" },
	{ BYTES("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d"),
	  "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d\"" },
	{ BYTES("\xff"), "\"\xef\xbf\xbd\"" },
	{ BYTES("\xc3"), "\"\xef\xbf\xbd\"" },
	{ BYTES("\xc3(" ), "\"\xef\xbf\xbd(\"" },
	{ BYTES("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ BYTES("\xe0\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ BYTES("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ BYTES("\xf4\x90\x80\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	{ BYTES("\xf0\x9f\x90"), "\"\xef\xbf\xbd\"" },
	{ BYTES("\xf0\x9f\x90(\xe2\x82"), "\"\xef\xbf\xbd(\xef\xbf\xbd\"" },
	{ BYTES("\xf4\x8f\xbf\xbf"), "\"\xf4\x8f\xbf\xbf\"" },
};

static void
check_repaired(const char *text, size_t len, const char *json)
{
	json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	assert_int_equal(jsonout_repaired(text, len), json_string_length(value));
	json_decref(value);
}

static void
any_bytes_become_a_string(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct jsonout out;
		char *json;

		jsonout_init(&out);
		jsonout_text(&out, texts[i].text, texts[i].len);
		json = jsonout_take(&out);
		assert_string_equal(json, texts[i].json);
		assert_int_equal(jsonout_cost(texts[i].text, texts[i].len), strlen(json));
		check_repaired(texts[i].text, texts[i].len, json);
		free(json);
	}
}

/* Every pair of bytes, against a parser that checks UTF-8. */
static void
two_bytes_are_always_json(void **state)
{
	(void)state;
	for (unsigned int a = 0; a < 256; a++)
		for (unsigned int b = 0; b < 256; b++) {
			const char bytes[2] = { (char)a, (char)b };
			struct jsonout out;
			json_t *value;

			jsonout_init(&out);
			jsonout_text(&out, bytes, 2);
			value = json_loadb(out.at, out.len,
					   JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
			assert_true(json_is_string(value));
			json_decref(value);
			jsonout_done(&out);
		}
}

static void
a_fitting_head_ends_between_characters(void **state)
{
	static const char text[] = "ab\xc3\xa9\n\xff" "c";

	(void)state;
	assert_int_equal(jsonout_fit(BYTES(text), 100), sizeof(text) - 1);
	/* two quotes, a, b; then two, two and three bytes */
	assert_int_equal(jsonout_fit(BYTES(text), 2), 0);
	assert_int_equal(jsonout_fit(BYTES(text), 4), 2);
	assert_int_equal(jsonout_fit(BYTES(text), 5), 2);
	assert_int_equal(jsonout_fit(BYTES(text), 6), 4);
	assert_int_equal(jsonout_fit(BYTES(text), 7), 4);
	assert_int_equal(jsonout_fit(BYTES(text), 8), 5);
	assert_int_equal(jsonout_fit(BYTES(text), 11), 6);
	assert_int_equal(jsonout_fit(BYTES(text), 12), 7);
}

/* Every byte at every place among plain ones, which are written eight at a time: the same as one
 * by one. */
static void
a_byte_is_seen_wherever_it_is(void **state)
{
	char text[20];

	(void)state;
	for (unsigned int byte = 0; byte < 256; byte++)
		for (size_t at = 0; at < sizeof(text); at++) {
			const char one = (char)byte;
			size_t cost = sizeof(text) - 1 + jsonout_cost(&one, 1);
			struct jsonout out;

			memset(text, 'a', sizeof(text));
			text[at] = one;
			jsonout_init(&out);
			jsonout_text(&out, text, sizeof(text));
			assert_int_equal(out.len, cost);
			assert_int_equal(jsonout_cost(text, sizeof(text)), cost);
			assert_int_equal(jsonout_fit(text, sizeof(text), cost), sizeof(text));
			assert_true(jsonout_fit(text, sizeof(text), cost - 1) < sizeof(text));
			assert_int_equal(jsonout_fit(text, sizeof(text), 2 + at), at);
			assert_int_equal(jsonout_fit(text, sizeof(text), 0), 0);
			jsonout_done(&out);
		}
}

static void
bytes_become_a_data_uri(void **state)
{
	static const char *const uris[] = { "[\"data:a/b;base64,\",", "\"data:a/b;base64,YQ==\",",
					    "\"data:a/b;base64,YWI=\",", "\"data:a/b;base64,YWJj\"]" };
	struct jsonout out;
	char *json, *at;

	(void)state;
	jsonout_init(&out);
	jsonout_open(&out, '[');
	for (size_t len = 0; len < 4; len++)
		jsonout_data_uri(&out, "a/b", "abc", len);
	jsonout_close(&out, ']');
	json = at = jsonout_take(&out);
	for (size_t i = 0; i < 4; at += strlen(uris[i++]))
		assert_memory_equal(at, uris[i], strlen(uris[i]));
	assert_string_equal(at, "");
	free(json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_become_a_data_uri),
		cmocka_unit_test(values_and_commas),
		cmocka_unit_test(any_bytes_become_a_string),
		cmocka_unit_test(two_bytes_are_always_json),
		cmocka_unit_test(a_fitting_head_ends_between_characters),
		cmocka_unit_test(a_byte_is_seen_wherever_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
