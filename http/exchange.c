/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a POST, from its body to its answer; also its conversation, if
 * the POST is modern or initializes a session. Also a GET, which has no body and gets no answer.
 *
 * The head of the answer waits for the first message, so that an error can still set the status. A
 * single answer is sent as JSON; if a notification comes before it, a stream of events begins. When
 * a client leaves, the call of a modern POST is cancelled. In a session the call continues, and the
 * events of its stream are kept until the client resumes it. */
#include "http/exchange_parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/http.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/xalloc.h"
#include "http/replay.h"
#include "http/reply.h"
#include "http/session.h"
#include "mcp/jsonrpc.h"

struct http_exchange *
exchange_of(struct mcp_exchange *mcp)
{
	return (struct http_exchange *)mcp;
}

const struct http_session *
http_exchange_session(const struct http_exchange *x)
{
	return x->session;
}

/* ---- the end ---- */

void
exchange_free(void *object)
{
	struct http_exchange *x = object;

	mcp_conversation_free(x->conversation);
	http_tenant_let_go(x->tenant);
	jsonout_done(&x->answer);
	free(x);
}

/* Leaves the session at once, not when the exchange is freed, because the session may end before
 * that. A conversation that the exchange owns is not touched: it may be calling a function of this
 * file, so it is freed later. */
static void
leave_session(struct http_exchange *x)
{
	if (!x->session)
		return;
	http_session_leave(x->session);
	x->session = NULL;
	x->conversation = NULL;
}

/* From here on evhttp owns the request. */
struct http_connection *
exchange_leave_connection(struct http_exchange *x)
{
	struct http_connection *c = x->connection;
	struct event **event[] = { &x->prime, &x->alive, &x->shut, &x->gone };

	if (x->gone)
		close(x->gone_fd);
	for (size_t i = 0; i < sizeof(event) / sizeof(*event); i++) {
		if (*event[i])
			event_free(*event[i]);
		*event[i] = NULL;
	}
	leave_session(x);
	x->connection = NULL;
	x->request = NULL;
	if (c)
		c->exchange = NULL;
	return c;
}

static struct http_connection *
exchange_detach(struct http_exchange *x)
{
	if (x->replay)
		http_replay_end(x->replay);
	x->replay = NULL;
	loop_free_later(x->loop, exchange_free, x);
	return exchange_leave_connection(x);
}

static int
exchange_status_of(const struct http_exchange *x)
{
	switch (x->kind) {
	case MCP_SENT_REFUSAL:
		return 400;
	case MCP_SENT_NO_METHOD:
		return x->modern ? 404 : 200;
	case MCP_SENT_NEWS:
	case MCP_SENT_MESSAGE:
	case MCP_SENT_ANSWER:
	case MCP_SENT_ERROR:
		break;
	}
	return 200;
}

void
exchange_finish(struct http_exchange *x)
{
	struct evhttp_request *request = x->request;
	struct http_connection *c = exchange_detach(x);

	if (!c)
		return;			/* its client may come back for the rest */
	if (x->streams)
		exchange_end_stream(c, request);
	else if (x->has_answer)
		http_reply(c, request, exchange_status_of(x), &x->answer);
	else
		/* notifications only; or the call was cancelled */
		http_reply(c, request, 202, NULL);
}

/* The connection is gone. An exchange with a stream that can be resumed waits for its client. */
static void
exchange_lost(struct http_exchange *x)
{
	/* evhttp frees a request that it still has. */
	if (!evhttp_request_get_connection(x->request))
		evhttp_request_free(x->request);
	if (exchange_can_be_resumed(x)) {
		exchange_leave_connection(x);
		return;
	}
	mcp_conversation_leave(x->conversation, &x->mcp, !x->session);
	exchange_detach(x);
}

void
http_exchange_abandon(struct http_exchange *x)
{
	struct evhttp_request *request = x->request;
	struct http_connection *c;

	mcp_conversation_leave(x->conversation, &x->mcp, true);
	c = exchange_detach(x);
	if (x->streams)
		exchange_end_stream(c, request);
	else
		http_reply_error(c, request, &(struct http_error){
			.status = 404, .code = JSONRPC_INVALID_REQUEST,
			.text = "the session was ended" });
}

/* The server stops: subscriptions and questions end; calls are answered. */
static void
exchange_end_input(struct http_exchange *x)
{
	if (x->listens) {
		mcp_conversation_leave(x->conversation, &x->mcp, false);
		exchange_finish(x);
	} else {
		mcp_conversation_end_input(x->conversation);
	}
}

