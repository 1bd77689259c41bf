/* Runs in: the supervisor.   Owns: the listening sockets, and all that hangs on them.
 *
 * evhttp accepts connections by itself and tells of them only when a whole request is there.
 * What is made for each new one, its buffers, comes from us; so we hear of it, and look after
 * it later in the same turn of the loop, when evhttp has put it together. */
#include "http/parts.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/own.h"
#include "base/watched.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "http/origin.h"
#include "http/param.h"
#include "http/session.h"
#include "mcp/catalog.h"
#include "mcp/mcp.h"
#include "policy/config.h"

#define ACCEPTS_PER_TURN 16
#define BACK_OFF_MS 250
#define EVERY_VERB 0xffff		/* unknown ones too: 405 is said by us */

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
	return why_say(why_r, -EPERM, "http", "%s can be reached from other machines, and nobody "
		       "there would have to say who they are: set up tokens in [auth], or force "
		       "it by insecure = yes in [http]", text);
}

/* ---- connections ---- */

static void
adopt_all(struct http_place *place)
{
	struct http_connection *c;

	while ((c = LIST_FIRST(&place->newborn)))
		http_connection_adopt(c);
}

static void
on_adopt(evutil_socket_t fd, short what, void *arg)
{
	struct http_place *place = arg;

	(void)fd;
	(void)what;
	adopt_all(place);
	if (place->accepted >= ACCEPTS_PER_TURN && place->bound)
		evconnlistener_enable(place->listener);
	place->accepted = 0;
}

/* evhttp wants the buffers of a connection that it has just accepted. */
static struct bufferevent *
on_accepted(struct event_base *base, void *arg)
{
	struct http_place *place = arg;
	struct http_connection *c = http_connection_new(place);

	(void)base;
	event_active(place->adopt, EV_TIMEOUT, 0);
	if (++place->accepted >= ACCEPTS_PER_TURN)
		evconnlistener_disable(place->listener);
	return c->bev;
}

static struct http_connection *
connection_of(struct http_place *place, struct evhttp_request *request)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(request);
	int fd = (int)bufferevent_getfd(evhttp_connection_get_bufferevent(evcon));

	adopt_all(place);
	return fd >= 0 && (size_t)fd < place->server->n_fds ? place->server->by_fd[fd] : NULL;
}

static void
on_request(struct evhttp_request *request, void *arg)
{
	struct http_connection *c = connection_of(arg, request);

	if (!c)
		evhttp_connection_free(evhttp_request_get_connection(request));
	else if (c->state != HTTP_ENDS)
		http_request_serve(c, request);
}

/* ---- listening ---- */

/* Mostly descriptors or memory are short: it would come at once again. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	static const struct timeval wait = { .tv_usec = BACK_OFF_MS * 1000 };
	struct http_place *place = ((struct http_server *)arg)->place;

	log_line(LOG_WARNING, "accept-waits", "err=%s", strerrorname_np(errno));
	while (place->listener != listener)
		place++;
	evconnlistener_disable(listener);
	evtimer_add(place->again, &wait);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct http_place *place = arg;

	(void)fd;
	(void)what;
	if (place->bound)
		evconnlistener_enable(place->listener);
}

static void
set_up(struct http_place *place)
{
	const struct config *config = place->server->options.config;
	struct event_base *base = place->server->base;

	place->http = xalloc_check(evhttp_new(base));
	place->adopt = xalloc_check(evtimer_new(base, on_adopt, place));
	place->again = xalloc_check(evtimer_new(base, on_again, place));
	evhttp_set_allowed_methods(place->http, EVERY_VERB & ~EVHTTP_REQ_CONNECT);
	evhttp_set_default_content_type(place->http, NULL);
	evhttp_set_max_headers_size(place->http, HTTP_HEAD_MAX);
	evhttp_set_max_body_size(place->http, (ev_ssize_t)config->http.body_max);
	evhttp_set_flags(place->http, EVHTTP_SERVER_LINGERING_CLOSE);
	evhttp_set_bevcb(place->http, on_accepted, place);
	evhttp_set_gencb(place->http, on_request, place);
}

int
http_server_listen(struct http_server *server, int fd)
{
	struct http_place *place = &server->place[server->n_places];
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	int r;

	if (server->n_places == HTTP_PLACES_MAX)
		return -E2BIG;
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	if (mcp_catalog(server->options.mcp)->only_loopback && address.ss_family != AF_UNIX &&
	    !http_address_is_loopback(&address))
		return -EPERM;
	r = evutil_make_socket_nonblocking(fd);
	if (r < 0)
		return -EIO;
	place->server = server;
	LIST_INIT(&place->newborn);
	place->by_socket = address.ss_family == AF_UNIX;
	if (place->by_socket)
		watched_refuse(fd);
	if (!place->by_socket)
		free(http_address_text(&address, &place->host));
	set_up(place);
	server->n_places++;
	/* It is listening already: hence the 0. */
	place->listener = xalloc_check(evconnlistener_new(server->base, NULL, NULL,
				LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd));
	place->bound = xalloc_check(evhttp_bind_listener(place->http, place->listener));
	evconnlistener_set_error_cb(place->listener, on_accept_error);
	return 0;
}

int
http_server_listen_metrics(struct http_server *server, int fd,
			   char *(*write)(void *arg, size_t *len_r), void *arg)
{
	int r = http_server_listen(server, fd);

	if (r < 0)
		return r;
	server->place[server->n_places - 1].write_metrics = write;
	server->place[server->n_places - 1].write_metrics_arg = arg;
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
	LIST_INIT(&server->peers.list);
	LIST_INIT(&server->tenants.list);
	server->tenants.engine = options->engine;
	server->sessions = http_sessions_new(&sessions);
	server->params = http_params_new(options->mcp);
	return server;
}

static void
stop_listening(struct http_place *place)
{
	if (place->bound)
		evhttp_del_accept_socket(place->http, place->bound);
	place->bound = NULL;
	event_del(place->again);
	adopt_all(place);
}

void
http_server_drain(struct http_server *server)
{
	struct http_connection *c, *next;

	server->draining = true;
	for (size_t i = 0; i < server->n_places; i++)
		stop_listening(&server->place[i]);
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
	for (size_t i = 0; i < server->n_places; i++) {
		struct http_place *place = &server->place[i];

		stop_listening(place);
		evhttp_free(place->http);
		event_free(place->adopt);
		event_free(place->again);
		free(place->host);
	}
	loop_free_now(server->options.loop);	/* exchanges use sessions */
	http_sessions_free(server->sessions);
	http_params_free(server->params);
	free(server->by_fd);
	free(server);
}
