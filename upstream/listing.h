/* SPDX-License-Identifier: Apache-2.0 */
/* A server's list of tools, page by page, and what of it this client itself has to know when it
 * calls a tool. Everything that comes in is hostile.
 */
#ifndef UPSTREAM_LISTING_H
#define UPSTREAM_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct msg;

/* All zero: none is being read, and none is known. */
struct listing {
	json_t *tools;		/* of the list that is being read; NULL: none is */
	size_t bytes, values;
	unsigned int pages;
	uint32_t left_out;
	json_t *known;		/* of the last whole list: tools with wants, by name; or NULL */
};

/* A new list begins; one that was being read is forgotten. */
void listing_begin(struct listing *listing);

/* A page of it: the array tools of a result. with_headers: HTTP repeats arguments in headers, as
 * x-mcp-header in a schema says, and a tool where this is malformed is left out. */
void listing_take(struct listing *listing, const json_t *tools, bool with_headers);

/* The server has resources, which results can link to: a tool LISTING_READER reads them, unless the
 * server has one of that name itself. */
#define LISTING_READER "resources/read"
void listing_add_reader(struct listing *listing);

/* It is whole: tells each tool as a TOOLS_TOOL of server number. How many there are. */
uint32_t listing_end(struct listing *listing, uint32_t number,
		     void (*tell)(void *arg, const struct msg *msg), void *arg);

/* The list that is being read is forgotten, the last whole one stays. */
void listing_drop(struct listing *listing);

/* Does a call of the tool have to ask for a task, as servers of 2025-11-25 may want? */
bool listing_wants_task(const struct listing *listing, const char *tool);

/* Is the tool what listing_add_reader() has added? */
bool listing_is_reader(const struct listing *listing, const char *tool);

/* {header: value} of what HTTP repeats of the arguments, without "Mcp-Param-"; NULL: nothing. */
json_t *listing_headers(const struct listing *listing, const char *tool, const json_t *arguments);

#endif
