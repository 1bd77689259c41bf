/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: the bytes of an unfinished event.
 * Reads:   bytes of a server, hostile. */
#include "upstream/events.h"

#include <errno.h>
#include <stdio.h>
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
events_empty(struct bytes *b)
{
	b->len = 0;
	if (b->size > KEPT)
		bytes_free(b);
}

/* The value of the line, if it is that field; else NULL. */
static const char *
events_value_of(const struct events *e, const char *field)
{
	const size_t n = strlen(field);

	if (e->line.len < n || memcmp(e->line.at, field, n) != 0)
		return NULL;
	return e->line.at + n + (e->line.len > n && e->line.at[n] == ' ');
}

static void
take_id(struct events *e, const char *id, size_t len)
{
	bool fits = len <= EVENTS_ID_MAX;

	for (size_t i = 0; i < len && fits; i++)
		fits = id[i] > ' ' && id[i] <= '~';
	snprintf(e->id, sizeof(e->id), "%s", fits ? id : "");
}

static void
take_retry(struct events *e, const char *ms, size_t len)
{
	if (len > 0 && len <= 9 && strspn(ms, "0123456789") == len)
		e->retry_ms = (unsigned int)strtoul(ms, NULL, 10);
}

/* A line is at its end: an empty one ends the event. */
static int
end_line(struct events *e)
{
	const char *end = e->line.at + e->line.len, *value;
	int r = 0;

	if (e->line.len == 0) {
		if (e->has_data && e->data.len > 0)
			e->on_message(e->arg, e->data.at, e->data.len);
		e->has_data = false;
		events_empty(&e->data);
	} else if ((value = events_value_of(e, "data:"))) {
		if (e->has_data)
			r = bytes_add(&e->data, "\n", 1, e->max);
		if (r == 0)
			r = bytes_add(&e->data, value, (size_t)(end - value), e->max);
		e->has_data = true;
	} else if ((value = events_value_of(e, "id:"))) {
		take_id(e, value, (size_t)(end - value));
	} else if ((value = events_value_of(e, "retry:"))) {
		take_retry(e, value, (size_t)(end - value));
	}
	events_empty(&e->line);
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
