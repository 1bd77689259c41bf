/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests to a proxy and their bodies: tables of what is taken and what is refused,
 * and every way of cutting a body into pieces. */
#include "egress/head.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *bytes;
	int result;
} heads[] = {
	{ "", 0 },
	{ "CONNECT a.b:443 HTTP/1.1\r\n", 0 },
	{ "CONNECT a.b:443 HTTP/1.1\r\n\r\n", 1 },
	{ "CONNECT a.b:443 HTTP/1.0\r\n\r\nrest", 1 },
	{ "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", 1 },
	{ "CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 1 },
	{ "CONNECT a.b HTTP/1.1\r\n\r\n", -400 },
	{ "CONNECT a.b:0 HTTP/1.1\r\n\r\n", -400 },
	{ "CONNECT  a.b:1 HTTP/1.1\r\n\r\n", -400 },
	{ "CONNECT a.b:1 HTTP/1.1 \r\n\r\n", -400 },
	{ "CONNECT a.b:1 HTTP/1.2\r\n\r\n", -400 },
	{ "CONNECT a.b:1 HTTP/2.0\r\n\r\n", -400 },
	{ "connect a.b:1 HTTP/1.1\r\n\r\n", -400 },
	{ "CONNECT http://a.b:1 HTTP/1.1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\n\r\n", 1 },
	{ "GET HTTP://A.B HTTP/1.1\r\n\r\n", 1 },
	{ "GET http://a.b?q HTTP/1.1\r\n\r\n", 1 },
	{ "GET http://a.b:/ HTTP/1.1\r\n\r\n", 1 },
	{ "GET https://a.b/ HTTP/1.1\r\n\r\n", -501 },
	{ "GET http:// HTTP/1.1\r\n\r\n", -400 },
	{ "GET http:///x HTTP/1.1\r\n\r\n", -400 },
	{ "GET http://a.b/#x HTTP/1.1\r\n\r\n", -400 },
	{ "GET http://a@a.b/ HTTP/1.1\r\n\r\n", -400 },
	{ "GET http://a.b/\x80 HTTP/1.1\r\n\r\n", -400 },
	{ "GET /x HTTP/1.1\r\n\r\n", -400 },
	{ "GET * HTTP/1.1\r\n\r\n", -400 },
	{ "G\tT http://a.b/ HTTP/1.1\r\n\r\n", -400 },
	{ "\r\n\r\n", -400 },
	{ "\r\nGET http://a.b/ HTTP/1.1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\nA: b\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nA: b\nB: c\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nA: b\rB: c\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nA : b\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\n A: b\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\n: b\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nA\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nA:\t\x80\xff \r\n\r\n", 1 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length: 007\r\n\r\n", 1 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length:\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length: 1234567890123456789\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 1 },
	{ "GET http://a.b/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", -501 },
	{ "GET http://a.b/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", -400 },
	{ "GET http://a.b/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", -400 },
};

static void
heads_are_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(heads); i++) {
		struct head head;
		int r = head_parse(heads[i].bytes, strlen(heads[i].bytes), &head);

		if (r != heads[i].result)
			fail_msg("%d for %s", r, heads[i].bytes);
	}
}

static void
heads_are_bounded(void **state)
{
	static char bytes[2 * HEAD_MAX];
	struct head head;
	size_t len = 0;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(head_parse(bytes, HEAD_MAX - 1, &head), 0);
	assert_int_equal(head_parse(bytes, HEAD_MAX, &head), -431);
	/* An end behind the bound is none. */
	memcpy(bytes + HEAD_MAX - 2, "\r\n\r\n", 4);
	assert_int_equal(head_parse(bytes, sizeof(bytes), &head), -431);
	for (int lines = HEAD_LINES_MAX; lines <= HEAD_LINES_MAX + 1; lines++) {
		len = (size_t)sprintf(bytes, "GET http://a/ HTTP/1.1\r\n");
		for (int i = 0; i < lines; i++)
			len += (size_t)sprintf(bytes + len, "A: b\r\n");
		len += (size_t)sprintf(bytes + len, "\r\n");
		assert_int_equal(head_parse(bytes, len, &head), lines == HEAD_LINES_MAX ? 1 : -431);
	}
}

