/* Runs in: the supervisor.   Owns: a POST from its body to its answer, and of a modern one
 *          or one that initializes the conversation.
 *
 * The head of the answer waits for the first thing to say, so that an error still gets its
 * status: one answer goes out as JSON, a notification before it opens a stream of events.
 * A client that goes away cancels what a modern POST asked for; in a session it goes on. */
#include "supervisor/http/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "supervisor/http/session.h"
#include "supervisor/mcp/jsonout.h"
#include "supervisor/mcp/jsonrpc.h"
#include "supervisor/log.h"
#include "supervisor/loop.h"
#include "supervisor/mcp/conversation.h"
#include "supervisor/xalloc.h"

struct http_exchange {
	struct mcp_exchange mcp;		/* first, for from_mcp */
	struct loop *loop;
	struct http_connection *connection;	/* NULL: finished or gone */
	struct evhttp_request *request;
	struct http_tenant *tenant;
	struct mcp_conversation *conversation;
	struct http_session *session;		/* whose that is; NULL: ours */
	struct jsonout answer;			/* that waits for the end, when it is no stream */
	enum mcp_sent kind;			/* of answer */
	bool has_answer;
	bool modern, takes_stream;
	bool streams;				/* the head is sent */
	bool stuck;				/* too much is unsent: nothing more is taken */
	bool taking;				/* within mcp_conversation_take */
	bool done;				/* nothing more comes from the conversation */
	struct event *alive;			/* while it streams: says something */
	struct event *gone;			/* hears of a client that goes away */
	int gone_fd;
};

static struct http_exchange *
from_mcp(struct mcp_exchange *mcp)
{
	return (struct http_exchange *)mcp;
}

const struct http_session *
http_exchange_session(const struct http_exchange *x)
{
	return x->session;
}

/* ---- the end ---- */

static void
free_exchange(void *object)
{
	struct http_exchange *x = object;

	mcp_conversation_free(x->conversation);
	http_tenant_let_go(x->tenant);
	jsonout_done(&x->answer);
	free(x);
}

/* At once, not when it is freed: until then its session may be ended. A conversation of its
 * own may be in the middle of a call to us, and is left for later. */
static void
leave_session(struct http_exchange *x)
{
	if (!x->session)
		return;
	http_session_leave(x->session);
	x->session = NULL;
	x->conversation = NULL;
}

static void
stop_events(struct http_exchange *x)
{
	if (x->alive)
		event_free(x->alive);
	if (x->gone) {
		event_free(x->gone);
		close(x->gone_fd);
	}
	x->alive = x->gone = NULL;
}

/* The request is evhttp's from here on. */
static struct http_connection *
detach(struct http_exchange *x)
{
	struct http_connection *c = x->connection;

	stop_events(x);
	leave_session(x);
	x->connection = NULL;
	c->exchange = NULL;
	loop_free_later(x->loop, free_exchange, x);
	return c;
}

static int
status_of(const struct http_exchange *x)
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

static void
finish(struct http_exchange *x)
{
	struct http_connection *c = detach(x);

	if (x->streams) {
		http_connection_flushes(c, x->request);
		evhttp_send_reply_end(x->request);
	} else if (x->has_answer) {
		http_reply(c, x->request, status_of(x), &x->answer);
	} else {
		/* notifications; or what was asked for was cancelled */
		http_reply(c, x->request, 202, NULL);
	}
}

void
http_exchange_lost(struct http_exchange *x)
{
	/* evhttp frees what it still has itself. */
	if (!evhttp_request_get_connection(x->request))
		evhttp_request_free(x->request);
	mcp_conversation_leave(x->conversation, &x->mcp, !x->session);
	stop_events(x);
	leave_session(x);
	x->connection = NULL;
	loop_free_later(x->loop, free_exchange, x);
}

