/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the stream of events that answers an exchange, its timers,
 * and the watch for a client that leaves.
 *
 * The stream of a session can be resumed: its events are kept (replay.c), and the exchange moves
 * from one connection to another. */
#include "http/exchange_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "auth/auth.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "http/replay.h"
#include "http/session.h"
#include "mcp/revision.h"
#include "policy/config.h"

/* ---- a client that goes away ---- */

static void
events_on_gone(evutil_socket_t, short, void *arg)
{
	struct http_exchange *x = arg;

	if (http_connection_is_gone(x->connection))
		evhttp_connection_free(x->connection->evcon);
}

/* evhttp does not read while an answer is written, and must not be made to: one more byte would
 * abort the process. So the socket is watched separately, through a descriptor of its own and
 * edge-triggered: pipelined bytes, which are not read now, are reported once. */
static void
watch_client(struct http_exchange *x)
{
	struct event_base *base = x->connection->server->base;

	if (!(event_base_get_features(base) & EV_FEATURE_ET))
		return;
	x->gone_fd = fcntl(x->connection->fd, F_DUPFD_CLOEXEC, 0);
	if (x->gone_fd < 0)
		return;		/* without a watch its call ends by its own limits */
	x->gone = xalloc_check(event_new(base, x->gone_fd, EV_READ | EV_CLOSED | EV_ET | EV_PERSIST,
					 events_on_gone, x));
	if (event_add(x->gone, NULL) < 0) {
		event_free(x->gone);
		close(x->gone_fd);
		x->gone = NULL;
	}
}

/* ---- a stream ---- */

void
exchange_end_stream(struct http_connection *c, struct evhttp_request *request)
{
	http_connection_flushes(c, request);
	evhttp_send_reply_end(request);
}

bool
exchange_can_be_resumed(const struct http_exchange *x)
{
	return x->replay && x->replay->whole;
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

/* A client whose authorization was withdrawn gets no further events. */
static bool
is_withdrawn(const struct http_exchange *x)
{
	struct auth *auth = x->connection->server->options.auth;
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(x->request);

	return auth && auth_is_withdrawn(auth, evhttp_find_header(headers, "Authorization"));
}

static void
on_alive(evutil_socket_t, short, void *arg)
{
	static const char comment[] = ": still here\n\n";
	struct http_exchange *x = arg;
	struct evbuffer *chunk;

	if (is_withdrawn(x)) {
		log_line(LOG_NOTICE, "http-close", "tenant=%s why=token-revoked",
			 x->tenant->principal);
		http_connection_end(x->connection, 0);
		return;
	}
	if (http_connection_unsent(x->connection))
		return;
	chunk = xalloc_check(evbuffer_new());
	evbuffer_add(chunk, comment, sizeof(comment) - 1);
	send_chunk(x, chunk);
	evbuffer_free(chunk);
}

/* The rest waits for the client to resume the stream. */
static void
pause_stream(struct http_exchange *x)
{
	struct evhttp_request *request = x->request;

	exchange_end_stream(exchange_leave_connection(x), request);
}

static void
on_shut(evutil_socket_t, short, void *arg)
{
	struct http_exchange *x = arg;

	if (exchange_can_be_resumed(x))
		pause_stream(x);
}

static const struct revision *
revision_of(const struct http_exchange *x)
{
	return mcp_conversation_session(x->conversation);
}

static void
events_send_head(struct evhttp_request *request)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

	xassert(evhttp_add_header(headers, "Content-Type", "text/event-stream") == 0 &&
		evhttp_add_header(headers, "Cache-Control", "no-cache") == 0 &&
		evhttp_add_header(headers, "X-Accel-Buffering", "no") == 0);
	evhttp_send_reply_start(request, 200, NULL);
}

/* An event without data: it tells the client its position, and that the stream can be resumed. */
static void
send_priming(struct http_exchange *x, uint64_t number)
{
	struct evbuffer *chunk = xalloc_check(evbuffer_new());
	char id[HTTP_EVENT_ID_MAX];

	http_replay_id(x->replay, number, id);
	evbuffer_add_printf(chunk, "id: %s\nretry: %d\ndata: \n\n", id, HTTP_RETRY_MS);
	send_chunk(x, chunk);
	evbuffer_free(chunk);
}

