/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a file that is being sent by a link.
 * Reads:   only the header Range; the bytes of the file are passed on.
 *
 * The file helper reads a part of the file into a pipe, and the next part when the client has
 * received this one. So a slow client costs the memory of one part, and occupies no job of the
 * helper. */
#include "http/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include "auth/auth.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/gate.h"
#include "host/filestore.h"
#include "http/range.h"
#include "http/reply.h"
#include "tools/shared/links.h"
#include "tools/shared/media.h"
#include "tools/shared/resources.h"

#define PART (1024 * 1024)	/* bytes */
#define PART_S 60		/* that the helper may take for one */
#define READ_MAX (64 * 1024)	/* bytes of a turn of the loop */

struct http_download {
	struct http_connection *connection;
	struct evhttp_request *request;
	struct http_tenant *tenant;	/* held */
	char *uri;
	unsigned char sha256[FILESTORE_SHA256];
	uint64_t link;			/* the number of the tenant in the link */
	uint64_t offset, left;		/* of the file, after the part that was read */
	size_t part_left;		/* of the part that the helper writes */
	struct filestore_job *job;	/* NULL: none runs */
	int fd;				/* -1: none */
	bool broken;			/* its connection is about to be closed */
	struct event *readable;
};

/* Closes the pipe. */
static void
end_part(struct http_download *d)
{
	if (d->readable)
		event_free(d->readable);
	if (d->fd >= 0)
		close(d->fd);
	d->readable = NULL;
	d->fd = -1;
}

void
http_download_lost(struct http_download *d)
{
	if (d->job)
		filestore_cancel(d->job);
	end_part(d);
	http_tenant_let_go(d->tenant);
	free(d->uri);
	free(d);
}

/* The client has fewer bytes than it was promised, and sees that by the end of the connection. */
static void
break_off(struct http_download *d)
{
	d->broken = true;
	end_part(d);
	http_connection_end(d->connection, 0);
}

static void next_part(struct http_download *d);

/* The client has taken all that was sent. */
static void
on_drained(struct evhttp_connection *, void *arg)
{
	struct http_download *d = arg;

	if (!d->job && d->fd < 0 && !d->broken)
		next_part(d);
}

static void
download_on_readable(evutil_socket_t fd, short, void *arg)
{
	struct http_download *d = arg;
	struct evbuffer *chunk = xalloc_check(evbuffer_new());
	size_t most = d->part_left < READ_MAX ? d->part_left : READ_MAX;
	int n = evbuffer_read(chunk, fd, (int)most);

	if (n > 0) {
		d->part_left -= (size_t)n;
		d->left -= (size_t)n;
		d->offset += (size_t)n;
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		break_off(d);
	} else if (n > 0 && d->part_left > 0) {
		evhttp_send_reply_chunk(d->request, chunk);
	} else if (n > 0) {
		end_part(d);
		evhttp_send_reply_chunk_with_cb(d->request, chunk, on_drained, d);
	}
	evbuffer_free(chunk);
}

static void
download_on_begin(void *arg, int fd)
{
	struct http_download *d = arg;

	d->fd = fd;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	d->readable = xalloc_check(event_new(d->connection->server->base, fd,
					     EV_READ | EV_PERSIST, download_on_readable, d));
	event_add(d->readable, NULL);
}

/* The file helper has ended the job. Bytes that it wrote before may still be in the pipe. */
static void
download_on_end(void *arg, int error)
{
	struct http_download *d = arg;

	d->job = NULL;
	if (error < 0)
		break_off(d);
	else if (d->fd < 0 && !d->broken && http_connection_unsent(d->connection) == 0)
		next_part(d);
}

/* Ends the links of revoked tokens. */
static void
end_revoked(const struct http_server *server)
{
	if (server->options.auth)
		auth_keep_up(server->options.auth);
}

static void
next_part(struct http_download *d)
{
	const struct filestore_calls calls = { .begin = download_on_begin,
					       .end = download_on_end,
					       .arg = d };
	struct filestore *store = tenant_filestore(d->tenant->tenant);
	struct filestore_file file;

	if (d->left == 0) {
		struct http_connection *c = d->connection;
		struct evhttp_request *request = d->request;

		c->download = NULL;
		http_download_lost(d);
		http_connection_flushes(c, request);
		evhttp_send_reply_end(request);
		return;
	}
	end_revoked(d->connection->server);
	/* Another file at the same address is not the rest of this one. */
	if (!link_holds(d->link) || !filestore_find(store, d->tenant->principal, d->uri, &file) ||
	    memcmp(file.sha256, d->sha256, sizeof(d->sha256)) != 0) {
		break_off(d);
		return;
	}
	d->part_left = d->left < PART ? (size_t)d->left : PART;
	d->job = filestore_fetch(store, d->tenant->principal, d->uri, d->offset, d->part_left,
				 PART_S, &calls);
}

/* ---- its head ---- */

/* The file that a link leads to. */
struct found {
	const void *data;		/* NULL: it is on disk */
	struct filestore_file file;	/* size and path are of both */
	char name[1024];
};

