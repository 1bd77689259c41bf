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

struct jsonout;
struct jsonrpc_line;
struct mcp;
struct mcp_conversation;
struct revision;
struct tenant;

#define CONVERSATION_CALLS_MAX 256	/* in flight in one conversation */

/* Kinds of messages that are sent; carriers treat them differently. */
enum mcp_sent {
	MCP_SENT_NEWS,		/* a notification; may be left out when the client is slow */
	MCP_SENT_MESSAGE,	/* a notification, or a request to the client, that must arrive */
	MCP_SENT_ANSWER,	/* a result, or an array of answers */
	MCP_SENT_ERROR,		/* an error answer of a request that was dispatched */
	MCP_SENT_REFUSAL,	/* an error answer of a request that was not dispatched: it is
				 * malformed, has a wrong version or is in a batch that the revision
				 * does not have, or the client lacks a capability */
	MCP_SENT_NO_METHOD,	/* an error answer: unknown method */
};

/* Embedded in an object of the carrier, which must live until on_done or mcp_conversation_leave. */
struct mcp_exchange {
	/* Sends a message, one whole JSON text without newline. The callee may take it. */
	void (*send)(struct mcp_exchange *exchange, enum mcp_sent kind,
		     struct jsonout *message);
	/* All answers that this exchange waited for were sent or cancelled: nothing follows. May be
	 * called from within mcp_conversation_take. For a byte stream it is called each time when
	 * the last call in flight has ended. */
	void (*on_done)(struct mcp_exchange *exchange);
	size_t owed;		/* for the conversation only; 0 at first */
};

struct mcp_conversation_options {
	struct mcp *mcp;		/* borrowed, like the tenant */
	struct tenant *tenant;
	bool by_stream;			/* a byte stream: one exchange has all messages */
	/* The negotiated revision. NULL: none yet, as on a byte stream before the handshake. */
	const struct revision *session;
	/* hold: may a call of so many bytes be held in memory? If so, the bytes are counted until
	 * let_go. */
	bool (*hold)(void *arg, size_t bytes);
	void (*let_go)(void *arg, size_t bytes);
	void *arg;
};

struct mcp_conversation *
mcp_conversation_new(const struct mcp_conversation_options *options);

/* Cancels the calls in flight; no callback follows. NULL is fine. */
void mcp_conversation_free(struct mcp_conversation *conversation);

/* Handles the messages of one line or one POST, as jsonrpc_parse has read them. The line still
 * belongs to the caller; its messages may be empty afterwards. line_bytes: its length as text. */
void mcp_conversation_take(struct mcp_conversation *conversation,
			   struct mcp_exchange *exchange, struct jsonrpc_line *line,
			   size_t line_bytes);

/* From now on messages that belong to no request are sent by exchange. Those that have waited are
 * sent at once. NULL: such messages are dropped. Not needed for a byte stream, which has only one
 * exchange. Returns the former exchange, or NULL. */
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
