/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of one POST, "the ladder": which era it belongs to, and whether headers and body
 * agree. The first check that fails decides the answer, and no tool is called.
 *
 * Only the body determines what is done. Headers repeat parts of it for proxies.
 */
#ifndef HTTP_LADDER_H
#define HTTP_LADDER_H

#include <stdbool.h>

struct http_head;
struct json_t;
struct jsonrpc_line;
struct revision;

enum http_code {
	HTTP_HEADER_MISMATCH = -32020,
};

enum http_way {
	HTTP_WAY_REFUSE,	/* answered by status, code and text */
	HTTP_WAY_ACCEPT,	/* a notification that needs no answer: 202 */
	HTTP_WAY_MODERN,	/* a conversation of its own */
	HTTP_WAY_INITIALIZE,	/* opens a legacy session */
	HTTP_WAY_SESSION,	/* belongs to the session that Mcp-Session-Id names */
};

struct http_verdict {
	enum http_way way;
	/* With HTTP_WAY_MODERN. */
	const struct revision *revision;
	/* With HTTP_WAY_REFUSE. */
	int status, code;
	const char *text;		/* static */
	const char *id;			/* the id in the line, as the client wrote it; NULL: none */
	const struct json_t *requested;	/* the version that is not served; NULL: another reason */
};

/* Does the checks of the ladder that need the parsed line. http/request.c does those before them,
 * and compares the headers Mcp-Param at the end. *verdict_r borrows from head and line. */
void http_ladder(const struct http_head *head, const struct jsonrpc_line *line,
		 struct http_verdict *verdict_r);

#endif
