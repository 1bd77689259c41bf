/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of output: head and tail, whole characters, the order of arrival. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/output.h"

#define FFFD "\xef\xbf\xbd"

static struct output_text
text_of(const char *bytes, size_t len, size_t cap, size_t step)
{
	struct output output;
	struct output_text text;

	output_init(&output, cap);
	for (size_t at = 0; at < len; at += step)
		output_add(&output, STREAM_STDOUT, bytes + at,
			   step < len - at ? step : len - at);
	text = output_stream_text(&output, STREAM_STDOUT);
	assert_int_equal(text.text[text.len], 0);
	output_done(&output);
	return text;
}

static void
what_fits_is_kept_whole(void **state)
{
	char bytes[100];

	(void)state;
	memset(bytes, 'a', sizeof(bytes));
	for (size_t len = 0; len <= 64; len++)
		for (size_t step = 1; step <= 7; step++) {
			struct output_text text = text_of(bytes, len, 64, step);

			assert_int_equal(text.len, len);
			assert_int_equal(text.dropped, 0);
			assert_memory_equal(text.text, bytes, len);
			free(text.text);
		}
}

static void
beyond_the_cap_head_and_tail_are_kept(void **state)
{
	static const size_t steps[] = { 1, 3, 31, 32, 33, 64, 65, 500, 4000 };
	char bytes[3000];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)('!' + i % 90);
	for (size_t len = 65; len <= sizeof(bytes); len += 41)
		for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
			struct output_text text = text_of(bytes, len, 64, steps[s]);
			char line[64];

			snprintf(line, sizeof(line),
				 "\n[... %zu bytes not shown ...]\n", len - 64);
			assert_int_equal(text.dropped, len - 64);
			assert_int_equal(text.len, 64 + strlen(line));
			assert_memory_equal(text.text, bytes, 32);
			assert_memory_equal(text.text + 32, line, strlen(line));
			assert_memory_equal(text.text + text.len - 32, bytes + len - 32,
					    32);
			free(text.text);
		}
}

static void
odd_and_tiny_caps_hold(void **state)
{
	(void)state;
	for (size_t cap = 1; cap <= 9; cap++)
		for (size_t len = 0; len < 40; len++) {
			struct output_text text =
				text_of("abcdefghijklmnopqrstuvwxyz0123456789ABCD", len,
					cap, 3);

			assert_int_equal(text.dropped, len > cap ? len - cap : 0);
			free(text.text);
		}
}

static void
memory_does_not_grow_with_what_is_written(void **state)
{
	static char block[65536];
	struct output output;
	struct output_text text;

	(void)state;
	memset(block, 'x', sizeof(block));
	output_init(&output, 1 << 20);
	for (int i = 0; i < 4096; i++)
		output_add(&output, STREAM_STDERR, block, sizeof(block));
	assert_int_equal(output_written(&output), 4096ull * 65536);
	assert_true(output_is_full(&output, STREAM_STDERR));
	assert_false(output_is_full(&output, STREAM_STDOUT));
	assert_int_equal(output.stream[STREAM_STDERR].size, 1 << 20);
	text = output_stream_text(&output, STREAM_STDERR);
	assert_int_equal(text.dropped, 4096ull * 65536 - (1 << 20));
	free(text.text);
	output_done(&output);
}

static const struct {
	const char *bytes, *text;
} repairs[] = {
	{ "plain", "plain" },
	{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
	  "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "\xff", FFFD },
	{ "a\x80z", "a" FFFD "z" },
	{ "\xc0\xaf", FFFD FFFD }, /* overlong */
	{ "\xe0\x80\xaf", FFFD FFFD FFFD },
	{ "\xed\xa0\x80", FFFD FFFD FFFD },	     /* a surrogate */
	{ "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD }, /* past the last character */
	{ "\xf5\x80\x80\x80", FFFD FFFD FFFD FFFD },
	{ "\xe2\x82", FFFD }, /* begun, one replacement */
	{ "\xf0\x9f\x98", FFFD },
	{ "\xe2\x82"
	  "A",
	  FFFD "A" },
	{ "\xe2\xe2\x82\xac", FFFD "\xe2\x82\xac" },
	{ "\xc3", FFFD },
};

static void
text_is_always_well_formed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(repairs) / sizeof(repairs[0]); i++)
		for (size_t step = 1; step <= 4; step++) {
			struct output_text text = text_of(
				repairs[i].bytes, strlen(repairs[i].bytes), 100, step);

			assert_string_equal(text.text, repairs[i].text);
			assert_int_equal(text.dropped, 0);
			free(text.text);
		}
}

