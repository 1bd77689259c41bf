/* What one client and this server say to each other, whatever carries it.
 *
 * A conversation is one byte stream, one session of a legacy revision over HTTP, or one
 * modern HTTP request, which is a conversation of its own. It owns the calls in flight and
 * the questions that wait for the client.
 *
 * Everything that comes in comes with an exchange: the place where what belongs to it goes
 * out again. A byte stream has one for all it carries; in HTTP each POST has its own.
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

/* What is sent, for carriers that treat it differently. */
enum mcp_sent {
	MCP_SENT_NEWS,		/* a notification; may be left out when the client is slow */
	MCP_SENT_MESSAGE,	/* a notification, or a request to the client, that must arrive */
	MCP_SENT_ANSWER,	/* a result, or an array of answers */
	MCP_SENT_ERROR,		/* an error answer of a request that was dispatched */
	MCP_SENT_REFUSAL,	/* an error answer of what was not: malformed, wrong version,
				 * batch where there is none, no capability */
	MCP_SENT_NO_METHOD,	/* an error answer: unknown method */
};

/* Embedded in the carrier's object for it, which must live until on_done, or until
 * mcp_conversation_leave. */
struct mcp_exchange {
	/* message holds one whole JSON text without newline, and may be taken from. */
	void (*send)(struct mcp_exchange *exchange, enum mcp_sent kind,
		     struct jsonout *message);
	/* All that was owed here has been sent, or was cancelled: nothing follows. May come
	 * from within mcp_conversation_take. A byte stream's exchange hears it each time
	 * that nothing is in flight any more. */
	void (*on_done)(struct mcp_exchange *exchange);
	size_t owed;		/* the conversation's own; 0 at first */
};

struct mcp_conversation_options {
	struct mcp *mcp;		/* borrowed, like the tenant */
	struct tenant *tenant;
	bool by_stream;			/* a byte stream: everything goes by one exchange */
	/* NULL: not agreed on yet; a byte stream's, before its handshake. */
	const struct revision *session;
	/* May a call of so many bytes be held? Counts them if so. And: they are let go. */
	bool (*hold)(void *arg, size_t bytes);
	void (*let_go)(void *arg, size_t bytes);
	void *arg;
};

struct mcp_conversation *
mcp_conversation_new(const struct mcp_conversation_options *options);

/* Cancels what is in flight; no callback comes any more. NULL is fine. */
void mcp_conversation_free(struct mcp_conversation *conversation);

/* Takes what one line or one POST held, read by jsonrpc_parse: the line stays the
 * caller's; its messages may have been emptied. line_bytes: its length as text. */
void mcp_conversation_take(struct mcp_conversation *conversation,
			   struct mcp_exchange *exchange, struct jsonrpc_line *line,
			   size_t line_bytes);

/* What belongs to no request goes out there, what waited for it at once, from now on (a byte
 * stream has but one exchange, and needs no word); NULL: it is lost. Returns where it went
 * before, or NULL. */
struct mcp_exchange *mcp_conversation_hear(struct mcp_conversation *conversation,
					   struct mcp_exchange *exchange);

/* The client does not listen at this exchange any more; none of its callbacks comes again.
 * cancel: stop the calls that came by it (modern); otherwise they go on, and what they
 * would have said is lost (legacy). */
void mcp_conversation_leave(struct mcp_conversation *conversation,
			    struct mcp_exchange *exchange, bool cancel);

/* The client sends no more (its side of a byte stream is closed), or we stop to serve it:
 * subscriptions end, with a word to the client; questions that it could answer no more count
 * as cancelled. What else is in flight goes on. */
void mcp_conversation_end_input(struct mcp_conversation *conversation);

/* What the handshake agreed on; NULL before. */
const struct revision *
mcp_conversation_session(const struct mcp_conversation *conversation);

size_t mcp_conversation_in_flight(const struct mcp_conversation *conversation);

#endif
