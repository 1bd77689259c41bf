/* SPDX-License-Identifier: Apache-2.0 */
/* What people see of text that strangers wrote. */
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
#include "base/utf8.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(text) text, sizeof(text) - 1

static const struct quote_block standard = { ">", QUOTE_COLUMNS, SIZE_MAX, SIZE_MAX };

/* Malloc'd. */
static char *
block_of(const struct quote_block *block, const char *text, size_t len, bool *whole_r)
{
	char *shown = NULL;
	size_t n;
	FILE *to = open_memstream(&shown, &n);

	assert_non_null(to);
	*whole_r = quote_block(to, block, text, len);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(strlen(shown), n);
	return shown;
}

/* ---- tables ---- */

static const struct line_case {
	const char *text;
	size_t len;
	const char *line;
} lines[] = {
	{ TEXT(""), "" },
	{ TEXT("plain, ~`'\"\\"), "plain, ~`'\"\\" },
	{ TEXT("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xe5\x90\x8d"),
	  "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 \xe5\x90\x8d" },
	{ TEXT("a\nb\r\nc\td\0e"), "a\\x0ab\\x0d\\x0ac\\x09d\\x00e" },
	{ TEXT("\x1b[2J\x1b]0;owned\a\b\x7f"), "\\x1b[2J\\x1b]0;owned\\x07\\x08\\x7f" },
	/* C1: CSI, NEL, OSC, and the last */
	{ TEXT("\xc2\x9b" "31m\xc2\x85\xc2\x9d\xc2\x9f\xc2\xa0"),
	  "\\u009b31m\\u0085\\u009d\\u009f\xc2\xa0" },
	/* bytes that are no UTF-8, a raw C1 among them */
	{ TEXT("\x9b" "31m\xff\xc3"), "\\x9b31m\\xff\\xc3" },
	{ TEXT("\xed\xa0\x80\xc0\xaf"), "\\xed\\xa0\\x80\\xc0\\xaf" },
	/* bidi: embeddings, overrides, isolates, marks */
	{ TEXT("\xe2\x80\xaa\xe2\x80\xae" "gpj.exe\xe2\x80\xac"), "\\u202a\\u202egpj.exe\\u202c" },
	{ TEXT("\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c"),
	  "\\u2066\\u2069\\u200e\\u200f\\u061c" },
	/* no width: spaces, joiners, soft hyphen, BOM, grapheme joiner, variation selector */
	{ TEXT("\xe2\x80\x8b\xe2\x80\x8c\xe2\x80\x8d\xc2\xad\xef\xbb\xbf\xcd\x8f\xef\xb8\x8f"),
	  "\\u200b\\u200c\\u200d\\u00ad\\ufeff\\u034f\\ufe0f" },
	/* letters without a shape */
	{ TEXT("\xe1\x85\x9f\xe3\x85\xa4\xef\xbe\xa0"), "\\u115f\\u3164\\uffa0" },
	/* line and paragraph separators, tags */
	{ TEXT("\xe2\x80\xa8\xe2\x80\xa9\xf3\xa0\x81\x81"), "\\u2028\\u2029\\U000e0041" },
	/* five marks on one letter; two words with one each */
	{ TEXT("o\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81"),
	  "o\xcc\x81\xcc\x81\xcc\x81\xcc\x81\\u0301" },
	{ TEXT("e\xcc\x81 e\xcc\x81"), "e\xcc\x81 e\xcc\x81" },
};

static void
what_is_not_seen_is_spelled_out(void **state)
{
	char line[256];

	(void)state;
	for (size_t i = 0; i < N(lines); i++) {
		size_t n = quote_line(line, sizeof(line), lines[i].text, lines[i].len);

		assert_string_equal(line, lines[i].line);
		assert_int_equal(n, strlen(line));
	}
}

static void
a_line_is_cut_between_characters(void **state)
{
	static const char text[] = "ab\x1b" "c\xe2\x82\xac";
	static const char whole[] = "ab\\x1bc\xe2\x82\xac";
	char line[64];

	(void)state;
	for (size_t size = 4; size <= sizeof(whole); size++) {
		size_t n = quote_line(line, size, TEXT(text));

		assert_true(n < size);
		assert_int_equal(utf8_prefix(line, n), n);
		if (size == sizeof(whole))
			assert_string_equal(line, whole);
		else
			assert_string_equal(line + n - 3, "...");
	}
	quote_line(line, 8, TEXT(text));
	assert_string_equal(line, "ab...");
	quote_line(line, 10, TEXT(text));
	assert_string_equal(line, "ab\\x1b...");
}

