/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by content and by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/shared/media.h"

#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0\1\2\3\4"

static void
a_png_tells_its_size(void **state)
{
	uint32_t width = 0, height = 0;
	char bytes[sizeof(PNG)];

	(void)state;
	assert_true(media_png_size(PNG, sizeof(PNG) - 1, &width, &height));
	assert_int_equal(width, 640);
	assert_int_equal(height, 480);
	/* Cut anywhere it is none. */
	for (size_t len = 0; len < sizeof(PNG) - 1; len++)
		assert_false(media_png_size(PNG, len, &width, &height));
	/* Nor with another signature, chunk or length, nor of no width. */
	for (size_t at = 0; at < 16; at++) {
		memcpy(bytes, PNG, sizeof(PNG));
		bytes[at] ^= 1;
		assert_false(media_png_size(bytes, sizeof(PNG) - 1, &width, &height));
	}
	memcpy(bytes, PNG, sizeof(PNG));
	memset(bytes + 16, 0, 4);
	assert_false(media_png_size(bytes, sizeof(PNG) - 1, &width, &height));
	memset(bytes + 16, 0xff, 4);
	assert_false(media_png_size(bytes, sizeof(PNG) - 1, &width, &height));
}

static void
what_is_sent_is_of_its_kind(void **state)
{
	(void)state;
	assert_true(media_fits(DISPLAY_PNG, PNG, sizeof(PNG) - 1));
	assert_false(media_fits(DISPLAY_JPEG, PNG, sizeof(PNG) - 1));
	assert_true(media_fits(DISPLAY_JPEG, "\xff\xd8\xff\xe0", 4));
	assert_false(media_fits(DISPLAY_JPEG, "\xff\xd8\xff", 3));
	assert_false(media_fits(DISPLAY_PNG, "\xff\xd8\xff\xe0", 4));
	assert_true(media_fits(DISPLAY_SVG, "<svg/>", 6));
	assert_false(media_fits(DISPLAY_SVG, "<\xff>", 3));
	assert_false(media_fits(DISPLAY_HTML, "a\0b", 3));
	for (int kind = 0; kind < DISPLAY_KIND_COUNT; kind++)
		assert_non_null(strchr(media_of_display((enum display_kind)kind), '/'));
}

static void
names_tell_types(void **state)
{
	static const char *const cases[][2] = {
		{ "a.csv", "text/csv" },
		{ "d/A.PNG", "image/png" },
		{ "report.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
		{ "b.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
		{ "c.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
		{ "d.odt", "application/vnd.oasis.opendocument.text" },
		{ "x.tar.gz", "application/gzip" },
		{ "csv", "application/octet-stream" },
		{ ".csv", "application/octet-stream" },
		{ "a.", "application/octet-stream" },
		{ "a.json\n", "application/octet-stream" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(media_of_path(cases[i][0], strlen(cases[i][0])),
				    cases[i][1]);
	/* No byte behind its end is looked at. */
	assert_string_equal(media_of_path("a.csvx", 5), "text/csv");
}

static void
text_is_what_can_be_read(void **state)
{
	(void)state;
	assert_true(media_is_text("", 0));
	assert_true(media_is_text("a\r\n\tb\f\xc3\xa9", 8));
	assert_false(media_is_text("a\0", 2));
	assert_false(media_is_text("\x1b[m", 3));
	assert_false(media_is_text("\xc3", 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_png_tells_its_size),
		cmocka_unit_test(what_is_sent_is_of_its_kind),
		cmocka_unit_test(names_tell_types),
		cmocka_unit_test(text_is_what_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