static bool
download_find(const struct http_tenant *tenant, const char *uri, struct found *found_r)
{
	struct filestore *store = tenant_filestore(tenant->tenant);
	const char *path = strchr(uri + strlen(FILE_URI_SCHEME), '/');
	size_t len;

	*found_r = (struct found){ .data = NULL };
	if (!path)
		return false;
	/* As the address has it: escaped. */
	snprintf(found_r->name, sizeof(found_r->name), "%s", strrchr(path, '/') + 1);
	if (resources_find(tenant->tenant, uri, &found_r->data, &len)) {
		found_r->file.size = len;
		return true;
	}
	return store && filestore_find(store, tenant->principal, uri, &found_r->file);
}

/* The file is hostile: a browser must save it, and not run any part of it. */
static void
write_head(struct evhttp_request *request, const struct found *found, uint64_t len)
{
	char text[sizeof(found->name) + 64];

	snprintf(text, sizeof(text), "attachment; filename*=UTF-8''%s", found->name);
	http_reply_header(request, "Content-Disposition", text);
	http_reply_header(request, "Content-Type", media_of_path(found->name,
								  strlen(found->name)));
	http_reply_header(request, "X-Content-Type-Options", "nosniff");
	http_reply_header(request, "Content-Security-Policy", "sandbox; default-src 'none'");
	http_reply_header(request, "Referrer-Policy", "no-referrer");
	http_reply_header(request, "Cache-Control", "private, no-store");
	http_reply_header(request, "Accept-Ranges", "bytes");
	snprintf(text, sizeof(text), "%" PRIu64, len);
	http_reply_header(request, "Content-Length", text);
}

static void
write_range(struct evhttp_request *request, int status, uint64_t offset, uint64_t len,
	    uint64_t size)
{
	char text[96];

	if (status == 206)
		snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, offset,
			 offset + len - 1, size);
	else
		snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
	if (status != 200)
		http_reply_header(request, "Content-Range", text);
}

static void
download_start(struct http_connection *c, struct evhttp_request *request,
	       struct http_tenant *tenant, const struct link *link, const struct found *found,
	       uint64_t offset, uint64_t len)
{
	struct http_download *d = xcalloc(1, sizeof(*d));

	*d = (struct http_download){ .connection = c, .request = request, .tenant = tenant,
				     .uri = xstrdup(link->uri), .link = link->tenant,
				     .offset = offset, .left = len, .fd = -1 };
	memcpy(d->sha256, found->file.sha256, sizeof(d->sha256));
	http_tenant_hold(tenant);
	(void)http_connection_take(c, tenant);	/* it is nobody's no more */
	c->download = d;
	next_part(d);
}

static void
serve_found(struct http_connection *c, struct evhttp_request *request,
	    struct http_tenant *tenant, const struct link *link, const struct found *found)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	/* There is no ETag, so If-Range always names another file. */
	const char *range = evhttp_find_header(headers, "If-Range")
		? NULL : evhttp_find_header(headers, "Range");
	const uint64_t size = found->file.size;
	uint64_t offset, len;
	int status = http_range(range, size, &offset, &len);
	bool has_body = evhttp_request_get_command(request) == EVHTTP_REQ_GET && status != 416;

	if (status == 416)
		len = 0;
	write_head(request, found, len);
	write_range(request, status, offset, len, size);
	if (c->server->draining)
		http_reply_header(request, "Connection", "close");
	evhttp_send_reply_start(request, status, NULL);
	if (has_body && !found->data) {
		download_start(c, request, tenant, link, found, offset, len);
	} else if (has_body) {
		struct evbuffer *chunk = xalloc_check(evbuffer_new());

		evbuffer_add(chunk, (const char *)found->data + offset, (size_t)len);
		evhttp_send_reply_chunk(request, chunk);
		evbuffer_free(chunk);
		http_connection_flushes(c, request);
		evhttp_send_reply_end(request);
	} else {
		http_connection_flushes(c, request);
		evhttp_send_reply_end(request);
	}
}

bool
http_link_read(const struct http_server *server, const char *path, struct link *link_r)
{
	struct gate *gate = server->options.gate;

	end_revoked(server);
	if (!link_read(path, link_r))
		return false;
	/* A tenant can ask for links while it is suspended. */
	if (!gate || !gate_is_suspended(gate, link_r->principal))
		return true;
	free(link_r->uri);
	return false;
}

bool
http_download_serve(struct http_connection *c, struct evhttp_request *request, const char *path)
{
	struct http_tenant *tenant;
	struct found found;
	struct link link;
	bool is_there;

	if (!http_link_read(c->server, path, &link))
		return false;
	tenant = http_tenant_find(&c->server->tenants, link.principal);
	is_there = download_find(tenant, link.uri, &found);
	if (is_there)
		serve_found(c, request, tenant, &link, &found);
	http_tenant_let_go(tenant);
	free(link.uri);
	return is_there;
}