static void
a_word_ends_where_it_says(void **state)
{
	char word[32];

	(void)state;
	quote_word(word, sizeof(word), TEXT("a\", b\\"));
	assert_string_equal(word, "\"a\\\", b\\\\\"");
	quote_word(word, sizeof(word), TEXT("\n"));
	assert_string_equal(word, "\"\\x0a\"");
	quote_word(word, 6, TEXT("much too long"));
	assert_string_equal(word, "\"...\"");
	quote_word(word, 9, TEXT("\"\"\"\"\"\""));
	assert_string_equal(word, "\"\\\"...\"");
}

static void
blocks_are_marked_and_folded(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		struct quote_block block;
		bool whole;
		const char *shown;
	} cases[] = {
		{ TEXT(""), { ">", 20, 9, 99 }, true, "> " },
		{ TEXT("Who? "), { ">", 20, 9, 99 }, true, "> Who? " },
		{ TEXT("a\n\nb\n"), { ">", 20, 9, 99 }, true, "> a\n> \n> b\n> " },
		{ TEXT("a\r\nb\rc\n"), { ">", 20, 9, 99 }, true, "> a\n> b\\x0dc\n> " },
		{ TEXT("a\xe2\x80\xa8" "b\xc2\x85" "c"), { ">", 20, 9, 99 }, true, "> a\\u2028b\\u0085c" },
		{ TEXT("\tx"), { ">", 20, 9, 99 }, true, ">         x" },
		/* exactly as many columns, one more, and a blank to break behind */
		{ TEXT("01234567890123456789"), { ">", 20, 9, 99 }, true, "> 01234567890123456789" },
		{ TEXT("012345678901234567890"), { ">", 20, 9, 99 }, true, "> 01234567890123456789\n>+0" },
		{ TEXT("012345678901234 67890\nx"), { ">", 20, 9, 99 }, true,
		  "> 012345678901234 \n>+67890\n> x" },
		{ TEXT("0123 5678901234567890"), { ">", 20, 9, 99 }, true, "> 0123 567890123456789\n>+0" },
		/* an escape is never torn; what is wide has two columns */
		{ TEXT("0123456789012345678\x1b"), { ">", 20, 9, 99 }, true,
		  "> 0123456789012345678\n>+\\x1b" },
		{ TEXT("0123456789012345678\xe5\x90\x8d"), { ">", 20, 9, 99 }, true,
		  "> 0123456789012345678\n>+\xe5\x90\x8d" },
		/* bounds */
		{ TEXT("1\n2\n3"), { ">", 20, 3, 99 }, true, "> 1\n> 2\n> 3" },
		{ TEXT("1\n2\n3\n"), { ">", 20, 3, 99 }, false, "> 1\n> 2\n> 3\n> [...]" },
		{ TEXT("1\n2\n3"), { ">", 20, 9, 12 }, true, "> 1\n> 2\n> 3" },
		{ TEXT("1\n2\n34"), { ">", 20, 9, 12 }, false, "> 1\n> 2\n> [...]" },
		{ TEXT("1234567890"), { ">", 20, 9, 4 }, false, "> [...]" },
		{ TEXT("a\nb"), { "script>", 20, 9, 99 }, true, "script> a\nscript> b" },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		bool whole;
		char *shown = block_of(&cases[i].block, cases[i].text, cases[i].len, &whole);

		assert_string_equal(shown, cases[i].shown);
		assert_int_equal(whole, cases[i].whole);
		free(shown);
	}
}

/* ---- what holds of any text ---- */

/* By its own words, and not by the table of the module. */
static bool
must_not_be_seen(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0000 && c <= 0xe0fff);
}

