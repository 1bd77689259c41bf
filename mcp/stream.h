/* SPDX-License-Identifier: Apache-2.0 */
/* MCP on one byte stream, which carries lines in both directions: a conversation with a single
 * exchange. Both eras share a stream. A request that names a modern revision in its envelope is
 * served by that revision, all other requests by the revision of the handshake.
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
	/* Sends a line with its newline, malloc'd; the watcher frees it. may_drop: the line is a
	 * notification that may be left out if the client is slow. */
	void (*send)(void *arg, char *line, size_t len, bool may_drop);
	/* The last call in flight has ended. */
	void (*on_idle)(void *arg);
	/* As in struct mcp_conversation_options. */
	bool (*hold)(void *arg, size_t bytes);
	void (*let_go)(void *arg, size_t bytes);
	void *arg;
};

/* mcp and tenant are borrowed. The callbacks may be called from within mcp_stream_line. */
struct mcp_stream *mcp_stream_new(struct mcp *mcp, struct tenant *tenant,
				  const struct mcp_stream_watcher *watcher);

/* Cancels the calls in flight; no callback is called any more. NULL is fine. */
void mcp_stream_free(struct mcp_stream *stream);

/* Takes one line without its newline; blank lines are ignored. */
void mcp_stream_line(struct mcp_stream *stream, const char *text, size_t len);

/* Sends an error that belongs to no request; the caller stops reading from the client. */
void mcp_stream_refuse(struct mcp_stream *stream, const char *text);

/* To be called when no line follows: see mcp_conversation_end_input. */
void mcp_stream_end_input(struct mcp_stream *stream);

size_t mcp_stream_in_flight(const struct mcp_stream *stream);

#endif
