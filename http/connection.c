/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the state of a connection in this server; evhttp owns the
 * socket.
 * Reads:   bytes of a client, for their framing alone.
 *
 * evhttp bounds neither the time that a request takes to arrive nor the memory that a peer holds in
 * several connections; this file does both. A callback of evhttp must not close its connection: it
 * starts the connection's clock, which closes it in a later turn of the loop. */
#include "http/parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/watched.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "base/fair.h"
#include "tools/shared/links.h"

#define READ_AHEAD (64 * 1024)	/* bytes beside a body: its framing, and pipelined requests */
#define DISCARD_MAX (64 * 1024)
#define STRANGERS_PART 4	/* of the table: for connections without a request yet */
#define READ_PER_TURN 4096	/* bytes: thousands of chunks of one byte take long to parse */
#define WRITE_PER_TURN (256 * 1024)

static struct evbuffer *
connection_input_of(const struct http_connection *c)
{
	return bufferevent_get_input(c->bev);
}

static struct evbuffer *
connection_output_of(const struct http_connection *c)
{
	return bufferevent_get_output(c->bev);
}

size_t
http_connection_unsent(const struct http_connection *c)
{
	return evbuffer_get_length(connection_output_of(c));
}

/* ---- its clock ---- */

static void
set_clock(struct http_connection *c, unsigned int seconds)
{
	struct timeval wait = { .tv_sec = seconds };

	evtimer_add(c->clock, &wait);
}

static void
connection_set_state(struct http_connection *c, enum http_state state)
{
	const struct config *config = c->server->options.config;

	if (c->state == HTTP_ENDS)
		return;
	c->state = state;
	if (state == HTTP_WAITS)
		set_clock(c, config->http.idle_seconds);
	else if (state == HTTP_READS)
		set_clock(c, config->http.request_seconds);
	else
		evtimer_del(c->clock);
}

static void
wait_for_request(struct http_connection *c, enum http_state state)
{
	c->at_start = !c->endpoint->only_metrics && c->server->options.config->http.links;
	connection_set_state(c, state);
}

void
http_connection_end(struct http_connection *c, int status)
{
	if (c->state == HTTP_ENDS)
		return;
	c->state = HTTP_ENDS;
	c->refusal = status;
	set_clock(c, 0);
}

/* If a socket is closed with bytes unread, its peer gets an error, and the last answer may be
 * lost. So the waiting bytes are read first. */