static void
check_line(const char *line, size_t len)
{
	assert_int_equal(utf8_prefix(line, len), len);
	for (size_t at = 0, bad; at < len; at += utf8_character(line + at, len - at, &bad))
		if (must_not_be_seen(utf8_code(line + at)))
			fail_msg("U+%04X is there", utf8_code(line + at));
}

static void
check_block(const char *text, size_t len, const struct quote_block *block)
{
	const size_t mark = strlen(block->mark);
	bool whole;
	char *shown = block_of(block, text, len, &whole), *line = shown;
	size_t n = 0;

	for (;;) {
		size_t end = strcspn(line, "\n");

		assert_true(end > mark && memcmp(line, block->mark, mark) == 0);
		assert_true(line[mark] == ' ' || line[mark] == '+');
		check_line(line, end);
		assert_true(end - mark - 1 <= block->columns * UTF8_MAX);
		n++;
		if (!line[end])
			break;
		line += end + 1;
	}
	assert_true(n <= block->lines || (!whole && n - 1 <= block->lines));
	assert_true(!whole || strlen(shown) <= block->bytes);
	free(shown);
}

static uint32_t seed = 1;

static uint32_t
any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static void
whatever_the_text_every_line_is_marked_and_nothing_hides(void **state)
{
	static const char *const nasty[] = {
		"\n", "\r", "\r\n", "\x1b[", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\x8b", "\x9b", "\xff",
		"\xe2\x80", "\xf0\x9f\x98\x80", "\xcc\x81", "> ", "\t", " ", "word ", "\xe2\x80\xa8",
		"\xf3\xa0\x81\x81", "\\", "\"", "\xef\xb8\x8f", "\x7f", "\xc2\xa0", "\xe3\x80\x80",
	};

	(void)state;
	for (unsigned int round = 0; round < 20000; round++) {
		struct quote_block block = { any(2) ? ">" : "script>", 20 + any(60), any(20),
					     any(400) };
		char text[300], line[64];
		const char *piece;
		size_t len = 0, n;

		while (len < sizeof(text) - 8 && any(60) > 0) {
			if (any(3) == 0) {
				text[len++] = (char)any(256);
				continue;
			}
			piece = nasty[any(N(nasty))];
			memcpy(text + len, piece, strlen(piece));
			len += strlen(piece);
		}
		check_block(text, len, &block);
		check_block(text, len, &standard);
		n = quote_line(line, 4 + any(sizeof(line) - 3), text, len);
		assert_int_equal(n, strlen(line));
		check_line(line, n);
		n = quote_word(line, 6 + any(sizeof(line) - 5), text, len);
		assert_int_equal(n, strlen(line));
		check_line(line, n);
	}
}

/* Alone, each either is an escape in ASCII or itself, and then it is plain. */
static void
every_character_is_itself_or_an_escape(void **state)
{
	(void)state;
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		char text[UTF8_MAX], piece[QUOTE_PIECE];
		size_t len = 0, n, taken;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		if (c < 0x80)
			text[len++] = (char)c;
		else if (c < 0x800)
			text[len++] = (char)(0xc0 | c >> 6);
		else if (c < 0x10000)
			text[len++] = (char)(0xe0 | c >> 12);
		else
			text[len++] = (char)(0xf0 | c >> 18);
		for (int shift = c < 0x80 ? 0 : c < 0x800 ? 6 : c < 0x10000 ? 12 : 18; shift > 0;)
			text[len++] = (char)(0x80 | (c >> (shift -= 6) & 63));
		taken = quote_next(text, len, piece, &n);
		assert_int_equal(taken, len);
		assert_true(n <= QUOTE_PIECE);
		if (quote_is_plain(text, len)) {
			assert_memory_equal(piece, text, len);
			assert_false(must_not_be_seen(c));
		} else {
			assert_int_equal(piece[0], '\\');
			for (size_t i = 0; i < n; i++)
				assert_in_range(piece[i], '!', '~');
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_seen_is_spelled_out),
		cmocka_unit_test(a_line_is_cut_between_characters),
		cmocka_unit_test(a_word_ends_where_it_says),
		cmocka_unit_test(blocks_are_marked_and_folded),
		cmocka_unit_test(whatever_the_text_every_line_is_marked_and_nothing_hides),
		cmocka_unit_test(every_character_is_itself_or_an_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
