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
	MCP_SENT_REFUSAL,	/* an error answer of a request that was not dispatched:
				 * malformed, wrong version, batch where there is none, no
				 * capability */
	MCP_SENT_NO_METHOD,	/* an error answer: unknown method */
};

/* Embedded in an object of the carrier, which must live until on_done or mcp_conversation_leave. */
struct mcp_exchange {
	/* message is one whole JSON text without newline; the callee may take it. */
	void (*send)(struct mcp_exchange *exchange, enum mcp_sent kind,
		     struct jsonout *message);
	/* All answers that this exchange waited for were sent or cancelled: nothing follows. May be
	 * called from within mcp_conversation_take. For a byte stream this is called each time when
	 * no call is in flight any more. */
	void (*on_done)(struct mcp_exchange *exchange);
	size_t owed;		/* the conversation's own; 0 at first */
};

struct mcp_conversation_options {
	struct mcp *mcp;		/* borrowed, like the tenant */
	struct tenant *tenant;
	bool by_stream;			/* a byte stream: everything goes by one exchange */
	/* NULL: not negotiated yet, on a byte stream before its handshake. */
	const struct revision *session;
	/* hold: may a call of this many bytes be held? If so, counts them. let_go: releases them.
	 */
	bool (*hold)(void *arg, size_t bytes);
	void (*let_go)(void *arg, size_t bytes);
	void *arg;
};

struct mcp_conversation *
mcp_conversation_new(const struct mcp_conversation_options *options);

/* Cancels the calls in flight; no callback follows. NULL is fine. */
void mcp_conversation_free(struct mcp_conversation *conversation);

/* Handles the messages of one line or one POST, as jsonrpc_parse has read them. The line stays the
 * caller's; its messages may be empty afterwards. line_bytes: its length as text. */
void mcp_conversation_take(struct mcp_conversation *conversation,
			   struct mcp_exchange *exchange, struct jsonrpc_line *line,
			   size_t line_bytes);

/* From now on messages that belong to no request are sent by exchange, and those that waited are
 * sent at once. NULL: such messages are dropped. Not needed for a byte stream, which has only one
 * exchange. Returns the exchange before, or NULL. */
struct mcp_exchange *mcp_conversation_hear(struct mcp_conversation *conversation,
					   struct mcp_exchange *exchange);

/* The client has left this exchange; its callbacks are not called any more. cancel: its calls are
 * cancelled (modern); else they continue, and their messages are dropped (legacy). */
void mcp_conversation_leave(struct mcp_conversation *conversation,
			    struct mcp_exchange *exchange, bool cancel);

/* The client sends no more (it has closed its side of a byte stream), or the server stops:
 * subscriptions end, and the client is told; open questions count as cancelled. Other calls
 * continue. */
void mcp_conversation_end_input(struct mcp_conversation *conversation);

/* The revision that the handshake has negotiated; NULL before it. */
const struct revision *
mcp_conversation_session(const struct mcp_conversation *conversation);

size_t mcp_conversation_in_flight(const struct mcp_conversation *conversation);

#endif