static void
say_last_word(const struct http_connection *c)
{
	static char waste[4096];
	char text[128];
	int len = snprintf(text, sizeof(text),
			   "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n%s\r\n",
			   c->refusal,
			   c->refusal == 400   ? "Bad Request"
			   : c->refusal == 408 ? "Request Timeout"
					       : "Service Unavailable",
			   c->refusal == 503 ? "Retry-After: 1\r\n" : "");

	(void)!send(c->fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (size_t n = 0; n < DISCARD_MAX; n += sizeof(waste))
		if (recv(c->fd, waste, sizeof(waste), MSG_DONTWAIT) <= 0)
			break;
}

static void
on_clock(evutil_socket_t, short, void *arg)
{
	struct http_connection *c = arg;

	if (c->state == HTTP_READS)
		c->refusal = 408;
	if (c->refusal && http_connection_unsent(c) == 0)
		say_last_word(c);
	evhttp_connection_free(c->evcon);	/* this calls on_close(), too */
}

/* ---- waiting bytes ---- */

static void
connection_charge(struct http_connection *c, size_t *charged, size_t bytes)
{
	size_t most = HTTP_PEER_BYTES_MAX + c->server->options.config->http.body_max;

	if ((!http_peer_charge(&c->server->peers, c->peer, *charged, bytes) ||
	     c->peer->bytes > most) && bytes > *charged) {
		log_line(LOG_WARNING, "http-refused", "why=peer-buffers-full");
		http_connection_end(c, 503);
	}
	*charged = bytes;
}

/* Looks at the beginning of the next request; calls on_put if it is an upload. evhttp takes only
 * complete lines out of the buffer, so the beginning is still there until the first line is
 * complete. */
static void
look_at_start(struct http_connection *c)
{
	static const char put[] = "PUT " LINKS_PATH;
	char text[sizeof(put) - 1];
	ev_ssize_t n = evbuffer_copyout(connection_input_of(c), text, sizeof(text));

	if (n > 0 && memcmp(text, put, (size_t)n) == 0 && (size_t)n < sizeof(text))
		return;
	c->at_start = false;
	if (n == sizeof(text) && memcmp(text, put, sizeof(text)) == 0)
		c->on_put(c);
}

/* The last n bytes of the input are new. What evhttp could misread, it does not get. */
static void
check_framing(struct http_connection *c, size_t n)
{
	struct evbuffer *input = connection_input_of(c);
	struct evbuffer_ptr at;
	char bytes[READ_PER_TURN];
	const char *wrong = NULL;

	evbuffer_ptr_set(input, &at, evbuffer_get_length(input) - n, EVBUFFER_PTR_SET);
	while (n > 0 && !wrong) {
		ev_ssize_t got = evbuffer_copyout_from(input, &at, bytes, sizeof(bytes));

		if (got <= 0)
			break;
		wrong = http_framing_take(&c->framing, bytes, (size_t)got);
		n -= (size_t)got;
		evbuffer_ptr_set(input, &at, (size_t)got, EVBUFFER_PTR_ADD);
	}
	if (!wrong)
		return;
	log_line(LOG_WARNING, "http-refused", "why=framing text=\"%s\"", wrong);
	bufferevent_setcb(c->bev, NULL, NULL, NULL, NULL);
	/* No refusal may be taken for the answer of the request before. */
	http_connection_end(c, c->state == HTTP_READS ? 400 : 0);
}

static const char *
connection_user(const struct http_connection *c, char name_r[32])
{
	snprintf(name_r, 32, "uid:%u", c->caller.uid);
	return name_r;
}

/* evhttp keeps the bytes that it takes out of the buffer until the request is answered, so
 * nothing is subtracted before http_connection_serves(). */
static void
connection_on_input(struct evbuffer *, const struct evbuffer_cb_info *info, void *arg)
{
	struct http_connection *c = arg;
	char name[32];

	if (watched_stalled("http", connection_user(c, name)))
		http_connection_end(c, 0);
	if (!info->n_added)
		return;
	if (c->state == HTTP_WAITS)
		connection_set_state(c, HTTP_READS);
	connection_charge(c, &c->charged_in, c->charged_in + info->n_added);
	if (c->at_start)
		look_at_start(c);
	if (c->state != HTTP_ENDS && !c->upload)
		check_framing(c, info->n_added);
}

static void
connection_on_output(struct evbuffer *buffer, const struct evbuffer_cb_info *, void *arg)
{
	struct http_connection *c = arg;

	connection_charge(c, &c->charged_out, evbuffer_get_length(buffer));
}

void
http_connection_serves(struct http_connection *c, size_t body_bytes)
{
	connection_charge(c, &c->charged_in,
			  evbuffer_get_length(connection_input_of(c)) + body_bytes);
	connection_set_state(c, HTTP_SERVES);
}

static void
connection_on_answered(struct evhttp_request *, void *arg)
{
	struct http_connection *c = arg;

	connection_charge(c, &c->charged_in, evbuffer_get_length(connection_input_of(c)));
	if (c->server->draining)
		http_connection_end(c, 0);
	else
		wait_for_request(c, evbuffer_get_length(connection_input_of(c)) ? HTTP_READS
										: HTTP_WAITS);
}

void
http_connection_flushes(struct http_connection *c, struct evhttp_request *request)
{
	evhttp_request_set_on_complete_cb(request, connection_on_answered, c);
	connection_set_state(c, HTTP_FLUSHES);
}

/* ---- whose it is ---- */

/* Clients on TCP without tokens are all the same tenant, and their addresses alone are counted. */
static bool
is_authenticated(const struct http_connection *c)
{
	struct auth *auth = c->server->options.auth;

	return c->caller.by_socket || (auth && auth_has_tokens(auth));
}

static void
leave_strangers(struct http_connection *c)
{
	if (!c->is_stranger)
		return;
	c->is_stranger = false;
	TAILQ_REMOVE(&c->server->strangers, c, stranger_link);
	c->server->n_strangers--;
}

/* Until a request was authenticated, a connection may be anybody's. All these share a part of the
 * table, in which the oldest one makes room. */
static void
join_strangers(struct http_connection *c)
{
	struct http_server *server = c->server;
	size_t size = server->options.config->http.connections_max;
	struct http_connection *oldest;

	if (!is_authenticated(c))
		return;
	c->is_stranger = true;
	TAILQ_INSERT_TAIL(&server->strangers, c, stranger_link);
	server->n_strangers++;
	if (size < FAIR_LEAST || server->n_strangers <= size / STRANGERS_PART)
		return;
	oldest = TAILQ_FIRST(&server->strangers);
	log_line(LOG_WARNING, "http-refused", "why=says-not-who connections=%zu",
		 server->peers.connections);
	leave_strangers(oldest);
	http_connection_end(oldest, 503);
}

static void
leave_holder(struct http_connection *c)
{
	if (!c->holder)
		return;
	c->holder->connections--;
	http_tenant_let_go(c->holder);
	c->holder = NULL;
}

bool
http_connection_take(struct http_connection *c, struct http_tenant *tenant)
{
	size_t size = c->server->options.config->http.connections_max;

	if (c->holder == tenant || !is_authenticated(c))
		return true;
	if (fair_take(size, c->server->peers.connections - 1, tenant->connections, size) < 0)
		return false;
	leave_strangers(c);
	leave_holder(c);
	http_tenant_hold(tenant);
	tenant->connections++;
	c->holder = tenant;
	return true;
}

/* Closes the connection that has waited longest of the tenant with the most. */
static bool
connection_make_room(struct http_server *server)
{
	struct http_connection *c, *oldest = NULL;

	LIST_FOREACH(c, &server->connections, link)
		if (c->holder && c->holder->connections > 1 && c->state == HTTP_WAITS &&
		    (!oldest || c->holder->connections >= oldest->holder->connections))
			oldest = c;
	if (!oldest)
		return false;
	log_line(LOG_NOTICE, "http-close", "tenant=%s why=makes-room", oldest->holder->principal);
	evhttp_connection_free(oldest->evcon);
	return true;
}

/* ---- the end ---- */

/* A client that has only closed its writing side is not gone. On a unix socket the kernel tells
 * the two apart; on TCP it does not. */
bool
http_connection_is_gone(const struct http_connection *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };
	short telling = POLLHUP | POLLERR | (c->caller.by_socket ? 0 : POLLRDHUP);

	return poll(&p, 1, 0) == 1 && (p.revents & telling);
}

