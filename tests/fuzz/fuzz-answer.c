/* SPDX-License-Identifier: Apache-2.0 */
/* An origin's answer to a request with secrets: for any bytes, and any division into pieces,
 *
 * - the script's head is one that the proxy would accept, too, and the script gets no secret in one
 * piece; - what is refused before its head gives the script nothing; - the bytes in one piece and
 * in small ones are both taken or both refused, and what is not
 *   chunked is then the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "egress/answer.h"
#include "tests/fuzz/fuzz.h"

static const char *const secrets[] = { "abcdefgh", "a\"/\\bcdef", "abcdefghijkl" };

#define N_SECRETS (sizeof(secrets) / sizeof(secrets[0]))

static bool
take(const char *bytes, size_t len, size_t piece, struct evbuffer *out)
{
	struct evbuffer *in = evbuffer_new();
	const char *why = NULL;
	struct answer answer;
	bool ok = true;

	MUST(in && answer_begin(&answer, false, secrets, N_SECRETS) == 0);
	for (size_t at = 0; ok && at < len && !answer_is_over(&answer); at += piece) {
		MUST(evbuffer_add(in, bytes + at, len - at < piece ? len - at : piece) == 0);
		ok = answer_take(&answer, in, out, false, &why);
	}
	if (ok && !answer_is_over(&answer))
		ok = answer_take(&answer, in, out, true, &why);
	MUST(ok == (why == NULL) && (!ok || answer_is_over(&answer)));
	MUST(answer.has_head || evbuffer_get_length(out) == 0);
	answer_end(&answer);
	evbuffer_free(in);
	return ok;
}

static void
check(struct evbuffer *out, struct head_answer *head_r)
{
	size_t len = evbuffer_get_length(out);
	const char *text = (const char *)evbuffer_pullup(out, -1);

	/* The script's head may be some bytes longer than the proxy would accept. */
	if (head_parse_answer(text, len, head_r) != 1)
		MUST(len >= HEAD_MAX - 64);
	for (size_t i = 0; i < N_SECRETS; i++)
		MUST(!memmem(text, len, secrets[i], strlen(secrets[i])));
}

/* The first byte is the size of the small pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evbuffer *whole = evbuffer_new(), *pieces = evbuffer_new();
	struct head_answer head = { 0 };
	const char *bytes;
	bool ok;

	MUST(whole && pieces);
	if (size > 1) {
		bytes = (const char *)data + 1;
		ok = take(bytes, size - 1, size, whole);
		MUST(take(bytes, size - 1, (size_t)data[0] + 1, pieces) == ok);
		if (ok) {
			check(whole, &head);
			check(pieces, &head);
			if (head.body != HEAD_BODY_CHUNKED)
				MUST(evbuffer_get_length(whole) == evbuffer_get_length(pieces) &&
				     memcmp(evbuffer_pullup(whole, -1), evbuffer_pullup(pieces, -1),
					    evbuffer_get_length(whole)) == 0);
		}
	}
	evbuffer_free(whole);
	evbuffer_free(pieces);
	return 0;
}