void
http_exchange_abandon(struct http_exchange *x)
{
	struct http_connection *c;

	mcp_conversation_leave(x->conversation, &x->mcp, true);
	c = detach(x);
	if (x->streams) {
		http_connection_flushes(c, x->request);
		evhttp_send_reply_end(x->request);
	} else {
		http_reply_error(c, x->request, 404, JSONRPC_INVALID_REQUEST,
				 "the session was ended");
	}
}

void
http_exchange_end_input(struct http_exchange *x)
{
	mcp_conversation_end_input(x->conversation);
}

/* ---- a stream of events ---- */

static void
set_header(struct http_exchange *x, const char *name, const char *value)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(x->request);

	if (evhttp_add_header(headers, name, value) < 0)
		abort();
}

static void
send_chunk(struct http_exchange *x, struct evbuffer *chunk)
{
	evhttp_send_reply_chunk(x->request, chunk);
	if (!x->stuck && http_connection_unsent(x->connection) > HTTP_OUTPUT_MAX) {
		x->stuck = true;
		log_line(LOG_WARNING, "http-close", "tenant=%s why=does-not-read",
			 x->tenant->principal);
		http_connection_end(x->connection, 0);
	}
}

static void
on_alive(evutil_socket_t fd, short what, void *arg)
{
	static const char comment[] = ": still here\n\n";
	struct http_exchange *x = arg;
	struct evbuffer *chunk;

	(void)fd;
	(void)what;
	if (http_connection_unsent(x->connection))
		return;
	chunk = xalloc_check(evbuffer_new());
	evbuffer_add(chunk, comment, sizeof(comment) - 1);
	send_chunk(x, chunk);
	evbuffer_free(chunk);
}

static void
start_stream(struct http_exchange *x)
{
	static const struct timeval often = { .tv_sec = HTTP_KEEP_ALIVE_S };

	x->streams = true;
	set_header(x, "Content-Type", "text/event-stream");
	set_header(x, "Cache-Control", "no-cache");
	set_header(x, "X-Accel-Buffering", "no");
	evhttp_send_reply_start(x->request, 200, NULL);
	x->alive = xalloc_check(event_new(x->connection->server->base, -1, EV_PERSIST,
					  on_alive, x));
	event_add(x->alive, &often);
}

static void
free_text(const void *text, size_t len, void *arg)
{
	(void)len;
	(void)arg;
	free((void *)text);
}

static void
send_event(struct http_exchange *x, struct jsonout *message)
{
	static const char head[] = "event: message\ndata: ", tail[] = "\n\n";
	struct evbuffer *chunk = xalloc_check(evbuffer_new());
	size_t len = message->len;

	if (!x->streams)
		start_stream(x);
	evbuffer_add(chunk, head, sizeof(head) - 1);
	if (evbuffer_add_reference(chunk, jsonout_take(message), len, free_text, NULL) < 0)
		abort();
	evbuffer_add(chunk, tail, sizeof(tail) - 1);
	send_chunk(x, chunk);
	evbuffer_free(chunk);
}

/* ---- what the conversation says ---- */