/* ---- messages of the conversation ---- */

static void
exchange_on_send(struct mcp_exchange *mcp, enum mcp_sent kind, struct jsonout *message)
{
	struct http_exchange *x = exchange_of(mcp);
	bool is_news = kind == MCP_SENT_NEWS || kind == MCP_SENT_MESSAGE;

	if (!x->replay && (!x->connection || x->stuck))
		return;
	if (x->streams ? kind == MCP_SENT_NEWS && x->connection &&
			 http_connection_unsent(x->connection) > HTTP_OUTPUT_HIGH
		       : is_news && !x->takes_stream)
		return;
	if (x->streams || is_news) {
		exchange_send_event(x, kind == MCP_SENT_NEWS, message);
		return;
	}
	if (x->has_answer) {
		/* A POST has one answer: a second one is a bug. */
		log_line(LOG_ERR, "http-answer-lost", "tenant=%s kind=%d", x->tenant->principal,
			 (int)kind);
		return;
	}
	x->has_answer = true;
	x->kind = kind;
	x->answer = *message;
	jsonout_init(message);
}

static void
exchange_on_done(struct mcp_exchange *mcp)
{
	struct http_exchange *x = exchange_of(mcp);

	x->done = true;
	if (!x->taking && (x->connection || x->replay))
		exchange_finish(x);
}

/* ---- the beginning ---- */

static struct mcp_conversation *
make_conversation(const struct http_exchange *x, const struct revision *alone)
{
	const struct mcp_conversation_options options = {
		.mcp = x->connection->server->options.mcp,
		.tenant = x->tenant->tenant,
		.session = alone,
		.hold = http_tenant_take_bytes,
		.let_go = http_tenant_give_bytes,
		.arg = x->tenant,
	};

	return mcp_conversation_new(&options);
}

static void
set_header(struct http_exchange *x, const char *name, const char *value)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(x->request);

	xassert(evhttp_add_header(headers, name, value) == 0);
}

/* The handshake succeeded: the session begins. */
static void
open_session(struct http_exchange *x)
{
	struct evhttp_request *request = x->request;
	struct http_session *session;
	int r = http_session_open(x->connection->server->sessions, x->tenant, x->conversation,
				  &session);

	if (r == 0) {
		x->session = session;
		http_session_join(session);
		set_header(x, "Mcp-Session-Id", session->id);
		return;
	}
	log_line(LOG_WARNING, "http-session-refused", "tenant=%s err=%s", x->tenant->principal,
		 strerrorname_np(-r));
	mcp_conversation_leave(x->conversation, &x->mcp, true);
	set_header(x, "Retry-After", "10");
	http_reply_error(exchange_detach(x), request, &(struct http_error){
		.status = 503, .code = JSONRPC_INTERNAL_ERROR,
		.text = r == -EDQUOT ? "too many sessions of this user" : "too many sessions" });
}

struct http_exchange *
exchange_new(const struct http_exchange_options *options)
{
	struct http_exchange *x = xcalloc(1, sizeof(*x));

	x->mcp.send = exchange_on_send;
	x->mcp.on_done = exchange_on_done;
	x->loop = options->connection->server->options.loop;
	x->tenant = options->tenant;
	http_tenant_hold(x->tenant);
	x->modern = options->modern;
	x->takes_stream = options->takes_stream;
	jsonout_init(&x->answer);
	return x;
}

static const struct http_waiter waiter = { exchange_lost, exchange_end_input };

void
exchange_enter_connection(struct http_exchange *x, const struct http_exchange_options *options)
{
	x->connection = options->connection;
	x->connection->exchange = x;
	x->connection->waiter = &waiter;
	x->request = options->request;
	x->stuck = false;
	x->session = options->session;
	if (!x->session)
		return;
	http_session_join(x->session);
	x->conversation = x->session->conversation;
}

void
http_exchange_start(const struct http_exchange_options *options, struct jsonrpc_line *line,
		    size_t line_bytes)
{
	struct http_exchange *x = exchange_new(options);

	exchange_enter_connection(x, options);
	if (!x->session)
		x->conversation = make_conversation(x, options->alone);
	x->taking = true;
	mcp_conversation_take(x->conversation, &x->mcp, line, line_bytes);
	x->taking = false;
	if (!x->session && !x->modern && !options->alone &&
	    mcp_conversation_session(x->conversation))
		open_session(x);
	if (!x->connection)
		return;
	if (x->done)
		exchange_finish(x);
	else
		exchange_wait(x);
}
