/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/framing.h"

#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
	const char *bytes, *wrong;	/* a part of what is said; NULL: nothing is wrong */
	int state;			/* in the end, if nothing is wrong */
} rows[] = {
	{ "", NULL, FRAMING_START },
	{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", NULL, FRAMING_START },
	{ POST, NULL, FRAMING_HEAD },
	{ POST "Content-Length: 3\r\n\r\nab", NULL, FRAMING_BODY },
	{ POST "Content-Length:3\r\n\r\n\n\r\r", NULL, FRAMING_START },
	{ POST "content-length:   3  \r\n\r\nabcGET", NULL, FRAMING_START },
	{ POST "X-Content-Length: 3\r\n\r\n", NULL, FRAMING_START },
	{ CHUNKED, NULL, FRAMING_SIZE },
	{ POST "transfer-encoding:CHUNKED\r\n\r\n3\r\n", NULL, FRAMING_DATA },
	{ CHUNKED "3\r\n\r\n\n", NULL, FRAMING_AFTER },
	{ CHUNKED "0aB\r\n", NULL, FRAMING_DATA },
	{ CHUNKED "1\r\na\r\n02\r\n\n\n\r\n00\r\n", NULL, FRAMING_LAST },
	{ CHUNKED "1\r\na\r\n0\r\n\r\n" POST "\r\n", NULL, FRAMING_START },
	{ POST "A: b\n", "CR and LF", 0 },
	{ "POST / HTTP/1.1\n", "CR and LF", 0 },
	{ POST "A: b\rc\r\n", "not followed", 0 },
	{ POST "A: b\r\r\n", "not followed", 0 },
	{ POST " A: b\r\n", "folded", 0 },
	{ "GET / HTTP/1.1\r\n\tHost: a\r\n", "folded", 0 },
	{ POST "Content-Length:\t1\r\n", "tab", 0 },
	{ POST "Transfer-Encoding: chunked\t\r\n", "tab", 0 },
	{ POST "Content-Length:                                                                1\r\n",
	  "too long", 0 },
	{ CHUNKED "\r\n", "digits", 0 },
	{ CHUNKED " 1\r\n", "digits", 0 },
	{ CHUNKED "+1\r\n", "digits", 0 },
	{ CHUNKED "-1\r\n", "digits", 0 },
	{ CHUNKED "0x1\r\n", "digits", 0 },
	{ CHUNKED "1;a\r\n", "digits", 0 },
	{ CHUNKED "1\n", "CR and LF", 0 },
	{ CHUNKED "000000000000001\r\n", NULL, FRAMING_DATA },
	{ CHUNKED "0000000000000001", "too long", 0 },
	{ CHUNKED "1\r\nab", "longer", 0 },
	{ CHUNKED "1\r\na\n", "CR and LF", 0 },
	{ CHUNKED "0\r\nA: b", "last chunk", 0 },
	{ CHUNKED "0\r\n\n", "CR and LF", 0 },
};

/* Whole, and in two parts at each place. */
static void
bytes_have_one_meaning(void **)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t len = strlen(rows[i].bytes);

		for (size_t at = 0; at <= len; at++) {
			struct http_framing framing = { 0 };
			const char *wrong = http_framing_take(&framing, rows[i].bytes, at);

			if (!wrong)
				wrong = http_framing_take(&framing, rows[i].bytes + at, len - at);
			if (!wrong != !rows[i].wrong || (wrong && !strstr(wrong, rows[i].wrong)))
				fail_msg("%s: %s", rows[i].bytes, wrong ? wrong : "was taken");
			if (!wrong)
				assert_int_equal(framing.state == FRAMING_HEAD && framing.len == 3
						 ? FRAMING_START : framing.state, rows[i].state);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(bytes_have_one_meaning) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