static void
free_connection(void *object)
{
	struct http_connection *c = object;

	if (c->clock)
		event_free(c->clock);
	free(c);
}

static void
on_close(struct evhttp_connection *, void *arg)
{
	struct http_connection *c = arg;
	struct http_exchange *x = c->exchange;
	struct http_download *download = c->download;
	struct http_upload *upload = c->upload;
	struct http_server *server;

	gate_unwait(&c->identity);
	rota_forget(&c->turn);
	c->exchange = NULL;
	c->download = NULL;
	c->upload = NULL;
	if (x)
		c->waiter->lost(x);
	if (download)
		http_download_lost(download);
	if (upload)
		c->upload_lost(upload);
	server = c->server;
	LIST_REMOVE(c, link);
	server->by_fd[c->fd] = NULL;
	evtimer_del(c->clock);
	leave_strangers(c);
	leave_holder(c);
	if (c->peer) {
		evbuffer_remove_cb(connection_input_of(c), connection_on_input, c);
		evbuffer_remove_cb(connection_output_of(c), connection_on_output, c);
		http_peer_charge(&c->server->peers, c->peer, c->charged_in + c->charged_out, 0);
		http_peer_leave(&server->peers, c->peer);
	}
	loop_free_later(server->options.loop, free_connection, c);
	if (LIST_EMPTY(&server->connections) && server->on_empty && !server->freeing)
		server->on_empty(server->arg);
}

void
http_connection_drain(struct http_connection *c)
{
	if (c->state == HTTP_WAITS || c->state == HTTP_READS)
		evhttp_connection_free(c->evcon);
	else if (c->exchange)
		c->waiter->end_input(c->exchange);
}

/* ---- the beginning ---- */