static struct event *
make_timer(struct http_exchange *x, short what, unsigned int seconds,
	   void (*on_time)(evutil_socket_t fd, short what, void *arg))
{
	const struct timeval wait = { .tv_sec = seconds };
	struct event *event = xalloc_check(event_new(x->connection->server->base, -1, what,
						     on_time, x));

	event_add(event, &wait);
	return event;
}

/* number: of the event that its client has seen last; 0 at the beginning. */
static void
start_stream(struct http_exchange *x, uint64_t number)
{
	const struct config *config = x->connection->server->options.config;

	x->streams = true;
	events_send_head(x->request);
	x->alive = make_timer(x, EV_PERSIST, config->http.keepalive_seconds, on_alive);
	if (!x->replay && !x->listens && x->session && revision_of(x)->event_ids)
		x->replay = http_replay_new(&x->session->replays, x, exchange_free);
	if (!x->replay || !revision_of(x)->primes)
		return;
	send_priming(x, number);
	if (config->http.stream_seconds)
		x->shut = make_timer(x, 0, config->http.stream_seconds, on_shut);
}

static void
on_prime(evutil_socket_t, short, void *arg)
{
	struct http_exchange *x = arg;

	if (!x->streams)
		start_stream(x, 0);
}

static void
events_free_text(const void *text, size_t, void *)
{
	free((void *)text);
}

static void
events_write_event(struct http_exchange *x, bool is_news, struct jsonout *message,
		   struct evbuffer *out)
{
	static const char head[] = "event: message\ndata: ", tail[] = "\n\n";
	size_t len = message->len;

	if (x->replay) {
		http_replay_say(x->replay, is_news, message, out);
		return;
	}
	evbuffer_add(out, head, sizeof(head) - 1);
	if (len <= HTTP_EVENT_COPIED) {
		evbuffer_add(out, message->at, len);
		jsonout_done(message);
	} else {
		xassert(evbuffer_add_reference(out, jsonout_take(message), len, events_free_text,
					       NULL) == 0);
	}
	evbuffer_add(out, tail, sizeof(tail) - 1);
}

void
exchange_send_event(struct http_exchange *x, bool is_news, struct jsonout *message)
{
	struct evbuffer *chunk;

	if (x->connection && !x->streams)
		start_stream(x, 0);
	chunk = xalloc_check(evbuffer_new());
	events_write_event(x, is_news, message, chunk);
	if (x->connection && !x->stuck)
		send_chunk(x, chunk);
	evbuffer_free(chunk);
}

/* Nothing was sent yet. If the answer takes long and the client can resume a stream, a timer begins
 * the stream: so the client gets an id by which it can resume. (An answer in JSON that is lost
 * could not be sent again.) */
void
exchange_wait(struct http_exchange *x)
{
	const struct config *config = x->connection->server->options.config;

	watch_client(x);
	if (!x->streams && x->takes_stream && x->session && config->http.resume_seconds &&
	    revision_of(x)->primes)
		x->prime = make_timer(x, 0, HTTP_PRIME_S, on_prime);
}

/* ---- GET ---- */

void
http_exchange_listen(const struct http_exchange_options *options)
{
	struct http_exchange *x = exchange_new(options);
	struct mcp_exchange *before;

	exchange_enter_connection(x, options);
	x->listens = true;
	start_stream(x, 0);
	watch_client(x);
	before = mcp_conversation_hear(x->conversation, &x->mcp);
	if (before)
		exchange_finish(exchange_of(before));
}

/* Sends the events of an ended stream again, and ends. */
static void
send_again(const struct http_exchange_options *options, const struct http_replay *replay,
	   uint64_t number)
{
	struct evbuffer *chunk = xalloc_check(evbuffer_new());

	http_replay_write(replay, number, chunk);
	events_send_head(options->request);
	evhttp_send_reply_chunk(options->request, chunk);
	evbuffer_free(chunk);
	exchange_end_stream(options->connection, options->request);
}

void
http_exchange_resume(const struct http_exchange_options *options, struct http_replay *replay,
		     uint64_t number)
{
	struct http_exchange *x = replay->exchange;
	struct evbuffer *chunk;

	if (!x) {
		send_again(options, replay, number);
		return;
	}
	if (x->connection)
		pause_stream(x);	/* the client does not read it there any more */
	exchange_enter_connection(x, options);
	start_stream(x, number);
	watch_client(x);
	chunk = xalloc_check(evbuffer_new());
	http_replay_write(replay, number, chunk);
	if (evbuffer_get_length(chunk))
		send_chunk(x, chunk);
	evbuffer_free(chunk);
}
