/* SPDX-License-Identifier: Apache-2.0 */
/* What a carrier gives to a conversation: its options, and the exchanges by which it gets its
 * answers.
 */
#ifndef MCP_CARRIER_H
#define MCP_CARRIER_H

#include <stdbool.h>
#include <stddef.h>

struct jsonout;
struct mcp;
struct mcp_exchange;
struct revision;
struct tenant;

#define CONVERSATION_CALLS_MAX 256	/* in flight in one conversation */

/* Kinds of messages that are sent; carriers treat them differently. */
enum mcp_sent {
	MCP_SENT_NEWS,		/* a notification; may be left out when the client is slow */
	MCP_SENT_MESSAGE,	/* a notification, or a request to the client, that must arrive */
	MCP_SENT_ANSWER,	/* a result, or an array of answers */
	MCP_SENT_ERROR,		/* an error answer of a request that was dispatched */
	MCP_SENT_REFUSAL,	/* an error answer: the request is malformed, names a version that
				 * is not served, is in a batch although its revision has none, or
				 * needs a capability that the client lacks */
	MCP_SENT_NO_METHOD,	/* an error answer: unknown method */
};

/* Embedded in an object of the carrier, which must live until on_done or mcp_conversation_leave. */
struct mcp_exchange {
	/* Sends a message, one whole JSON text without newline. The callee may take it. */
	void (*send)(struct mcp_exchange *exchange, enum mcp_sent kind,
		     struct jsonout *message);
	/* All answers that this exchange waited for were sent or cancelled: nothing follows. May be
	 * called from within mcp_conversation_take. For a byte stream it is called each time the
	 * last call in flight ends. */
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

#endif
