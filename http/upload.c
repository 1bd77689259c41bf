/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a file that comes in by a signed link.
 * Reads:   the head of a request of any client; the bytes behind it are passed on.
 *
 * evhttp collects a whole body in memory before it reports the request. So this file takes a
 * connection over at the first bytes of an upload: it replaces the callbacks of the buffers, and
 * passes a file of any size on into the pipe of the file helper. evhttp still owns the connection,
 * has not seen the request, and frees the connection at the end: no other request can follow on it.
 */
#include "http/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "base/hex.h"
#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/file_uri.h"
#include "engine/upload.h"
#include "host/filestore.h"
#include "http/origin.h"
#include "policy/config.h"
#include "tools/shared/links.h"

#define WAITING_MAX (256 * 1024)	/* bytes that the pipe has not taken */
#define PASS_MAX (64 * 1024)		/* bytes of a turn of the loop */
#define IDLE_S 30			/* without a byte of the client: it has gone */
#define LINGER_S 5			/* for a client to stop writing behind the answer */
#define VERB "PUT "

/* HEAD ──link is right──> WAITS ──room──> PASSES ──all bytes──> ENDS ──kept──> SAYS
 *   any of them ──refusal, error──> SAYS ──said──> the connection ends */
enum upload_state { HEAD, WAITS, PASSES, ENDS, SAYS };

struct http_upload {
	struct http_connection *connection;
	struct http_tenant *tenant;	/* held; NULL: not known yet */
	struct upload *upload;		/* NULL: none, or it has ended */
	enum upload_state state;
	bool expects;			/* it waits for 100 before it sends the body */
	int pipe;			/* -1: none */
	struct event *writable;
	uint64_t size, left;
	bool is_whole;			/* nothing of the request is to come */
	struct event *linger;		/* ends the connection; NULL: not yet */
};

static struct evbuffer *
upload_input_of(const struct http_upload *u)
{
	return bufferevent_get_input(u->connection->bev);
}

static void
close_pipe(struct http_upload *u)
{
	if (u->writable)
		event_free(u->writable);
	if (u->pipe >= 0)
		close(u->pipe);
	u->writable = NULL;
	u->pipe = -1;
}

static void
upload_lost(struct http_upload *u)
{
	upload_cancel(u->upload);
	close_pipe(u);
	if (u->linger)
		event_free(u->linger);
	if (u->tenant)
		http_tenant_let_go(u->tenant);
	free(u);
}

/* ---- the answer ---- */

static const char *
upload_reason_of(int status)
{
	switch (status) {
	case 201:
		return "Created";
	case 404:
		return "Not Found";
	case 408:
		return "Request Timeout";
	case 413:
		return "Content Too Large";
	case 507:
		return "Insufficient Storage";
	default:
		return "Bad Request";
	}
}

/* Takes body. What the client still writes is discarded, or it would lose the answer. */
static void
upload_say(struct http_upload *u, int status, struct jsonout *body)
{
	struct bufferevent *bev = u->connection->bev;
	struct evbuffer *output = bufferevent_get_output(bev);

	close_pipe(u);
	u->state = SAYS;
	jsonout_close(body, '}');
	evbuffer_add_printf(output, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
			    "Content-Length: %zu\r\nConnection: close\r\n\r\n", status,
			    upload_reason_of(status), body->len);
	evbuffer_add(output, body->at, body->len);
	jsonout_done(body);
	evbuffer_drain(upload_input_of(u), evbuffer_get_length(upload_input_of(u)));
	http_connection_serves(u->connection, 0);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void
upload_refuse(struct http_upload *u, int status, const char *why)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "error", why);
	upload_say(u, status, &out);
}

static int
upload_status_of(int error)
{
	switch (error) {
	case -EFBIG:
		return 413;
	case -ETIMEDOUT:
		return 408;
	case -ESTALE:
		return 400;
	default:
		return 507;
	}
}

static void
upload_on_end(void *arg, const struct upload_end *end)
{
	struct http_upload *u = arg;
	char sha256[2 * FILESTORE_SHA256 + 1];
	struct jsonout out;

	u->upload = NULL;
	if (end->error < 0) {
		upload_refuse(u, upload_status_of(end->error), end->why);
		return;
	}
	hex_write(end->sha256, FILESTORE_SHA256, sha256);
	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "uri", end->uri);
	jsonout_member_uint(&out, "size", u->size);
	jsonout_member_text(&out, "sha256", sha256);
	upload_say(u, 201, &out);
}

