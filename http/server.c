/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the listening sockets with their connections.
 *
 * evhttp accepts connections by itself, and reports them only when a whole request has arrived.
 * But it asks this file for the buffers of each new connection. So this file learns of a connection
 * then, and adopts it later in the same turn of the loop, when evhttp has completed it. */
#include "http/server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "base/loop.h"
#include "base/own.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "http/origin.h"
#include "http/param.h"
#include "http/parts.h"
#include "http/session.h"
#include "mcp/catalog.h"
#include "mcp/mcp.h"
#include "policy/config.h"

#define ACCEPTS_PER_TURN 16
#define EVERY_VERB 0xffff		/* unknown ones too: this server answers 405 itself */

/* ---- sockets ---- */

int
http_open_address(const char *text, bool open, int *fd_r, struct why *why_r)
{
	struct sockaddr_storage address;
	own_fd int fd = -1;
	const int on = 1;

	if (!http_address_read(text, &address))
		return why_say(why_r, -EINVAL, "http", "\"%.64s\" is not a numeric address and a "
			       "port such as 127.0.0.1:8080", text);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return why_say(why_r, -errno, "http", "%s: %s", text, strerror(errno));
	if (http_check_socket(fd, open, why_r) < 0)
		return -EPERM;
	*fd_r = give_fd(fd);
	return 0;
}

int
http_check_socket(int fd, bool open, struct why *why_r)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	own_mem char *text = NULL;

	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return why_say(why_r, -errno, "http", "%s", strerror(errno));
	if (address.ss_family == AF_UNIX || open || http_address_is_loopback(&address))
		return 0;
	text = http_address_text(&address, NULL);
	return why_say(why_r, -EPERM, "http", "%s can be reached from other machines, and clients "
		       "there would not have to authenticate: set up tokens in [auth], or force "
		       "it by insecure = yes in [http]", text);
}

/* ---- connections ---- */

static void
endpoint_pause(struct http_endpoint *endpoint, int error)
{
	evconnlistener_disable(endpoint->listener);
	accepting_pause(&endpoint->accepting, error);
}

static void
adopt_all(struct http_endpoint *endpoint)
{
	struct http_connection *c, *next;

	/* The oldest first, which is the last of the list: there are at most ACCEPTS_PER_TURN. */
	while ((c = LIST_FIRST(&endpoint->newborn))) {
		int fd;

		while ((next = LIST_NEXT(c, link)))
			c = next;
		fd = (int)bufferevent_getfd(c->bev);
		http_connection_adopt(c);
		if (endpoint->bound && accepting_is_reserved(&endpoint->accepting, fd) &&
		    !accepting_is_paused(&endpoint->accepting))
			endpoint_pause(endpoint, EMFILE);
	}
}

static void
server_on_adopt(evutil_socket_t, short, void *arg)
{
	struct http_endpoint *endpoint = arg;

	adopt_all(endpoint);
	if (endpoint->accepted >= ACCEPTS_PER_TURN && endpoint->bound &&
	    !accepting_is_paused(&endpoint->accepting))
		evconnlistener_enable(endpoint->listener);
	endpoint->accepted = 0;
}

/* evhttp asks for the buffers of a connection that it has just accepted. */
static struct bufferevent *
on_accepted(struct event_base *, void *arg)
{
	struct http_endpoint *endpoint = arg;
	struct http_connection *c = http_connection_new(endpoint);

	c->identity.on_known = http_request_serve_held;
	c->identity.arg = c;
	c->turn.on_turn = http_request_serve_in_turn;
	c->turn.arg = c;
	c->on_put = http_upload_take;
	event_active(endpoint->adopt, EV_TIMEOUT, 0);
	if (++endpoint->accepted >= ACCEPTS_PER_TURN)
		evconnlistener_disable(endpoint->listener);
	return c->bev;
}

static struct http_connection *
connection_of(struct http_endpoint *endpoint, struct evhttp_request *request)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(request);
	int fd = (int)bufferevent_getfd(evhttp_connection_get_bufferevent(evcon));

	adopt_all(endpoint);
	return fd >= 0 && (size_t)fd < endpoint->server->n_fds ? endpoint->server->by_fd[fd] : NULL;
}

static void
server_on_request(struct evhttp_request *request, void *arg)
{
	struct http_connection *c = connection_of(arg, request);

	if (!c)
		evhttp_connection_free(evhttp_request_get_connection(request));
	else if (c->state != HTTP_ENDS)
		http_request_serve(c, request);
}

/* ---- listening ---- */

/* Endpoints that accept connections. evhttp_bind_listener() replaces the argument of the listener's
 * callbacks by its struct evhttp, so on_accept_error has to look for its endpoint. */
static LIST_HEAD(, http_endpoint) accepting_endpoints = LIST_HEAD_INITIALIZER(accepting_endpoints);

static void
on_accept_error(struct evconnlistener *listener, void *)
{
	int error = errno;
	struct http_endpoint *endpoint;

	LIST_FOREACH(endpoint, &accepting_endpoints, link)
		if (endpoint->listener == listener)
			endpoint_pause(endpoint, error);
}

