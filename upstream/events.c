/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: the bytes of the event that comes.
 * Reads:   bytes of a server, hostile. */
#include "upstream/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define KEPT 65536	/* bytes of memory that an event may leave for the next one */

int
bytes_add(struct bytes *b, const char *from, size_t len, size_t max)
{
	if (len > max || b->len > max - len)
		return -EMSGSIZE;
	if (b->len + len + 1 > b->size) {
		b->size = 2 * (b->len + len + 1);
		b->at = xrealloc(b->at, b->size);
	}
	memcpy(b->at + b->len, from, len);
	b->len += len;
	b->at[b->len] = '\0';
	return 0;
}

void
bytes_free(struct bytes *b)
{
	free(b->at);
	*b = (struct bytes){ 0 };
}

static void
empty(struct bytes *b)
{
	b->len = 0;
	if (b->size > KEPT)
		bytes_free(b);
}

/* A line is at its end: an empty one ends the event. */
static int
end_line(struct events *e)
{
	static const char field[] = "data:";
	const size_t n = sizeof(field) - 1;
	int r = 0;

	if (e->line.len == 0) {
		if (e->has_data && e->data.len > 0)
			e->on_message(e->arg, e->data.at, e->data.len);
		e->has_data = false;
		empty(&e->data);
	} else if (e->line.len >= n && memcmp(e->line.at, field, n) == 0) {
		size_t from = e->line.len > n && e->line.at[n] == ' ' ? n + 1 : n;

		if (e->has_data)
			r = bytes_add(&e->data, "\n", 1, e->max);
		if (r == 0)
			r = bytes_add(&e->data, e->line.at + from, e->line.len - from, e->max);
		e->has_data = true;
	}
	empty(&e->line);
	return r;
}

int
events_feed(struct events *e, const char *bytes, size_t len)
{
	int r = 0;

	while (len > 0 && r == 0) {
		size_t n = 0;

		if (e->after_cr && *bytes == '\n') {
			bytes++;
			len--;
			e->after_cr = false;
			continue;
		}
		e->after_cr = false;
		while (n < len && bytes[n] != '\n' && bytes[n] != '\r')
			n++;
		r = bytes_add(&e->line, bytes, n, e->max);
		if (n == len || r < 0)
			break;
		e->after_cr = bytes[n] == '\r';
		bytes += n + 1;
		len -= n + 1;
		r = end_line(e);
	}
	return r;
}

void
events_free(struct events *e)
{
	bytes_free(&e->line);
	bytes_free(&e->data);
	e->has_data = e->after_cr = false;
}
