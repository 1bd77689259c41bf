/* SPDX-License-Identifier: Apache-2.0 */
/* base64 both ways, and that each text but the one right spelling is refused. */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof(array)[0])

static void
examples_are_right(void **state)
{
	static const struct {
		const char *bytes, *text, *url;
		size_t len;
	} rows[] = {	/* RFC 4648, 10, and the two characters that differ */
		{ "", "", "", 0 },
		{ "f", "Zg==", "Zg", 1 },
		{ "fo", "Zm8=", "Zm8", 2 },
		{ "foo", "Zm9v", "Zm9v", 3 },
		{ "foob", "Zm9vYg==", "Zm9vYg", 4 },
		{ "foobar", "Zm9vYmFy", "Zm9vYmFy", 6 },
		{ "\xfb\xef\xbe\xff", "++++/w==", "----_w", 4 },
	};
	char text[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		char *bytes;

		len = base64_encode(rows[i].bytes, rows[i].len, text);
		assert_int_equal(len, strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);
		bytes = base64_decode(text, strlen(text), &len);
		assert_int_equal(len, rows[i].len);
		assert_memory_equal(bytes, rows[i].bytes, len + 1);
		free(bytes);
		len = base64url_encode(rows[i].bytes, rows[i].len, text);
		assert_int_equal(len, strlen(rows[i].url));
		assert_string_equal(text, rows[i].url);
		bytes = base64url_decode(text, strlen(text), &len);
		assert_int_equal(len, rows[i].len);
		assert_memory_equal(bytes, rows[i].bytes, len + 1);
		free(bytes);
	}
}

static void
other_spellings_are_refused(void **state)
{
	static const char *const bad[] = {
		"A", "AA", "AAA", "====", "A===", "AA==AAAA", "AA=A", "=AAA", "AB==", "AAB=", "AA-_",
		" AAAA", "AAAA ", "AAAA\n", "AA A", "   AAAA", "AAAA    ", "AAAA\r\n\r\n", "AAA-", "AA--",
		"AAA\xc3", "AAAA====", "    ", "\n\n\n\n",
	}, *const bad_url[] = {
		"A", "AAAAA", "AA==", "AB", "AAB", "A+", "A/AA", "AA A", " AA", "AA\n", "AA=A", "=", "A\xc3",
	};
	size_t len;

	(void)state;
	for (size_t i = 0; i < N(bad); i++)
		if (base64_decode(bad[i], strlen(bad[i]), &len))
			fail_msg("\"%s\" was read", bad[i]);
	for (size_t i = 0; i < N(bad_url); i++)
		if (base64url_decode(bad_url[i], strlen(bad_url[i]), &len))
			fail_msg("\"%s\" was read", bad_url[i]);
	assert_null(base64_decode("AA\0=", 4, &len));
	assert_null(base64url_decode("A\0A", 3, &len));
}

/* All texts of four characters out of those that are special: what is read is written again. */
static void
what_is_read_is_written_again(void **state)
{
	static const char some[] = "AQgw9+/-_= \n";
	char text[5] = "", again[BASE64_LEN(3) + 1];
	size_t n_read = 0, len;

	(void)state;
	for (size_t k = 0; k < 12 * 12 * 12 * 12; k++) {
		char *bytes;

		for (size_t i = 0, left = k; i < 4; i++, left /= 12)
			text[i] = some[left % 12];
		if ((bytes = base64_decode(text, 4, &len))) {
			base64_encode(bytes, len, again);
			assert_string_equal(text, again);
			n_read++;
		}
		free(bytes);
		if ((bytes = base64url_decode(text, 4, &len))) {
			base64url_encode(bytes, len, again);
			assert_string_equal(text, again);
		}
		free(bytes);
	}
	/* Seven digits; of these, four are multiples of 4 and stand before "=", and the same four are
	 * multiples of 16 and stand before "==". */
	assert_int_equal(n_read, 7 * 7 * 7 * 7 + 7 * 7 * 4 + 7 * 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples_are_right),
		cmocka_unit_test(other_spellings_are_refused),
		cmocka_unit_test(what_is_read_is_written_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
