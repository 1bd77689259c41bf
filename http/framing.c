/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   the bytes of a client. */
#include "http/framing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SIZE_DIGITS_MAX 15	/* of a chunk; a larger body is refused by its size */

static void
framing_begin(struct http_framing *f)
{
	*f = (struct http_framing){ .state = FRAMING_START };
}

/* evhttp takes blanks before a value away, but no tabs. */
static const char *
framing_take_header(struct http_framing *f)
{
	static const char length[] = "Content-Length:", encoding[] = "Transfer-Encoding:";
	char text[FRAMING_LINE_MAX + 1] = { 0 };
	const char *value;

	memcpy(text, f->line, f->len < sizeof(f->line) ? f->len : sizeof(f->line));
	if (strncasecmp(text, length, strlen(length)) == 0)
		value = text + strlen(length);
	else if (strncasecmp(text, encoding, strlen(encoding)) == 0)
		value = text + strlen(encoding);
	else
		return NULL;
	if (f->len > sizeof(f->line) || strchr(value, '\t'))
		return "the header of a length is too long, or has a tab";
	value += strspn(value, " ");
	if (strncasecmp(value, "chunked", strlen("chunked")) == 0)
		f->chunked = true;
	else
		f->length = strtoull(value, NULL, 10);
	return NULL;
}

static const char *
framing_take_size(struct http_framing *f)
{
	char text[SIZE_DIGITS_MAX + 1] = { 0 };

	memcpy(text, f->line, f->len);
	if (f->len == 0 || strspn(text, "0123456789abcdefABCDEF") != f->len)
		return "the size of a chunk can only have hexadecimal digits";
	f->left = strtoull(text, NULL, 16);
	f->state = f->left ? FRAMING_DATA : FRAMING_LAST;
	return NULL;
}

/* A line is complete. */
static const char *
framing_take_line(struct http_framing *f)
{
	const char *wrong = NULL;

	if (f->state == FRAMING_SIZE) {
		wrong = framing_take_size(f);
	} else if (f->state == FRAMING_AFTER) {
		f->state = FRAMING_SIZE;
	} else if (f->state == FRAMING_LAST) {
		framing_begin(f);
	} else if (f->len > 0) {
		if (f->line[0] == ' ' || f->line[0] == '\t')
			wrong = "a header must not be folded";
		else if (f->state == FRAMING_HEAD)
			wrong = framing_take_header(f);
		f->state = FRAMING_HEAD;
	} else if (f->state == FRAMING_HEAD && f->chunked) {
		f->state = FRAMING_SIZE;
	} else if (f->state == FRAMING_HEAD && f->length) {
		f->left = f->length;
		f->state = FRAMING_BODY;
	} else {
		framing_begin(f);
	}
	f->len = 0;
	return wrong;
}

static const char *
framing_take_byte(struct http_framing *f, char byte)
{
	bool cr = f->cr;

	f->cr = byte == '\r';
	if (byte == '\n')
		return cr ? framing_take_line(f) : "a line must end with CR and LF";
	if (cr)
		return "CR is not followed by LF";
	if (f->cr)
		return NULL;
	if (f->state == FRAMING_AFTER)
		return "a chunk is longer than its size";
	if (f->state == FRAMING_LAST)
		return "nothing may follow the last chunk";
	if (f->state == FRAMING_SIZE && f->len == SIZE_DIGITS_MAX)
		return "the size of a chunk is too long";
	if (f->len < sizeof(f->line))
		f->line[f->len] = byte;
	f->len++;
	return NULL;
}

const char *
http_framing_take(struct http_framing *f, const char *bytes, size_t n)
{
	const char *wrong = NULL;

	while (n > 0 && !wrong) {
		size_t used = 1;

		if (f->state == FRAMING_BODY || f->state == FRAMING_DATA) {
			used = f->left < n ? (size_t)f->left : n;
			f->left -= used;
			if (f->left == 0 && f->state == FRAMING_DATA)
				f->state = FRAMING_AFTER;
			else if (f->left == 0)
				framing_begin(f);
		} else {
			wrong = framing_take_byte(f, *bytes);
		}
		bytes += used;
		n -= used;
	}
	return wrong;
}