/* ---- the bytes ---- */

/* Passes on the available bytes, or as many as one turn may. */
static void
upload_pass_on(struct http_upload *u)
{
	struct evbuffer *input = upload_input_of(u);
	size_t len = evbuffer_get_length(input);
	int n;

	len = len < u->left ? len : (size_t)u->left;
	if (len == 0)
		return;
	n = evbuffer_write_atmost(input, u->pipe, len < PASS_MAX ? (ev_ssize_t)len : PASS_MAX);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/* The helper says why, or has ended. */
		u->state = ENDS;
		close_pipe(u);
		return;
	}
	u->left -= n > 0 ? (uint64_t)n : 0;
	http_connection_serves(u->connection, 0);
	if (u->left == 0) {
		u->state = ENDS;
		u->is_whole = true;
		bufferevent_disable(u->connection->bev, EV_READ);
		close_pipe(u);
	} else if (n < (int)len) {
		event_add(u->writable, NULL);
	}
}

static void
on_pipe_writable(evutil_socket_t, short, void *arg)
{
	upload_pass_on(arg);
}

static void
upload_on_begin(void *arg, int fd)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct http_upload *u = arg;
	struct bufferevent *bev = u->connection->bev;

	u->pipe = fd;
	u->state = PASSES;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	u->writable = xalloc_check(event_new(u->connection->server->base, fd, EV_WRITE,
					     on_pipe_writable, u));
	event_add(u->writable, NULL);
	if (u->expects)
		evbuffer_add(bufferevent_get_output(bev), go_on, strlen(go_on));
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* ---- its head ---- */

/* Cuts the next line off. NULL: there is none. */
static char *
upload_next_line(char **at)
{
	char *line = *at, *end = line ? strstr(line, "\r\n") : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 2;
	return line;
}

/* Splits text; the values in the list are copies. False: it is not a head. */
static bool
read_headers(char *text, struct evkeyvalq *headers)
{
	char *line;

	while ((line = upload_next_line(&text)) && *line) {
		char *value = strchr(line, ':');

		if (!value || value == line)
			return false;
		*value++ = '\0';
		if (evhttp_add_header(headers, line, value + strspn(value, " \t")) < 0)
			return false;
	}
	return true;
}

static bool
upload_is_of_ours(const struct http_connection *c, const struct http_head *head)
{
	const struct config *config = c->server->options.config;
	const char *host = head->value[HTTP_HOST], *origin = head->value[HTTP_ORIGIN];

	return (!origin || http_origin_is_allowed(origin, &config->http.origins)) && host &&
	       http_host_is_ours(host, c->endpoint->host, &config->http.hosts);
}

/* The file that the link is for. False: it is not a link for an upload. */
static bool
open_link(struct http_upload *u, const char *path)
{
	static const char prefix[] = FILE_URI_SCHEME UPLOAD_LINKS;
	const struct upload_calls calls = { upload_on_begin, upload_on_end, u };
	struct http_connection *c = u->connection;
	const char *why;
	struct link link;
	bool is_upload;

	if (!http_link_read(c->server, path, &link))
		return false;
	is_upload = strncmp(link.uri, prefix, strlen(prefix)) == 0;
	if (is_upload) {
		u->tenant = http_tenant_find(&c->server->tenants, link.principal);
		(void)http_connection_take(c, u->tenant);	/* it is nobody's no more */
		u->state = WAITS;
		bufferevent_disable(c->bev, EV_READ);
		u->upload = upload_new_at(u->tenant->tenant, link.uri + strlen(prefix), u->size,
					  &calls, &why);
		if (!u->upload)
			upload_refuse(u, 400, why);
	}
	free(link.uri);
	return is_upload;
}

static void
upload_serve(struct http_upload *u, const char *path, const struct evkeyvalq *headers)
{
	const char *expect = evhttp_find_header(headers, "Expect"), *wrong, *length;
	struct http_head head;

	wrong = http_head_read(headers, &head);
	length = head.value[HTTP_CONTENT_LENGTH];
	u->expects = expect && evutil_ascii_strcasecmp(expect, "100-continue") == 0;
	if (wrong) {
		upload_refuse(u, 400, wrong);
	} else if (!length || head.value[HTTP_TRANSFER_ENCODING]) {
		upload_refuse(u, 411, "the header Content-Length is required");
	} else if (!upload_is_of_ours(u->connection, &head)) {
		upload_refuse(u, 403, "this Host or Origin is not allowed");
	} else {
		u->size = u->left = strtoull(length, NULL, 10);
		if (!open_link(u, path))
			upload_refuse(u, 404, "this is no link for an upload, or it has expired");
	}
}

