/* SPDX-License-Identifier: Apache-2.0 */
/* A server's list of tools, which is read page by page; and the properties of tools that this
 * client has to know when it calls them. All input is hostile.
 */
#ifndef UPSTREAM_LISTING_H
#define UPSTREAM_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct msg;

/* Zeroed: no list is being read, and none is known. */
struct listing {
	json_t *tools;		/* of the list that is being read; NULL: none is being read */
	size_t bytes, values;
	unsigned int pages;
	uint32_t left_out;
	json_t *known;		/* of the last complete list: the tools that need a special call, by
				 * name; or NULL */
};

/* Begins a new list. One that was being read is dropped. */
void listing_begin(struct listing *listing);

/* Takes a page of the list. tools: the array "tools" of a result. with_headers: arguments are
 * repeated in HTTP headers, as x-mcp-header in a schema says; a tool whose x-mcp-header is
 * malformed is left out. */
void listing_take(struct listing *listing, const json_t *tools, bool with_headers);

/* Adds a tool LISTING_READER, for a server that has resources: results can link to resources, and
 * this tool reads them. Does nothing if the server itself has a tool of that name. */
#define LISTING_READER "resources/read"
void listing_add_reader(struct listing *listing);

/* Ends the list: reports each tool as a TOOLS_TOOL of the server with this number. Returns the
 * number of tools. */
uint32_t listing_end(struct listing *listing, uint32_t number,
		     void (*tell)(void *arg, const struct msg *msg), void *arg);

/* Drops the list that is being read. The last complete one stays. */
void listing_drop(struct listing *listing);

/* Must a call of the tool ask for a task? Servers of revision 2025-11-25 may demand this. */
bool listing_wants_task(const struct listing *listing, const char *tool);

/* Is this the tool that listing_add_reader() has added? */
bool listing_is_reader(const struct listing *listing, const char *tool);

/* The arguments that HTTP repeats in headers, as {header: value}, with headers' names without
 * "Mcp-Param-". NULL: none. The caller releases the object. */
json_t *listing_headers(const struct listing *listing, const char *tool, const json_t *arguments);

#endif
