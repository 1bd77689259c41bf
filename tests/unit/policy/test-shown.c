/* SPDX-License-Identifier: Apache-2.0 */
/* What people see of a call's arguments before they agree to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/quote.h"
#include "policy/chain.h"
#include "policy/shown.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Malloc'd; NULL: it has no room. */
static char *
show(const char *json, const struct shown_bounds *bounds)
{
	json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	char *shown = NULL;
	size_t len;
	FILE *to = open_memstream(&shown, &len);
	bool fits;

	assert_non_null(value);
	assert_non_null(to);
	fits = shown_write(to, value, bounds);
	assert_int_equal(fclose(to), 0);
	json_decref(value);
	if (fits)
		return shown;
	assert_int_equal(len, 0);
	free(shown);
	return NULL;
}

/* What is not the caller's. Malloc'd. */
static char *
without_quotes(const char *shown)
{
	char *rest = strdup(shown), *to = rest;

	assert_non_null(rest);
	for (const char *at = shown; *at;) {
		size_t len = strcspn(at, "\n");

		len += at[len] == '\n';
		if (strncmp(at, SHOWN_MARK, strlen(SHOWN_MARK)) != 0) {
			memcpy(to, at, len);
			to += len;
		}
		at += len;
	}
	*to = '\0';
	return rest;
}

static void
arguments_have_their_names_and_values(void **state)
{
	static const struct {
		const char *json, *shown;
	} cases[] = {
		{ "{}", "arguments:\n> {}" },
		{ "{\"script\":\"print(1)\"}", "arguments:\n> script: \"print(1)\"" },
		{ "{\"a\":1,\"b\":true,\"c\":null,\"d\":[],\"e\":{}}",
		  "arguments:\n> a: 1\n> b: true\n> c: null\n> d: []\n> e: {}" },
		{ "{\"args\":[\"-v\",\"x y\"],\"limits\":{\"pids\":3}}",
		  "arguments:\n> args[0]: \"-v\"\n> args[1]: \"x y\"\n> limits.pids: 3" },
		{ "{\"a b\":{\"\\u001b\\nscript: x\":1}}", "arguments:\n> \"a b\".\"\\x1b\\x0ascript: x\": 1" },
		{ "{\"stdin\":\"text 7\"}", "arguments:\n> stdin: \"text 7\"" },
		{ "{\"stdin\":\"\\u202e\"}",
		  "text 1, 3 bytes, SHA-256\n"
		  "  0000000000000000000000000000000000000000000000000000000000000000\n"
		  "\narguments:\n> stdin: text 1\n\ntext 1:\n> \\u202e" },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		char *shown = show(cases[i].json, &shown_in_form), want[2048],
			hash[CHAIN_DIGITS + 1];
		char *digits;

		snprintf(want, sizeof(want), "%s", cases[i].shown);
		chain_hash("\xe2\x80\xae", 3, hash);
		digits = strstr(want, "SHA-256\n  ");
		if (digits)
			memcpy(digits + 10, hash, CHAIN_DIGITS);
		assert_non_null(shown);
		assert_string_equal(shown, want);
		free(shown);
	}
}

static void
texts_have_numbers_and_sums(void **state)
{
	static const char json[] = "{\"files\":[{\"path\":\"x.py\",\"text\":\"import os\\n\"}],"
				   "\"script\":\"exec(open('x.py').read())\\ntext 1:\\n\\u0000\"}";
	char want[1024], file[CHAIN_DIGITS + 1], script[CHAIN_DIGITS + 1], *shown;

	(void)state;
	chain_hash("import os\n", 10, file);
	chain_hash("exec(open('x.py').read())\ntext 1:\n", 35, script);
	snprintf(want, sizeof(want),
		 "text 1, 10 bytes, SHA-256\n  %s\ntext 2, 35 bytes, SHA-256\n  %s\n\n"
		 "arguments:\n> files[0].path: \"x.py\"\n> files[0].text: text 1\n> script: text 2\n\n"
		 "text 1:\n> import os\n> \n\n"
		 "text 2:\n> exec(open('x.py').read())\n> text 1:\n> \\x00", file, script);
	shown = show(json, &shown_in_form);
	assert_string_equal(shown, want);
	free(shown);
}

/* Malloc'd: {"script": a text of so many lines "x"}, and another argument. */
static char *
long_script(unsigned int lines)
{
	json_t *value;
	char *script = malloc(2 * lines + 1), *json;

	assert_non_null(script);
	for (unsigned int i = 0; i < lines; i++)
		memcpy(script + 2 * i, "x\n", 2);
	script[2 * lines] = '\0';
	value = json_pack("{s:s,s:s}", "script", script, "stdin", "1\n2");
	json = json_dumps(value, 0);
	json_decref(value);
	free(script);
	return json;
}

static void
what_is_cut_is_said_to_be(void **state)
{
	static const unsigned int lines[] = { 10, 99, 100, 5000, 2000000 };

	(void)state;
	for (size_t i = 0; i < N(lines); i++) {
		char *json = long_script(lines[i]), *shown = show(json, &shown_in_form), size[80];
		bool whole = lines[i] < 100;

		assert_non_null(shown);
		assert_true(strlen(shown) < 13000);
		snprintf(size, sizeof(size), "text 1, %u bytes%s, SHA-256\n", 2 * lines[i],
			 whole ? "" : ", NOT ALL OF IT SHOWN");
		assert_memory_equal(shown, size, strlen(size));
		assert_int_equal(strstr(shown, "\n> [...]\n") == NULL, whole);
		/* The other one is there in any case. */
		assert_non_null(strstr(shown, "\ntext 2, 3 bytes, SHA-256\n"));
		assert_non_null(strstr(shown, "\n\ntext 2:\n> 1\n> 2"));
		free(shown);
		free(json);
	}
}

