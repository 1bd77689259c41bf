/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation: the messages between one client and this server, independent of the carrier.
 *
 * A conversation is one byte stream, one session of a legacy revision over HTTP, or one modern HTTP
 * request. It owns the calls in flight and the questions that wait for the client.
 *
 * Each message arrives with an exchange, by which its answers are sent. A byte stream has one
 * exchange for all messages; in HTTP each POST has its own.
 */
#ifndef MCP_CONVERSATION_H
#define MCP_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>

#include "mcp/carrier.h"

struct jsonrpc_line;
struct mcp_conversation;

struct mcp_conversation *
mcp_conversation_new(const struct mcp_conversation_options *options);

/* Cancels the calls in flight; no callback follows. NULL is fine. */
void mcp_conversation_free(struct mcp_conversation *conversation);

/* Handles the messages of one line or one POST, as jsonrpc_parse has read them. The line still
 * belongs to the caller; ids may be moved out of its messages. line_bytes: its length as text. */
void mcp_conversation_take(struct mcp_conversation *conversation,
			   struct mcp_exchange *exchange, struct jsonrpc_line *line,
			   size_t line_bytes);

/* Sets the exchange for messages that belong to no request. NULL: there is none, and such messages
 * are dropped; only a change of tools/list is told later, when an exchange is set. Not needed for a
 * byte stream, which has only one exchange. Returns the former exchange, or NULL. */
struct mcp_exchange *mcp_conversation_hear(struct mcp_conversation *conversation,
					   struct mcp_exchange *exchange);

/* To be called when the client has left this exchange: from now on its callbacks are not called.
 * cancel: its calls are cancelled (modern); otherwise they continue, and their messages are dropped
 * (legacy). */
void mcp_conversation_leave(struct mcp_conversation *conversation,
			    struct mcp_exchange *exchange, bool cancel);

/* To be called when the client sends no more (it has closed its side of a byte stream), or when the
 * server stops. Subscriptions end, and the client is told. Open questions count as cancelled. Other
 * calls continue. */
void mcp_conversation_end_input(struct mcp_conversation *conversation);

/* The revision that the handshake has negotiated; NULL before it. */
const struct revision *
mcp_conversation_session(const struct mcp_conversation *conversation);

size_t mcp_conversation_in_flight(const struct mcp_conversation *conversation);

#endif
