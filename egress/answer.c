/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-egress.   Owns: content that is held back.
 * Reads:   answers of origins, hostile from the first byte. HEAD_MAX bounds a head; the longest
 * form of a secret bounds the content that is held back. */
#include "egress/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/mask.h"

int
answer_begin(struct answer *a, bool is_of_head, const char *const *values, size_t n_values)
{
	*a = (struct answer){ .is_of_head = is_of_head, .values = values, .n_values = n_values,
			      .held = evbuffer_new() };
	return a->held ? 0 : -ENOMEM;
}

void
answer_end(struct answer *a)
{
	if (a->held)
		evbuffer_free(a->held);
	a->held = NULL;
}

void
answer_move(struct evbuffer *out, struct evbuffer *in, size_t n)
{
	while (n > 0) {
		size_t some = evbuffer_get_contiguous_space(in);

		some = some < n ? some : n;
		evbuffer_add(out, evbuffer_pullup(in, (ev_ssize_t)some), some);
		evbuffer_drain(in, some);
		n -= some;
	}
}

bool
answer_is_over(const struct answer *a)
{
	return a->over;
}

/* ---- the head ---- */

/* Begins the body. It ends after its length, after its last chunk, or with the connection. */
static void
begin_body(struct answer *a, const struct head_answer *head)
{
	bool none = a->is_of_head || head->status == 204 || head->status == 304;

	a->has_head = true;
	a->is_open_ended = !none && head->body == HEAD_BODY_NONE;
	head_body_begin(&a->body, head->body, head->body_len);
	a->over = none || (head->body == HEAD_BODY_LENGTH && head->body_len == 0);
}

/* NULL: fine. */
static const char *
take_head(struct answer *a, const struct head_answer *head, const char *bytes,
	  struct evbuffer *out)
{
	size_t len;
	char *text;

	/* An interim answer: the script has not asked to wait for one. */
	if (head->status < 200)
		return head->status == 101 ? "its answer changes the protocol" : NULL;
	/* The proxy has asked for the whole. A script could put parts together. */
	if (head->status == 206)
		return "its answer is a part, and a part of a secret could be in it";
	if (head->is_encoded)
		return "its answer is compressed or encoded, and a secret could be in it";
	text = head_for_script(head, bytes, &len);
	if (!text)
		return "out of memory";
	mask_secrets(text, len, a->values, a->n_values, true);
	evbuffer_add(out, text, len);
	free(text);
	begin_body(a, head);
	return NULL;
}

/* Takes the heads that have come: interim ones, then the answer's. Returns what is wrong, or NULL.
 */
static const char *
take_heads(struct answer *a, struct evbuffer *in, struct evbuffer *out)
{
	const char *why = NULL;

	while (!a->has_head && !why && evbuffer_get_length(in) > 0) {
		size_t len = evbuffer_get_length(in);
		struct head_answer head;
		const char *bytes;
		int r;

		if (len > HEAD_MAX)
			len = HEAD_MAX;
		bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)len);
		r = head_parse_answer(bytes, len, &head);
		if (r == 0)
			break;
		if (r < 0)
			return "its answer is no HTTP/1.1, or its head is too large";
		why = take_head(a, &head, bytes, out);
		evbuffer_drain(in, head.len);
	}
	return why;
}

/* ---- the body ---- */

/* Gives out what is held, but for the possible beginning of a secret. */
static void
give_out(struct answer *a, struct evbuffer *out, bool is_end)
{
	size_t len = evbuffer_get_length(a->held), n;

	if (len == 0)
		return;
	n = mask_secrets((char *)evbuffer_pullup(a->held, -1), len, a->values, a->n_values,
			 is_end);
	if (n == 0)
		return;
	if (a->body.kind == HEAD_BODY_CHUNKED)
		evbuffer_add_printf(out, "%zx\r\n", n);
	answer_move(out, a->held, n);
	if (a->body.kind == HEAD_BODY_CHUNKED)
		evbuffer_add(out, "\r\n", 2);
}

/* Moves content to what is held, and drops what is around it: sizes, extensions and trailers of
 * chunks. 0 or -400. */
static int
take_content(struct answer *a, struct evbuffer *in)
{
	while (!a->over && evbuffer_get_length(in) > 0) {
		size_t len = evbuffer_get_contiguous_space(in), taken;
		const char *bytes = (const char *)evbuffer_pullup(in, (ev_ssize_t)len);
		uint64_t content = head_body_content(&a->body);
		size_t n = content == 0 ? 1 : content < len ? (size_t)content : len;

		if (head_body_take(&a->body, bytes, n, &taken, &a->over) < 0)
			return -400;
		if (content > 0)
			answer_move(a->held, in, taken);
		else
			evbuffer_drain(in, taken);
	}
	return 0;
}

static const char *
take_body(struct answer *a, struct evbuffer *in, struct evbuffer *out, bool ended)
{
	if (a->is_open_ended) {
		answer_move(a->held, in, evbuffer_get_length(in));
		a->over = ended;
	} else if (take_content(a, in) < 0) {
		return "its answer has wrong chunks";
	}
	give_out(a, out, a->over);
	if (a->over && a->body.kind == HEAD_BODY_CHUNKED)
		evbuffer_add_printf(out, "0\r\n\r\n");
	return ended && !a->over ? "its answer was cut off" : NULL;
}

bool
answer_take(struct answer *a, struct evbuffer *in, struct evbuffer *out, bool ended,
	    const char **why_r)
{
	*why_r = take_heads(a, in, out);
	if (!*why_r && !a->has_head && ended)
		*why_r = "it has not answered";
	if (!*why_r && a->has_head && !a->over)
		*why_r = take_body(a, in, out, ended);
	if (a->over)
		evbuffer_drain(in, evbuffer_get_length(in));
	return *why_r == NULL;
}