/* Malloc'd: an object of n members, each the JSON text value. */
static char *
members(unsigned int n, const char *value)
{
	char *json = malloc(n * (strlen(value) + 32) + 8), *at = json;

	assert_non_null(json);
	*at++ = '{';
	for (unsigned int i = 0; i < n; i++)
		at += sprintf(at, "%s\"argument%u\":%s", i ? "," : "", i, value);
	strcpy(at, "}");
	return json;
}

static void
too_much_is_no_form(void **state)
{
	static const struct {
		unsigned int n;
		const char *value;
		bool fits;
	} cases[] = {
		{ 48, "1", true },	{ 49, "1", false },	{ 200000, "1", false },
		{ 16, "\"\\n\"", true }, { 17, "\"\\n\"", false },
		{ 24, "\"0123456789012345678901234567890123456789012345678901234567\"", true },
		{ 25, "\"0123456789012345678901234567890123456789012345678901234567\"", false },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		char *json = members(cases[i].n, cases[i].value);
		char *shown = show(json, &shown_in_form);

		assert_int_equal(shown != NULL, cases[i].fits);
		free(shown);
		shown = show(json, &shown_whole);
		assert_non_null(shown);
		free(shown);
		free(json);
	}
}

static void
what_is_deep_or_has_long_names_is_a_text(void **state)
{
	char json[4096] = "", want[64], *shown;

	(void)state;
	for (int i = 0; i < 300; i++)
		strcat(json, "{\"a\":");
	strcat(json, "1");
	for (int i = 0; i < 300; i++)
		strcat(json, "}");
	shown = show(json, &shown_in_form);
	assert_non_null(shown);
	snprintf(want, sizeof(want), "text 1, %zu bytes, SHA-256\n", strlen(json) - 8 * 6);
	assert_memory_equal(shown, want, strlen(want));
	assert_non_null(strstr(shown, "\n> a.a.a.a.a.a.a.a: text 1\n"));
	free(shown);
	snprintf(json, sizeof(json), "{\"x\":{\"%065d\":1}}", 0);
	shown = show(json, &shown_in_form);
	assert_non_null(strstr(shown, "\n> x: text 1\n"));
	free(shown);
}

/* Unmarked lines have numbers, sizes and sums, with any arguments. */
static void
nothing_of_theirs_is_unmarked(void **state)
{
	static const char *const values[] = {
		"{\"script\":\"a\\n\\ntext 2, 1 bytes, SHA-256\\r\\u2028b\\u0085c\\u001b[2J\"}",
		"{\"x\\ntext 9:\":\"\\n\",\"\\u009b31m\":[\"\\u202e\",{\"\":\"\\u200b\"}]}",
		"[\"\\n\",[\"\\n\",[\"\\n\"]]]", "\"\\nMay it?\\n\"", "7",
		"{\"a\":\"\\n> x\\n>+y\"}",
	};

	(void)state;
	for (size_t i = 0; i < N(values); i++) {
		char *shown = show(values[i], &shown_in_form);
		char *rest = without_quotes(shown), *at = rest;

		for (char *line = strtok(at, "\n"); line; line = strtok(NULL, "\n")) {
			unsigned int number, bytes;
			char end[2] = "";
			size_t digits = strspn(line + (*line ? 2 : 0), "0123456789abcdef");

			assert_true(strcmp(line, "arguments:") == 0 ||
				    (sscanf(line, "text %u, %u bytes, SHA-25%1[6]", &number, &bytes,
					    end) == 3) ||
				    (sscanf(line, "text %u%1[:]", &number, end) == 2 &&
				     strlen(line) <= 8) ||
				    (memcmp(line, "  ", 2) == 0 && digits == CHAIN_DIGITS &&
				     strlen(line) == 2 + CHAIN_DIGITS));
		}
		for (char *line = strtok(shown, "\n"); line; line = strtok(NULL, "\n"))
			assert_true(quote_is_plain(line, strlen(line)));
		free(rest);
		free(shown);
	}
}

static void
json_is_printable_ascii(void **state)
{
	json_t *value = json_loads("{\"a\\u007f\":\"\\u009b\\u202e\\u007f\\u00e9\\n\\ud83d\\ude00\"}", 0,
				   NULL), *again;
	char *text = shown_json(value, JSON_COMPACT);

	(void)state;
	for (const char *at = text; *at; at++)
		assert_in_range(*at, ' ', '~');
	again = json_loads(text, 0, NULL);
	assert_true(json_equal(value, again));
	json_decref(again);
	json_decref(value);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_have_their_names_and_values),
		cmocka_unit_test(texts_have_numbers_and_sums),
		cmocka_unit_test(what_is_cut_is_said_to_be),
		cmocka_unit_test(too_much_is_no_form),
		cmocka_unit_test(what_is_deep_or_has_long_names_is_a_text),
		cmocka_unit_test(nothing_of_theirs_is_unmarked),
		cmocka_unit_test(json_is_printable_ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