struct http_connection *
http_connection_new(struct http_endpoint *endpoint)
{
	struct http_connection *c = xcalloc(1, sizeof(*c));

	c->server = endpoint->server;
	c->endpoint = endpoint;
	c->fd = -1;
	c->bev = xalloc_check(bufferevent_socket_new(endpoint->server->base, -1, 0));
	/* Held until it is adopted: then it can be asked if evhttp still has it. */
	bufferevent_incref(c->bev);
	LIST_INSERT_HEAD(&endpoint->newborn, c, link);
	return c;
}

static void
connection_remember(struct http_server *server, struct http_connection *c)
{
	size_t fd = (size_t)c->fd, n = server->n_fds;

	if (fd >= n) {
		server->n_fds = fd + 64;
		server->by_fd = xrealloc(server->by_fd,
					 server->n_fds * sizeof(*server->by_fd));
		memset(server->by_fd + n, 0, (server->n_fds - n) * sizeof(*server->by_fd));
	}
	server->by_fd[fd] = c;
	LIST_INSERT_HEAD(&server->connections, c, link);
}

/* Asks the kernel who the peer is. 0 or -errno. */
static int
ask_kernel(struct http_connection *c, struct sockaddr_storage *address_r)
{
	socklen_t len = sizeof(*address_r);
	struct ucred peer;

	c->caller.by_socket = c->endpoint->by_socket;
	c->caller.uid = c->caller.owner = c->server->options.own_uid;
	c->caller.owner_known = !c->endpoint->by_socket;
	if (!c->endpoint->by_socket)
		return getpeername(c->fd, (struct sockaddr *)address_r, &len) < 0 ? -errno : 0;
	len = sizeof(peer);
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	c->caller.uid = peer.uid;
	return 0;
}

static int
connection_admit(struct http_connection *c)
{
	const struct config *config = c->server->options.config;
	struct sockaddr_storage address;
	int r = ask_kernel(c, &address);

	if (r < 0)
		return r;
	do
		r = http_peer_join(&c->server->peers, c->endpoint->by_socket ? NULL : &address,
				   c->caller.uid, config->http.connections_max,
				   config->http.connections_per_peer, &c->peer);
	while (r == -EUSERS && connection_make_room(c->server));
	if (r == 0)
		join_strangers(c);
	return r;
}

static void
connection_watch(struct http_connection *c)
{
	static const struct timeval stall = { .tv_sec = HTTP_STALL_S };
	size_t ahead = c->server->options.config->http.body_max + READ_AHEAD;
	const int on = 1;
	char name[32];

	/* The rest of an answer must not wait until the client has acknowledged the beginning. */
	if (!c->endpoint->by_socket)
		(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	xalloc_check(evbuffer_add_cb(connection_input_of(c), connection_on_input, c));
	xalloc_check(evbuffer_add_cb(connection_output_of(c), connection_on_output, c));
	if (c->endpoint->by_socket)
		watched_buffers(c->bev, connection_user(c, name));
	/* From here on, bytes that a client sends before its answer wait in its socket. */
	bufferevent_setwatermark(c->bev, EV_READ, 0, ahead);
	bufferevent_set_max_single_read(c->bev, READ_PER_TURN);
	bufferevent_set_max_single_write(c->bev, WRITE_PER_TURN);
	bufferevent_set_timeouts(c->bev, NULL, &stall);
	wait_for_request(c, HTTP_WAITS);
}

void
http_connection_adopt(struct http_connection *c)
{
	void *owner;
	int r;

	LIST_REMOVE(c, link);
	/* evhttp passes its connection to the callbacks of the buffers. There is no other way to
	 * learn it before the first request is complete. */
	bufferevent_getcb(c->bev, NULL, NULL, NULL, &owner);
	c->evcon = owner;
	c->fd = (int)bufferevent_getfd(c->bev);
	bufferevent_decref(c->bev);
	if (!owner || c->fd < 0) {
		free_connection(c);
		return;
	}
	connection_remember(c->server, c);
	c->clock = xalloc_check(evtimer_new(c->server->base, on_clock, c));
	evhttp_connection_set_closecb(c->evcon, on_close, c);
	r = c->server->draining ? -ESHUTDOWN : connection_admit(c);
	if (r < 0) {
		log_line(LOG_WARNING, "http-refused", "err=%s connections=%zu",
			 strerrorname_np(-r), c->server->peers.connections);
		http_connection_end(c, 503);
	} else {
		connection_watch(c);
	}
}
