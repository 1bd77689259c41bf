/* SPDX-License-Identifier: Apache-2.0 */
/* Parses server-sent events, the form in which MCP servers answer over HTTP: takes bytes and gives
 * messages. Pure; all input is hostile.
 */
#ifndef UPSTREAM_EVENTS_H
#define UPSTREAM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#define EVENTS_ID_MAX 255

/* A growing sequence of bytes. Zeroed: empty. */
struct bytes {
	char *at;		/* NULL, or followed by NUL */
	size_t len, size;
};

/* Adds bytes. 0; -EMSGSIZE: there would be more than max. Aborts when out of memory. */
int bytes_add(struct bytes *bytes, const char *from, size_t len, size_t max);

/* Frees the memory; bytes can be used again. */
void bytes_free(struct bytes *bytes);

/* The state of the parser. The user sets on_message, arg and max; all other members begin as zero.
 */
struct events {
	/* Gets the data of one event. text is followed by NUL and may be changed; the events must
	 * not be freed meanwhile. */
	void (*on_message)(void *arg, char *text, size_t len);
	void *arg;
	size_t max;		/* bytes of an event's data, and of a line */
	struct bytes line, data;
	bool has_data;
	bool after_cr;		/* a LF that follows belongs to the line's end */
	/* The id of the newest event, by which the events after it can be asked for; "": there is
	 * none, or it does not fit into a header. */
	char id[EVENTS_ID_MAX + 1];
	unsigned int retry_ms;	/* how long to wait before asking for them; 0: not given */
};

/* Takes bytes, and calls on_message for each event that ends in them. 0 or -EMSGSIZE: more than
 * max. */
int events_feed(struct events *events, const char *bytes, size_t len);

/* Frees an unfinished event; id and retry_ms stay. */
void events_free(struct events *events);

#endif
