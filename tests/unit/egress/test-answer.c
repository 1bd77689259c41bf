/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to requests with secrets, as scripts get them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <event2/buffer.h>

#include <cmocka.h>

#include "egress/answer.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define OK "HTTP/1.1 200 OK\r\n"
#define CLOSED OK "Connection: close\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

static const char *const secrets[] = { "hunter22" };

/* to: NULL: it is refused; of chunked ones only in one piece. */
static const struct {
	const char *from, *to;
	bool is_of_head;
} answers[] = {
	{ OK "\r\nhunter22!", CLOSED "\r\n********!", false },
	{ OK "Content-Length: 3\r\n\r\nabcdef", CLOSED "Content-Length: 3\r\n\r\nabc", false },
	{ OK "Content-Length: 3\r\n\r\n", CLOSED "Content-Length: 3\r\n\r\n", true },
	{ OK "Content-Length: 0\r\nX: hunter22\r\n\r\n",
	  CLOSED "Content-Length: 0\r\nX: ********\r\n\r\n", false },
	{ OK "Connection: keep-alive, X-Hop\r\nKeep-Alive: 5\r\nX-Hop: 1\r\nTrailer: T\r\n\r\n",
	  CLOSED "\r\n", false },
	{ "HTTP/1.1 204 No Content\r\n\r\nx", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
	  false },
	{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nA: b\r\n\r\n" OK "\r\nyes",
	  CLOSED "\r\nyes", false },
	{ OK CHUNKED "\r\n4;x=\"hunter22\"\r\nhunt\r\n5\r\ner22!\r\n0\r\nT: hunter22\r\n\r\n",
	  CLOSED CHUNKED "\r\n9\r\n********!\r\n0\r\n\r\n", false },
	{ OK "Content-Encoding: identity\r\n\r\n", CLOSED "Content-Encoding: identity\r\n\r\n", false },
	{ OK "Content-Encoding: br\r\n\r\nhunter22", NULL, false },
	{ OK "Content-Length: 3\r\n\r\nab", NULL, false },
	{ OK "Content-Length: 3\r\n" CHUNKED "\r\n0\r\n\r\n", NULL, false },
	{ OK "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", NULL, false },
	{ OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", NULL, false },
	{ OK CHUNKED "\r\n4\r\nhunter22\r\n", NULL, false },
	{ OK CHUNKED "\r\n8\r\nhunter22\r\n", NULL, false },
	{ OK "A : b\r\n\r\n", NULL, false },
	{ OK "A: b\r\n c\r\n\r\n", NULL, false },
	{ OK "A: b\n\r\n", NULL, false },
	{ OK, NULL, false },
	{ "", NULL, false },
	{ "HTTP/1.1 101 Switching\r\n\r\nhunter22", NULL, false },
	{ "HTTP/1.1 600 X\r\n\r\n", NULL, false },
	{ "HTTP/1.1 20 X\r\n\r\n", NULL, false },
	{ "HTTP/2 200\r\n\r\n", NULL, false },
	{ "HTTP/1.1 100 Continue\r\n\r\n", NULL, false },
	{ "hunter22\r\n\r\n", NULL, false },
};

/* Whether it was taken; text: what the script has got. */
static bool
take(size_t i, size_t piece, char *text, size_t size)
{
	size_t len = strlen(answers[i].from), at = 0, got;
	struct evbuffer *in = evbuffer_new(), *out = evbuffer_new();
	const char *why = NULL;
	struct answer answer;
	bool ok = true;

	assert_int_equal(answer_begin(&answer, answers[i].is_of_head, secrets, N(secrets)), 0);
	while (ok && at < len && !answer_is_over(&answer)) {
		size_t n = len - at < piece ? len - at : piece;

		evbuffer_add(in, answers[i].from + at, n);
		at += n;
		ok = answer_take(&answer, in, out, false, &why);
	}
	if (ok && !answer_is_over(&answer))
		ok = answer_take(&answer, in, out, true, &why);
	assert_true(ok == (why == NULL));
	assert_true(!ok || answer_is_over(&answer));
	got = (size_t)evbuffer_remove(out, text, size - 1);
	text[got] = '\0';
	answer_end(&answer);
	evbuffer_free(in);
	evbuffer_free(out);
	return ok;
}

static void
answers_are_masked_or_refused(void **state)
{
	char text[512];

	(void)state;
	for (size_t i = 0; i < N(answers); i++) {
		bool ok = take(i, SIZE_MAX, text, sizeof(text));

		if (ok != (answers[i].to != NULL) || (ok && strcmp(text, answers[i].to) != 0))
			fail_msg("%zu: %s", i, text);
	}
}

static void
pieces_make_no_difference(void **state)
{
	char text[512];

	(void)state;
	for (size_t i = 0; i < N(answers); i++)
		for (size_t piece = 1; piece <= strlen(answers[i].from); piece++) {
			bool ok = take(i, piece, text, sizeof(text));

			if (ok != (answers[i].to != NULL) || strstr(text, secrets[0]) ||
			    (ok && !strstr(answers[i].to, CHUNKED) &&
			     strcmp(text, answers[i].to) != 0))
				fail_msg("%zu by %zu: %s", i, piece, text);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_masked_or_refused),
		cmocka_unit_test(pieces_make_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
