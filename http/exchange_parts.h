/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an HTTP exchange, for its two files: http/exchange.c has its beginning and its end,
 * http/events.c the stream of events that may be its answer.
 */
#ifndef HTTP_EXCHANGE_PARTS_H
#define HTTP_EXCHANGE_PARTS_H

#include "base/jsonout.h"
#include "http/parts.h"
#include "mcp/conversation.h"

struct http_exchange {
	struct mcp_exchange mcp;		/* must be the first member: exchange_of */
	struct loop *loop;
	struct http_connection *connection;	/* NULL: finished, lost, or waiting to be resumed */
	struct evhttp_request *request;
	struct http_tenant *tenant;
	struct mcp_conversation *conversation;
	struct http_session *session;		/* owns conversation; NULL: the exchange does */
	struct http_replay *replay;		/* of a stream that can be resumed; otherwise NULL
						 */
	struct jsonout answer;			/* sent at the end, if there is no stream */
	enum mcp_sent kind;			/* of answer */
	bool has_answer;
	bool modern, takes_stream;
	bool listens;				/* it is a GET, which gets no answer */
	bool streams;				/* the stream has begun: its head was sent */
	bool stuck;				/* too many bytes are unsent: no further message is
						 * accepted */
	bool taking;				/* within mcp_conversation_take */
	bool done;				/* the conversation sends nothing more */
	struct event *prime;			/* begins a stream before the first message */
	struct event *alive;			/* sends comments into the stream, which keep the
						 * connection open */
	struct event *shut;			/* closes the stream before its end */
	struct event *gone;			/* called when the client has closed the
						 * connection */
	int gone_fd;
};

/* ---- http/exchange.c ---- */

struct http_exchange *exchange_of(struct mcp_exchange *mcp);

struct http_exchange *exchange_new(const struct http_exchange_options *options);

/* From now on the exchange answers on the connection of options, and uses its session. */
void exchange_enter_connection(struct http_exchange *x,
			       const struct http_exchange_options *options);

/* From now on the exchange does not answer on its connection. Returns the connection; NULL: it had
 * none. */
struct http_connection *exchange_leave_connection(struct http_exchange *x);

/* Frees a struct http_exchange and everything that it owns. Nothing may refer to it any more. */
void exchange_free(void *object);

/* Sends the rest of the answer, and ends the exchange. */
void exchange_finish(struct http_exchange *x);

/* ---- http/events.c ---- */

/* Watches for a client that closes the connection, and begins a stream if the answer takes long. */
void exchange_wait(struct http_exchange *x);

/* Sends a message as an event, and begins the stream if it has not begun. The message is taken. */
void exchange_send_event(struct http_exchange *x, bool is_news, struct jsonout *message);

/* Ends the stream after its last event. */
void exchange_end_stream(struct http_connection *c, struct evhttp_request *request);

/* May its client resume the stream? */
bool exchange_can_be_resumed(const struct http_exchange *x);

#endif