static const struct {
	const char *from, *to;
} rewrites[] = {
	{ "GET http://A.b HTTP/1.1\r\n\r\n",
	  "GET / HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\n\r\n" },
	{ "GET http://a.b:8080?q=1 HTTP/1.0\r\nHost: evil\r\n\r\n",
	  "GET /?q=1 HTTP/1.0\r\nHost: a.b:8080\r\nConnection: close\r\n\r\n" },
	{ "PUT http://[::1]:80/x/y?z HTTP/1.1\r\nX: y\r\n\r\n",
	  "PUT /x/y?z HTTP/1.1\r\nHost: [::1]\r\nX: y\r\nConnection: close\r\n\r\n" },
	{ "GET http://a/ HTTP/1.1\r\nHOST: x\r\nProxy-Authorization: s\r\nProxy-Connection: k\r\n"
	  "Keep-Alive: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nA: 1\r\nconnection: A , b\r\nB: 2\r\nC: 3\r\n\r\n",
	  "GET / HTTP/1.1\r\nHost: a\r\nC: 3\r\nConnection: close\r\n\r\n" },
	{ "POST http://a/ HTTP/1.1\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc",
	  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n" },
};

static void
origins_get_heads_of_their_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(rewrites); i++) {
		struct head head;
		size_t len;
		char *text;

		assert_int_equal(head_parse(rewrites[i].from, strlen(rewrites[i].from), &head), 1);
		text = head_for_origin(&head, rewrites[i].from, NULL, &len);
		assert_non_null(text);
		if (len != strlen(rewrites[i].to) || memcmp(text, rewrites[i].to, len) != 0)
			fail_msg("%.*s", (int)len, text);
		free(text);
	}
}

/* Values are "<1>", "<2>" ...; to: NULL: there are too many. */
static const struct {
	const char *from, *to;
} places[] = {
	{ "GET http://a:443/ HTTP/1.1\r\nA: Bearer {{secret:x}}, {{secret:y}}\r\nB:{{secret:x}}\r\n\r\n",
	  "GET / HTTP/1.1\r\nHost: a\r\nA: Bearer <1>, <2>\r\nB:<3>\r\nAccept-Encoding: identity\r\n"
	  "Connection: close\r\n\r\n" },
	{ "GET http://a/{{secret:x}} HTTP/1.1\r\nA: {{secret}}{secret:x}\r\n\r\n",
	  "GET /{{secret:x}} HTTP/1.1\r\nHost: a\r\nA: {{secret}}{secret:x}\r\n"
	  "Connection: close\r\n\r\n" },
	/* Without its end it goes to the end of the line. */
	{ "GET http://a:80/ HTTP/1.1\r\nTE: {{secret:x}}\r\nA: {{secret:x}\r\nExpect: 100-continue\r\n"
	  "accept-encoding: gzip\r\nRANGE: bytes=0-3\r\nIf-Range: \"x\"\r\n\r\n",
	  "GET / HTTP/1.1\r\nHost: a:80\r\nA: <2>\r\nAccept-Encoding: identity\r\n"
	  "Connection: close\r\n\r\n" },
	{ "GET http://a/ HTTP/1.1\r\nA: {{secret:1}}{{secret:2}}{{secret:3}}{{secret:4}}{{secret:5}}{{secret:6}}"
	  "{{secret:7}}{{secret:8}}{{secret:9}}\r\n\r\n", NULL },
};

static void
secrets_go_to_their_places(void **state)
{
	static const char *const values[HEAD_SECRETS_MAX] = { "<1>", "<2>", "<3>" };

	(void)state;
	for (size_t i = 0; i < N(places); i++) {
		const char *from = places[i].from, *to = places[i].to;
		struct head head;
		size_t len;
		char *text;

		assert_int_equal(head_parse(from, strlen(from), &head), to ? 1 : -431);
		if (!to)
			continue;
		for (size_t k = 0; k < head.n_secrets; k++) {
			assert_memory_equal(from + head.secret[k].place.at, "{{secret:", 9);
			assert_true(head.secret[k].name.len <= 1);
		}
		text = head_for_origin(&head, from, values, &len);
		assert_non_null(text);
		if (len != strlen(to) || memcmp(text, to, len) != 0)
			fail_msg("%.*s", (int)len, text);
		free(text);
	}
}