static void
the_cut_never_falls_into_a_character(void **state)
{
	static const char *const units[] = { "\xc3\xa4", "\xe2\x82\xac",
					     "\xf0\x9f\x98\x80", "a" };
	char bytes[600];

	(void)state;
	for (size_t u = 0; u < 4; u++)
		for (size_t cap = 16; cap < 32; cap++)
			for (size_t shift = 0; shift < 4; shift++) {
				struct output_text text;
				size_t len = shift;

				memset(bytes, '.', shift);
				while (len + 4 < sizeof(bytes)) {
					memcpy(bytes + len, units[u], strlen(units[u]));
					len += strlen(units[u]);
				}
				text = text_of(bytes, len, cap, 5);
				assert_null(strstr(text.text, FFFD));
				assert_in_range(text.dropped, len - cap, len - cap + 6);
				free(text.text);
			}
}

static void
transcript_keeps_the_order_of_arrival(void **state)
{
	struct output output;
	struct output_text text;

	(void)state;
	output_init(&output, 1000);
	output_add(&output, STREAM_STDOUT, "one\n", 4);
	output_add(&output, STREAM_STDERR, "two\n", 4);
	output_add(&output, STREAM_STDOUT, "three\n", 6);
	text = output_transcript(&output);
	assert_string_equal(text.text, "one\ntwo\nthree\n");
	free(text.text);
	text = output_stream_text(&output, STREAM_STDOUT);
	assert_string_equal(text.text, "one\nthree\n");
	free(text.text);
	output_done(&output);
}

/* A character whose bytes arrive apart, with the other stream between them, at every
 * place where it can be cut. */
static void
transcript_does_not_mix_characters(void **state)
{
	static const char smile[] = "\xf0\x9f\x98\x80";

	(void)state;
	for (size_t cut = 1; cut < 4; cut++)
		for (size_t other_cut = 1; other_cut < 3; other_cut++) {
			struct output output;
			struct output_text text;

			output_init(&output, 1000);
			output_add(&output, STREAM_STDOUT, smile, cut);
			output_add(&output, STREAM_STDERR, "\xe2\x82\xac", other_cut);
			output_add(&output, STREAM_STDOUT, smile + cut, 4 - cut);
			output_add(&output, STREAM_STDERR, &"\xe2\x82\xac"[other_cut],
				   3 - other_cut);
			text = output_transcript(&output);
			assert_string_equal(text.text, "\xf0\x9f\x98\x80\xe2\x82\xac");
			free(text.text);
			output_done(&output);
		}
}

static void
transcript_loses_nothing_that_was_only_begun(void **state)
{
	struct output output;
	struct output_text text;

	(void)state;
	output_init(&output, 1000);
	output_add(&output, STREAM_STDOUT, "\xe2\x82", 2);
	output_add(&output, STREAM_STDERR, "e", 1);
	output_add(&output, STREAM_STDOUT, "\xe2\x82\xac!", 4);
	output_add(&output, STREAM_STDOUT, "\xc3", 1);
	text = output_transcript(&output);
	assert_string_equal(text.text, "e" FFFD "\xe2\x82\xac!" FFFD);
	free(text.text);
	output_done(&output);
}

/* Nothing is stored for the transcript while one stream is used and fits, and all of it is there
 * once the other one is used, or the cap is passed. */