static void
server_on_resume(void *arg)
{
	struct http_endpoint *endpoint = arg;

	if (endpoint->bound)
		evconnlistener_enable(endpoint->listener);
}

int
http_server_listen(struct http_server *server, int fd, bool only_metrics)
{
	struct http_endpoint *endpoint = &server->endpoint[server->n_endpoints];
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	int r;
	const struct config *config;
	struct event_base *base;

	if (server->n_endpoints == HTTP_ENDPOINTS_MAX)
		return -E2BIG;
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	if (server->options.mcp->options.catalog->only_loopback && address.ss_family != AF_UNIX &&
	    !http_address_is_loopback(&address))
		return -EPERM;
	r = evutil_make_socket_nonblocking(fd);
	if (r < 0)
		return -EIO;
	endpoint->server = server;
	endpoint->only_metrics = only_metrics;
	LIST_INIT(&endpoint->newborn);
	endpoint->by_socket = address.ss_family == AF_UNIX;
	if (endpoint->by_socket)
		watched_refuse(fd);
	if (!endpoint->by_socket)
		free(http_address_text(&address, &endpoint->host));
	config = endpoint->server->options.config;
	base = endpoint->server->base;
	endpoint->http = xalloc_check(evhttp_new(base));
	endpoint->adopt = xalloc_check(evtimer_new(base, server_on_adopt, endpoint));
	accepting_init(&endpoint->accepting, base, server_on_resume, endpoint, true);
	evhttp_set_allowed_methods(endpoint->http, EVERY_VERB & ~EVHTTP_REQ_CONNECT);
	evhttp_set_default_content_type(endpoint->http, NULL);
	evhttp_set_max_headers_size(endpoint->http, HTTP_HEAD_MAX);
	evhttp_set_max_body_size(endpoint->http, (ev_ssize_t)config->http.body_max);
	evhttp_set_flags(endpoint->http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_bevcb(endpoint->http, on_accepted, endpoint);
	evhttp_set_gencb(endpoint->http, server_on_request, endpoint);
	server->n_endpoints++;
	/* A backlog of 0: the socket is listening already. */
	endpoint->listener = xalloc_check(evconnlistener_new(server->base, NULL, NULL,
				LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd));
	endpoint->bound = xalloc_check(evhttp_bind_listener(endpoint->http, endpoint->listener));
	LIST_INSERT_HEAD(&accepting_endpoints, endpoint, link);
	evconnlistener_set_error_cb(endpoint->listener, on_accept_error);
	return 0;
}

/* ---- the whole ---- */

struct http_server *
http_server_new(const struct http_server_options *options)
{
	struct http_server *server = xcalloc(1, sizeof(*server));
	const struct http_sessions_options sessions = {
		.loop = options->loop,
		.most = options->config->http.sessions_max,
		.most_each = options->config->http.sessions_per_tenant,
		.gate = options->gate,
		.idle_seconds = options->config->http.session_idle_seconds,
		.resume_seconds = options->config->http.resume_seconds,
	};

	server->options = *options;
	server->base = loop_base(options->loop);
	LIST_INIT(&server->connections);
	TAILQ_INIT(&server->strangers);
	server->tenants.engine = options->engine;
	server->sessions = http_sessions_new(&sessions);
	server->params = http_params_new(options->mcp);
	return server;
}

static void
server_stop_listening(struct http_endpoint *endpoint)
{
	if (endpoint->bound) {
		LIST_REMOVE(endpoint, link);
		evhttp_del_accept_socket(endpoint->http, endpoint->bound);
	}
	endpoint->bound = NULL;
	accepting_stop(&endpoint->accepting);
	adopt_all(endpoint);
}

void
http_server_drain(struct http_server *server)
{
	struct http_connection *c, *next;

	server->draining = true;
	for (size_t i = 0; i < server->n_endpoints; i++)
		server_stop_listening(&server->endpoint[i]);
	for (c = LIST_FIRST(&server->connections); c; c = next) {
		next = LIST_NEXT(c, link);
		http_connection_drain(c);
	}
}

size_t
http_server_count(const struct http_server *server)
{
	return server->peers.connections;
}

size_t
http_server_sessions(const struct http_server *server)
{
	return http_sessions_count(server->sessions);
}

void
http_server_on_empty(struct http_server *server, void (*on_empty)(void *arg), void *arg)
{
	server->on_empty = on_empty;
	server->arg = arg;
}

void
http_server_free(struct http_server *server)
{
	if (!server)
		return;
	server->freeing = server->draining = true;
	for (size_t i = 0; i < server->n_endpoints; i++) {
		struct http_endpoint *endpoint = &server->endpoint[i];

		server_stop_listening(endpoint);
		evhttp_free(endpoint->http);
		event_free(endpoint->adopt);
		accepting_free(&endpoint->accepting);
		free(endpoint->host);
	}
	loop_free_now(server->options.loop);	/* exchanges use sessions */
	http_sessions_free(server->sessions);
	http_params_free(server->params);
	free(server->by_fd);
	free(server);
}