/* text: the whole head. */
static void
upload_take_head(struct http_upload *u, char *text)
{
	struct evkeyvalq headers;
	char *rest = text, *line = upload_next_line(&rest);
	char *path = line ? line + strlen(VERB) : NULL, *version = path ? strchr(path, ' ') : NULL;

	TAILQ_INIT(&headers);
	if (!version || (strcmp(version, " HTTP/1.1") != 0 && strcmp(version, " HTTP/1.0") != 0) ||
	    !read_headers(rest, &headers)) {
		upload_refuse(u, 400, "this is no request");
	} else {
		*version = '\0';
		upload_serve(u, path, &headers);
	}
	evhttp_clear_headers(&headers);
}

static void
look_for_head(struct http_upload *u)
{
	struct evbuffer *input = upload_input_of(u);
	struct evbuffer_ptr end = evbuffer_search(input, "\r\n\r\n", 4, NULL);
	struct http_framing framing = { 0 };
	own_mem char *text = NULL;
	const char *wrong;
	size_t len;

	if (end.pos < 0 || end.pos > HTTP_HEAD_MAX) {
		if (evbuffer_get_length(input) > HTTP_HEAD_MAX)
			upload_refuse(u, 431, "the head of the request is too long");
		return;
	}
	len = (size_t)end.pos + 4;
	text = xcalloc(1, len + 1);
	evbuffer_remove(input, text, len);
	http_connection_serves(u->connection, 0);
	wrong = http_framing_take(&framing, text, len);
	if (wrong || strlen(text) < len)
		upload_refuse(u, 400, wrong ? wrong : "the head of the request has a NUL");
	else
		upload_take_head(u, text);
}

/* ---- the connection ---- */

static void
upload_on_read(struct bufferevent *, void *arg)
{
	struct http_upload *u = arg;

	if (u->state == HEAD)
		look_for_head(u);
	else if (u->state == PASSES)
		upload_pass_on(u);
	else if (u->state == SAYS)
		evbuffer_drain(upload_input_of(u), evbuffer_get_length(upload_input_of(u)));
}

static void
on_linger(evutil_socket_t, short, void *arg)
{
	const struct http_upload *u = arg;

	http_connection_end(u->connection, 0);
}

/* The answer was sent. If the whole request has arrived, the connection is closed at once.
 * Otherwise its writing side is closed now, and the connection after LINGER_S. */
static void
upload_on_written(struct bufferevent *bev, void *arg)
{
	static const struct timeval linger = { .tv_sec = LINGER_S };
	struct http_upload *u = arg;

	if (u->state != SAYS || u->linger)
		return;
	if (u->is_whole || shutdown(bufferevent_getfd(bev), SHUT_WR) < 0) {
		http_connection_end(u->connection, 0);
		return;
	}
	u->linger = xalloc_check(evtimer_new(u->connection->server->base, on_linger, u));
	evtimer_add(u->linger, &linger);
}

/* A client may close its writing side after it has sent everything. */
static void
upload_on_event(struct bufferevent *, short what, void *arg)
{
	const struct http_upload *u = arg;

	if (!(what & BEV_EVENT_EOF) || u->state != PASSES ||
	    evbuffer_get_length(upload_input_of(u)) < u->left)
		http_connection_end(u->connection, 0);
}

void
http_upload_take(struct http_connection *c)
{
	static const struct timeval idle = { .tv_sec = IDLE_S };
	struct http_upload *u = xcalloc(1, sizeof(*u));

	u->connection = c;
	u->pipe = -1;
	c->upload = u;
	c->upload_lost = upload_lost;
	bufferevent_setcb(c->bev, upload_on_read, upload_on_written, upload_on_event, u);
	bufferevent_setwatermark(c->bev, EV_READ, 0, WAITING_MAX);
	bufferevent_set_max_single_read(c->bev, PASS_MAX);
	bufferevent_set_timeouts(c->bev, &idle, &idle);
}
