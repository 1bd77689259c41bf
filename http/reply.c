/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing beyond a call.
 * Writes answers that are complete at once. */
#include "http/reply.h"

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/jsonout.h"
#include "base/xalloc.h"
#include "http/parts.h"
#include "mcp/jsonrpc.h"

static void
reply_free_text(const void *text, size_t, void *)
{
	free((void *)text);
}

void
http_reply_header(struct evhttp_request *request, const char *name, const char *value)
{
	xassert(evhttp_add_header(evhttp_request_get_output_headers(request), name, value) == 0);
}

void
http_reply_text(struct http_connection *c, struct evhttp_request *request, int status,
	   const char *type, char *text, size_t len)
{
	struct evbuffer *body = NULL;

	if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
		free(text);
	} else if (text) {
		http_reply_header(request, "Content-Type", type);
		body = xalloc_check(evbuffer_new());
		xassert(evbuffer_add_reference(body, text, len, reply_free_text, NULL) == 0);
	}
	if (c->server->draining)
		http_reply_header(request, "Connection", "close");
	http_connection_flushes(c, request);
	evhttp_send_reply(request, status, NULL, body);
	if (body)
		evbuffer_free(body);
}

void
http_reply(struct http_connection *c, struct evhttp_request *request, int status,
	   struct jsonout *json)
{
	size_t len = json ? json->len : 0;

	http_reply_text(c, request, status, "application/json", json ? jsonout_take(json) : NULL,
			len);
}

void
http_reply_error(struct http_connection *c, struct evhttp_request *request,
		 const struct http_error *error)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_write_error(&out, error->id, error->code, error->text, error->data);
	http_reply(c, request, error->status, &out);
	jsonout_done(&out);
}