static void
transcript_begins_when_it_differs(void **state)
{
	struct output output;
	struct output_text text;

	(void)state;
	output_init(&output, 8);
	assert_int_equal(output_only(&output), -1);
	output_add(&output, STREAM_STDERR, "a\xe2\x82", 3);
	assert_int_equal(output_only(&output), STREAM_STDERR);
	assert_int_equal(output_transcribed(&output), 1);
	assert_null(output.both.at);
	text = output_stream_text(&output, STREAM_STDERR);
	assert_string_equal(text.text, "a" FFFD);
	free(text.text);
	output_done(&output);

	output_init(&output, 8);
	output_add(&output, STREAM_STDERR, "a\xe2\x82", 3);
	output_add(&output, STREAM_STDOUT, "b", 1);
	output_add(&output, STREAM_STDERR, "\xac", 1);
	assert_int_equal(output_only(&output), -1);
	assert_int_equal(output_transcribed(&output), 5);
	text = output_transcript(&output);
	assert_string_equal(text.text, "ab\xe2\x82\xac");
	free(text.text);
	output_done(&output);

	output_init(&output, 8);
	output_add(&output, STREAM_STDOUT, "0123456", 7);
	assert_int_equal(output_only(&output), STREAM_STDOUT);
	output_add(&output, STREAM_STDOUT, "789", 3);
	assert_int_equal(output_only(&output), -1);
	assert_int_equal(output_transcribed(&output), 10);
	text = output_transcript(&output);
	assert_string_equal(text.text, "0123\n[... 2 bytes not shown ...]\n6789");
	free(text.text);
	output_done(&output);
}

static void
whole_is_as_written(void **state)
{
	char bytes[1000];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	for (size_t cap = 1; cap <= sizeof(bytes) + 1; cap += 37)
		for (size_t step = 1; step <= sizeof(bytes); step = step * 3 + 1) {
			struct output output;
			struct output_piece piece[2];
			size_t n, kept = 0;

			output_init(&output, 10);
			output_keep_whole(&output, cap);
			for (size_t at = 0; at < sizeof(bytes); at += step)
				output_add(&output, STREAM_STDERR, bytes + at,
					   step < sizeof(bytes) - at ? step
								     : sizeof(bytes) - at);
			n = output_whole(&output, STREAM_STDERR, piece);
			for (size_t i = 0; i < n; i++) {
				assert_memory_equal(piece[i].at, bytes + piece[i].offset,
						    piece[i].len);
				assert_true(piece[i].offset + piece[i].len <= sizeof(bytes));
				kept += piece[i].len;
			}
			assert_int_equal(kept, cap < sizeof(bytes) ? cap : sizeof(bytes));
			assert_int_equal(output_whole(&output, STREAM_STDOUT, piece), 0);
			output_done(&output);
		}
}

static void
whole_can_stop_growing(void **state)
{
	struct output output;
	struct output_piece piece[2];

	(void)state;
	output_init(&output, 2);
	output_keep_whole(&output, 100);
	assert_int_equal(output_whole_growth(&output, STREAM_STDOUT, 6), 6);
	assert_int_equal(output_whole_growth(&output, STREAM_STDOUT, 600), 100);
	output_add(&output, STREAM_STDOUT, "abcdef", 6);
	output_keep_no_more(&output);
	assert_int_equal(output_whole_growth(&output, STREAM_STDOUT, 6), 0);
	output_add(&output, STREAM_STDOUT, "0123456789", 10);
	output_add(&output, STREAM_STDERR, "x", 1);
	assert_int_equal(output_whole(&output, STREAM_STDERR, piece), 0);
	assert_int_equal(output_whole(&output, STREAM_STDOUT, piece), 2);
	assert_memory_equal(piece[0].at, "abc", 3);
	assert_int_equal(piece[1].offset, 13);
	assert_memory_equal(piece[1].at, "789", 3);
	output_done(&output);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_kept_whole),
		cmocka_unit_test(beyond_the_cap_head_and_tail_are_kept),
		cmocka_unit_test(odd_and_tiny_caps_hold),
		cmocka_unit_test(memory_does_not_grow_with_what_is_written),
		cmocka_unit_test(text_is_always_well_formed),
		cmocka_unit_test(the_cut_never_falls_into_a_character),
		cmocka_unit_test(transcript_keeps_the_order_of_arrival),
		cmocka_unit_test(transcript_does_not_mix_characters),
		cmocka_unit_test(transcript_loses_nothing_that_was_only_begun),
		cmocka_unit_test(transcript_begins_when_it_differs),
		cmocka_unit_test(whole_is_as_written),
		cmocka_unit_test(whole_can_stop_growing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
