/* SPDX-License-Identifier: Apache-2.0 */
/* What a character is, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

/* Compared with the rule itself: what encodes a scalar value is well-formed, nothing
 * else. */
static size_t
encode(uint32_t c, unsigned char *to)
{
	if (c < 0x80)
		return to[0] = (unsigned char)c, 1;
	if (c < 0x800) {
		to[0] = (unsigned char)(0xc0 | c >> 6);
		to[1] = (unsigned char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (unsigned char)(0xe0 | c >> 12);
		to[1] = (unsigned char)(0x80 | (c >> 6 & 63));
		to[2] = (unsigned char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (unsigned char)(0xf0 | c >> 18);
	to[1] = (unsigned char)(0x80 | (c >> 12 & 63));
	to[2] = (unsigned char)(0x80 | (c >> 6 & 63));
	to[3] = (unsigned char)(0x80 | (c & 63));
	return 4;
}

static void
every_code_point_is_judged_rightly(void **state)
{
	(void)state;
	for (uint32_t c = 0; c < 0x1fffff; c++) {
		bool scalar = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
		unsigned char bytes[UTF8_MAX];
		size_t len = encode(c, bytes), bad;

		if (utf8_character(bytes, len, &bad) != (scalar ? len : 0) ||
		    utf8_prefix(bytes, len) != (scalar ? len : 0))
			fail_msg("U+%04X", c);
		if (scalar && utf8_code(bytes) != c)
			fail_msg("U+%04X is read as U+%04X", c, utf8_code(bytes));
		for (size_t n = 1; n < len; n++)
			if (utf8_character(bytes, n, &bad) != 0 || utf8_prefix(bytes, n) != 0 ||
			    (scalar && utf8_begun(bytes, n) != n))
				fail_msg("U+%04X cut", c);
	}
}

static void
prefixes_end_at_the_first_fault(void **state)
{
	static const struct {
		const char *text;
		size_t len, prefix, bad;
	} cases[] = {
#define TEXT(text, prefix, bad) { text, sizeof(text) - 1, prefix, bad }
		TEXT("", 0, 0),
		TEXT("a\0b", 3, 0),
		TEXT("0123456\xff", 7, 1),
		TEXT("01234567\xff", 8, 1),
		TEXT("012345678\xc3\xa9", 11, 0),
		TEXT("\x80", 0, 1),
		TEXT("\xc0\xaf", 0, 1),
		TEXT("x\xc3", 1, 1),
		TEXT("\xe2\x82", 0, 2),
		TEXT("\xe2\x28\xa1", 0, 1),
		TEXT("\xe2\x82\x28", 0, 2),
		TEXT("\xed\xa0\x80", 0, 1),
		TEXT("\xf0\x9f\x98", 0, 3),
		TEXT("\xf0\x8f\xbf\xbf", 0, 1),
		TEXT("\xf4\x90\x80\x80", 0, 1),
		TEXT("\xf5\x80", 0, 1),
#undef TEXT
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = utf8_prefix(cases[i].text, cases[i].len), bad;

		assert_int_equal(n, cases[i].prefix);
		if (n == cases[i].len)
			continue;
		assert_int_equal(utf8_character(cases[i].text + n, cases[i].len - n, &bad), 0);
		assert_int_equal(bad, cases[i].bad);
	}
}

static void
begun_characters_are_seen_at_every_length(void **state)
{
	(void)state;
	assert_int_equal(utf8_begun("", 0), 0);
	assert_int_equal(utf8_begun("a\xf0\x9f\x98\x80", 5), 0);
	assert_int_equal(utf8_begun("a\xf0\x9f\x98", 4), 3);
	assert_int_equal(utf8_begun("a\xf0\x9f", 3), 2);
	assert_int_equal(utf8_begun("a\xf0", 2), 1);
	assert_int_equal(utf8_begun("\x9f\x98\x80", 3), 0);
	assert_int_equal(utf8_begun("\xed\xa0", 2), 0);
	assert_int_equal(utf8_begun("\xff", 1), 0);
}

static void
characters_are_counted(void **state)
{
	(void)state;
	assert_int_equal(utf8_count("", 0), 0);
	assert_int_equal(utf8_count("a\0b", 3), 3);
	assert_int_equal(utf8_count("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", 10), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_is_judged_rightly),
		cmocka_unit_test(prefixes_end_at_the_first_fault),
		cmocka_unit_test(characters_are_counted),
		cmocka_unit_test(begun_characters_are_seen_at_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
