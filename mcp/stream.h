/* SPDX-License-Identifier: Apache-2.0 */
/* MCP on one byte stream: lines in, lines out. A conversation with a single exchange. Both
 * eras share a stream: a request that names a modern revision in its envelope is served by
 * that, all others by the handshake.
 */
#ifndef MCP_STREAM_H
#define MCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "mcp/conversation.h"

struct mcp;
struct mcp_stream;
struct tenant;

#define STREAM_CALLS_MAX CONVERSATION_CALLS_MAX		/* in flight on one stream */

struct mcp_stream_watcher {
	/* A line with its newline, malloc'd, for the watcher to free. may_drop: it is only
	 * news, and may be left out when the client is slow. */
	void (*send)(void *arg, char *line, size_t len, bool may_drop);
	/* The last call in flight is over. */
	void (*on_idle)(void *arg);
	/* May a call of so many bytes be held? Counts them if so. And: they are let go. */
	bool (*hold)(void *arg, size_t bytes);
	void (*let_go)(void *arg, size_t bytes);
	void *arg;
};

/* Neither mcp nor tenant is owned. The callbacks may come from within mcp_stream_line. */
struct mcp_stream *mcp_stream_new(struct mcp *mcp, struct tenant *tenant,
				  const struct mcp_stream_watcher *watcher);

/* Cancels what is in flight; no callback comes any more. NULL is fine. */
void mcp_stream_free(struct mcp_stream *stream);

/* Takes one line without its newline; blank ones are ignored. */
void mcp_stream_line(struct mcp_stream *stream, const char *text, size_t len);

/* Sends an error that answers no request in particular: nothing is read of the client any more. */
void mcp_stream_refuse(struct mcp_stream *stream, const char *text);

/* No line follows: mcp_conversation_end_input. */
void mcp_stream_end_input(struct mcp_stream *stream);

size_t mcp_stream_in_flight(const struct mcp_stream *stream);

#endif