/* body: the part that is one, or NULL: it is none. */
static const struct {
	const char *bytes;
	size_t body;
	int result;
	bool over;
} bodies[] = {
	{ "0\r\n\r\nGET", 5, 0, true },
	{ "3\r\nabc\r\n0\r\n\r\n", 13, 0, true },
	{ "a;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\nU: w\r\n\r\nrest", 39, 0, true },
	{ "3\r\nab", 5, 0, false },
	{ "3\r\nabcd", 0, -400, false },
	{ "3\nabc\r\n", 0, -400, false },
	{ "3 \r\nabc\r\n", 0, -400, false },
	{ "\r\n", 0, -400, false },
	{ ";x\r\n", 0, -400, false },
	{ "-1\r\n", 0, -400, false },
	{ "0x3\r\nabc\r\n", 0, -400, false },
	{ "3\r\rabc", 0, -400, false },
	{ "1000000000000000\r\n", 0, -400, false },
	{ "0\r\nT: v\n\r\n", 0, -400, false },
	{ "0\r\n\n", 0, -400, false },
};

/* In pieces of each length the same comes out. */
static void
chunks_are_followed(void **state)
{
	struct head head = { .body = HEAD_BODY_CHUNKED };

	(void)state;
	for (size_t i = 0; i < N(bodies); i++) {
		size_t len = strlen(bodies[i].bytes);

		for (size_t piece = 1; piece <= len; piece++) {
			struct head_body_state s;
			size_t at = 0, taken;
			bool over = false;
			int r = 0;

			head_body_begin(&s, head.body, head.body_len);
			while (r == 0 && at < len && !over) {
				size_t n = len - at < piece ? len - at : piece;

				r = head_body_take(&s, bodies[i].bytes + at, n, &taken, &over);
				assert_true(taken <= n);
				at += taken;
			}
			if (r != bodies[i].result || over != bodies[i].over ||
			    (r == 0 && at != bodies[i].body))
				fail_msg("%zu by %zu: %d, %d, %zu", i, piece, r, over, at);
		}
	}
}

static void
lengths_are_counted(void **state)
{
	struct head head = { .body = HEAD_BODY_LENGTH, .body_len = 5 };
	struct head_body_state s;
	size_t taken;
	bool over;

	(void)state;
	head_body_begin(&s, head.body, head.body_len);
	assert_int_equal(head_body_take(&s, "abc", 3, &taken, &over), 0);
	assert_int_equal(taken, 3);
	assert_false(over);
	assert_int_equal(head_body_take(&s, "defg", 4, &taken, &over), 0);
	assert_int_equal(taken, 2);
	assert_true(over);
	head = (struct head){ 0 };
	head_body_begin(&s, head.body, head.body_len);
	assert_int_equal(head_body_take(&s, "x", 1, &taken, &over), 0);
	assert_int_equal(taken, 0);
	assert_true(over);
}

/* However long a size line or a trailer is, it is given up. */
static void
chunk_lines_are_bounded(void **state)
{
	static const char *const starts[] = { "1;", "0\r\nT: " };
	struct head head = { .body = HEAD_BODY_CHUNKED };

	(void)state;
	for (size_t i = 0; i < N(starts); i++) {
		struct head_body_state s;
		size_t taken, n = 0;
		bool over;

		head_body_begin(&s, head.body, head.body_len);
		assert_int_equal(head_body_take(&s, starts[i], strlen(starts[i]), &taken, &over),
				 0);
		while (n < 100000 && head_body_take(&s, "x", 1, &taken, &over) == 0)
			n++;
		assert_true(n < 5000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_are_taken_or_refused),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(origins_get_heads_of_their_own),
		cmocka_unit_test(secrets_go_to_their_places),
		cmocka_unit_test(chunks_are_followed),
		cmocka_unit_test(lengths_are_counted),
		cmocka_unit_test(chunk_lines_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
