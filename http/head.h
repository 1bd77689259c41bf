/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP request: the headers that the service uses, read from evhttp's list and
 * checked. The length of the body must be unambiguous, and no header that must be unique may occur
 * twice.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct evkeyvalq;

enum http_header {
#define HEADER(header, name) HTTP_##header,
#define HEADER_ONCE HEADER
#include "http/headers.def"
	HTTP_HEADERS,
};

/* Values are borrowed from the list; without blanks around them. */
struct http_head {
	const char *value[HTTP_HEADERS];	/* NULL: the header is missing */
	bool mcp_twice;		/* a header of MCP occurs twice */
	bool takes_stream;	/* Accept allows text/event-stream */
	bool takes_plain, takes_openmetrics;	/* Accept names text/plain; allows OpenMetrics */
};

/* Reads a head. NULL; or what is wrong with it (static). After an error the end of the request is
 * not known, so the connection must be closed. */
const char *http_head_read(const struct evkeyvalq *headers, struct http_head *head_r);

/* Is the type application/json, with any parameters? */
bool http_is_json(const char *content_type);

/* Decodes the value of a header Mcp-Name, which is the name itself or =?base64?...?=. Returns the
 * name, malloc'd, with NUL after it, and *len_r, its bytes. NULL: the base64 is not valid. */
char *http_name_decode(const char *value, size_t *len_r);

#endif
