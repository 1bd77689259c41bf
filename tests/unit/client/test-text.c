/* SPDX-License-Identifier: Apache-2.0 */
/* Where text stops being text, and how a script file with such a place is refused. */
#include "client/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/exits.h"
#include "client/script.h"
#include "tests/unit/client/cmocka_all.h"

#define TEXT(literal) literal, sizeof(literal) - 1

static const struct text_case {
	const char *name, *bytes;
	size_t len;
	size_t offset, line, column; /* line 0: well-formed */
} cases[] = {
	{ "empty",                 TEXT(""), 0, 0, 0 },
	{ "ascii",                 TEXT("print(1)\n"), 0, 0, 0 },
	{ "every length",          TEXT("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"
					"\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), 0, 0, 0 },
	{ "continuation alone",    TEXT("a\x80"), 1, 1, 2 },
	{ "latin-1",               TEXT("# one\nprint('caf\xe9')\n"), 16, 2, 11 },
	{ "overlong slash",        TEXT("\xc0\xaf"), 0, 1, 1 },
	{ "overlong in three",     TEXT("x\xe0\x9f\xbf"), 1, 1, 2 },
	{ "overlong in four",      TEXT("\xf0\x8f\xbf\xbf"), 0, 1, 1 },
	{ "surrogate",             TEXT("ok\n\xed\xa0\x80"), 3, 2, 1 },
	{ "above U+10FFFF",        TEXT("\xf4\x90\x80\x80"), 0, 1, 1 },
	{ "five bytes",            TEXT("\xf8\x88\x80\x80\x80"), 0, 1, 1 },
	{ "cut after one of two",  TEXT("a\n\n\xc3"), 3, 3, 1 },
	{ "cut after two of three", TEXT("\xe2\x82"), 0, 1, 1 },
	{ "cut after three of four", TEXT("\xf0\x9f\x98"), 0, 1, 1 },
	{ "second byte wrong",     TEXT("\xe2\x28\xa1"), 0, 1, 1 },
	{ "third byte wrong",      TEXT("\xe2\x82\x28"), 0, 1, 1 },
	{ "NUL",                   TEXT("a = 1\nb\0c"), 7, 2, 2 },
	{ "NUL before a wrong byte", TEXT("\0\xff"), 0, 1, 1 },
	{ "wrong byte before a NUL", TEXT("\xff\0"), 0, 1, 1 },
};

static void
the_first_wrong_byte_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		const struct text_case *c = &cases[i];
		struct text_position at = {0};

		if (text_check(c->bytes, c->len, true, &at) != (c->line == 0))
			fail_msg("%s", c->name);
		if (c->line && (at.offset != c->offset || at.line != c->line ||
				at.column != c->column))
			fail_msg("%s: %zu %zu:%zu", c->name, at.offset, at.line,
				 at.column);
	}
}

static void
nul_is_text_where_it_is_allowed(void **state)
{
	struct text_position at;

	(void)state;
	assert_true(text_check(TEXT("a\0b"), false, &at));
	assert_false(text_check(TEXT("a\0\xff"), false, &at));
	assert_int_equal(at.offset, 2);
}

static int
load_bytes(const char *bytes, size_t len, struct script_text *text_r)
{
	char path[] = "/tmp/test-utf8.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	r = script_load(path, text_r);
	unlink(path);
	return r;
}

static void
a_script_file_is_read_whole_or_refused(void **state)
{
	struct script_text text;
	char *large = malloc(SCRIPT_FILE_MAX + 1);

	(void)state;
	memset(large, '#', SCRIPT_FILE_MAX + 1);
	assert_int_equal(load_bytes(TEXT("print(1)\r\n"), &text), 0);
	assert_int_equal(text.len, 10);
	assert_memory_equal(text.bytes, "print(1)\r\n", 10);
	script_text_free(&text);
	assert_int_equal(load_bytes("", 0, &text), 0);
	assert_int_equal(text.len, 0);
	script_text_free(&text);
	assert_int_equal(load_bytes(TEXT("x\0"), &text), EX_DATAERR);
	assert_int_equal(load_bytes(TEXT("\xff"), &text), EX_DATAERR);
	assert_int_equal(load_bytes(large, SCRIPT_FILE_MAX, &text), 0);
	assert_int_equal(text.len, SCRIPT_FILE_MAX);
	script_text_free(&text);
	assert_int_equal(load_bytes(large, SCRIPT_FILE_MAX + 1, &text), EX_DATAERR);
	assert_int_equal(script_load("/nonexistent/x.py", &text), EX_NOINPUT);
	assert_int_equal(script_load("/", &text), EX_NOINPUT);
	free(large);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_wrong_byte_is_found),
		cmocka_unit_test(nul_is_text_where_it_is_allowed),
		cmocka_unit_test(a_script_file_is_read_whole_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
