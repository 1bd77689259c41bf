/* What the head of an HTTP request says, taken out of evhttp's list of headers and judged
 * by itself: are the lengths beyond doubt, and is nothing said twice that must be said once?
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

struct evkeyvalq;

enum http_header {
	HTTP_HOST,
	HTTP_ORIGIN,
	HTTP_AUTHORIZATION,
	HTTP_CONTENT_TYPE,
	HTTP_CONTENT_LENGTH,
	HTTP_TRANSFER_ENCODING,
	HTTP_SESSION,		/* Mcp-Session-Id */
	HTTP_VERSION,		/* MCP-Protocol-Version */
	HTTP_METHOD,		/* Mcp-Method */
	HTTP_NAME,		/* Mcp-Name */
	HTTP_LAST_EVENT,	/* Last-Event-ID */
	HTTP_HEADERS,
};

/* Values are borrowed from the list; without blanks around them. */
struct http_head {
	const char *value[HTTP_HEADERS];	/* NULL: not there */
	bool mcp_twice;		/* a header of the protocol's own was said twice */
	bool takes_stream;	/* Accept has text/event-stream, or everything */
};

/* NULL, or what is wrong with the head as HTTP; such a request's end is in doubt, so
 * the connection must not be used any more. Static text. */
const char *http_head_read(const struct evkeyvalq *headers, struct http_head *head_r);

/* application/json, with whatever parameters. */
bool http_is_json(const char *content_type);

/* What an Mcp-Name says, malloc'd with NUL after it: itself, or what =?base64?...?= holds.
 * NULL when that is no base64 in its one right spelling. *len_r: bytes. */
char *http_name_decode(const char *value, size_t *len_r);

#endif
