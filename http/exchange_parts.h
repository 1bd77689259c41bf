/* An exchange, for the two files that make it up: http/exchange.c has it from its beginning
 * to its end, http/events.c the stream that it may be answered by.
 */
#ifndef HTTP_EXCHANGE_PARTS_H
#define HTTP_EXCHANGE_PARTS_H

#include "base/jsonout.h"
#include "http/parts.h"
#include "mcp/conversation.h"

struct http_exchange {
	struct mcp_exchange mcp;		/* first, for exchange_of */
	struct loop *loop;
	struct http_connection *connection;	/* NULL: finished, gone, or to come back */
	struct evhttp_request *request;
	struct http_tenant *tenant;
	struct mcp_conversation *conversation;
	struct http_session *session;		/* its owner; NULL: the exchange owns it */
	struct http_replay *replay;		/* of a stream that can be resumed; else NULL */
	struct jsonout answer;			/* that waits for the end, when it is no stream */
	enum mcp_sent kind;			/* of answer */
	bool has_answer;
	bool modern, takes_stream;
	bool listens;				/* a GET, which is owed nothing */
	bool streams;				/* the head is sent */
	bool stuck;				/* too much is unsent: nothing more is taken */
	bool taking;				/* within mcp_conversation_take */
	bool done;				/* nothing more comes from the conversation */
	struct event *prime;			/* begins a stream before there is anything to
						 * say */
	struct event *alive;			/* while it streams: says something */
	struct event *shut;			/* ... and closes it before its end */
	struct event *gone;			/* hears of a client that goes away */
	int gone_fd;
};

/* ---- http/exchange.c ---- */

struct http_exchange *exchange_of(struct mcp_exchange *mcp);

struct http_exchange *exchange_new(const struct http_exchange_options *options);

/* It answers there, and uses the session. */
void exchange_enter_connection(struct http_exchange *x,
			       const struct http_exchange_options *options);

/* Answers there no more; the request is evhttp's. NULL: it had no connection. */
struct http_connection *exchange_leave_connection(struct http_exchange *x);

/* Frees it and what it holds; a struct http_exchange, which nothing may use any more. */
void exchange_free(void *object);

/* Sends what is left to be said, and ends it. */
void exchange_finish(struct http_exchange *x);

/* ---- http/events.c ---- */

/* Looks out for a client that goes away, and begins a stream if the answer takes long. */
void exchange_wait(struct http_exchange *x);

/* Begins the stream, if need be. The message is taken. */
void exchange_send_event(struct http_exchange *x, bool is_news, struct jsonout *message);

/* The last of it is sent. */
void exchange_end_stream(struct http_connection *c, struct evhttp_request *request);

/* May its client come back for what it misses? */
bool exchange_can_be_resumed(const struct http_exchange *x);

#endif