static void
on_send(struct mcp_exchange *mcp, enum mcp_sent kind, struct jsonout *message)
{
	struct http_exchange *x = from_mcp(mcp);
	bool is_news = kind == MCP_SENT_NEWS || kind == MCP_SENT_MESSAGE;

	if (!x->connection || x->stuck)
		return;
	if (x->streams ? kind == MCP_SENT_NEWS &&
			 http_connection_unsent(x->connection) > HTTP_OUTPUT_HIGH
		       : is_news && !x->takes_stream)
		return;
	if (x->streams || is_news) {
		send_event(x, message);
		return;
	}
	if (x->has_answer) {
		/* One POST is owed one answer, so this is a mistake of ours. */
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
on_done(struct mcp_exchange *mcp)
{
	struct http_exchange *x = from_mcp(mcp);

	x->done = true;
	if (!x->taking && x->connection)
		finish(x);
}

/* ---- a client that goes away ---- */

/* The end of its writing side alone is none on a unix socket, where the kernel tells it from
 * a close. On TCP it does not. */
static bool
is_gone(const struct http_exchange *x)
{
	struct pollfd p = { .fd = x->gone_fd, .events = POLLRDHUP };
	short telling = POLLHUP | POLLERR | (x->connection->caller.by_socket ? 0 : POLLRDHUP);

	return poll(&p, 1, 0) == 1 && (p.revents & telling);
}

static void
on_gone(evutil_socket_t fd, short what, void *arg)
{
	struct http_exchange *x = arg;

	(void)fd;
	(void)what;
	if (is_gone(x))
		evhttp_connection_free(x->connection->evcon);
}

/* evhttp does not read while it is answered, and must not be made to: a byte more would end
 * the process. So the socket is watched apart from it, on a descriptor of its own for which
 * only changes are told: pipelined bytes, which nobody reads now, are told of once. */
static void
watch_client(struct http_exchange *x)
{
	struct event_base *base = x->connection->server->base;

	if (!(event_base_get_features(base) & EV_FEATURE_ET))
		return;
	x->gone_fd = fcntl(x->connection->fd, F_DUPFD_CLOEXEC, 0);
	if (x->gone_fd < 0)
		return;		/* then its call ends by its own limits */
	x->gone = xalloc_check(event_new(base, x->gone_fd,
					 EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_gone, x));
	if (event_add(x->gone, NULL) < 0) {
		event_free(x->gone);
		close(x->gone_fd);
		x->gone = NULL;
	}
}

/* ---- the beginning ---- */

static struct mcp_conversation *
make_conversation(const struct http_exchange *x)
{
	const struct mcp_conversation_options options = {
		.mcp = x->connection->server->options.mcp,
		.tenant = x->tenant->tenant,
		.hold = http_tenant_take_bytes,
		.let_go = http_tenant_give_bytes,
		.arg = x->tenant,
	};

	return mcp_conversation_new(&options);
}

/* The handshake went well: from now on it is a session. */
static void
open_session(struct http_exchange *x)
{
	struct http_session *session;
	int r = http_session_open(x->connection->server->sessions, x->tenant, x->conversation,
				  &session);

	if (r == 0) {
		x->session = session;
		http_session_join(session);
		set_header(x, "Mcp-Session-Id", http_session_id(session));
		return;
	}
	log_line(LOG_WARNING, "http-session-refused", "tenant=%s err=%s", x->tenant->principal,
		 strerrorname_np(-r));
	mcp_conversation_leave(x->conversation, &x->mcp, true);
	set_header(x, "Retry-After", "10");
	http_reply_error(detach(x), x->request, 503, JSONRPC_INTERNAL_ERROR,
			 r == -EDQUOT ? "too many sessions of this user" : "too many sessions");
}

void
http_exchange_start(const struct http_exchange_options *options, struct jsonrpc_line *line,
		    size_t line_bytes)
{
	struct http_exchange *x = xcalloc(1, sizeof(*x));

	x->mcp.send = on_send;
	x->mcp.on_done = on_done;
	x->loop = options->connection->server->options.loop;
	x->connection = options->connection;
	x->request = options->request;
	x->tenant = options->tenant;
	http_tenant_hold(x->tenant);
	x->modern = options->modern;
	x->takes_stream = options->takes_stream;
	x->session = options->session;
	jsonout_init(&x->answer);
	if (x->session)
		http_session_join(x->session);
	x->conversation = x->session ? http_session_conversation(x->session)
				     : make_conversation(x);
	x->connection->exchange = x;

	x->taking = true;
	mcp_conversation_take(x->conversation, &x->mcp, line, line_bytes);
	x->taking = false;
	if (!x->session && !x->modern && mcp_conversation_session(x->conversation))
		open_session(x);
	if (!x->connection)
		return;
	if (x->done)
		finish(x);
	else
		watch_client(x);
}
