/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing beyond a call.
 * Reads:   requests of clients, split into lines and body by evhttp, otherwise hostile. */
#include "http/parts.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <jansson.h>

#include "base/jsonout.h"
#include "base/log.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "auth/auth.h"
#include "engine/engine.h"
#include "govern/gate.h"
#include "govern/openmetrics.h"
#include "host/helper.h"
#include "http/ladder.h"
#include "http/origin.h"
#include "http/param.h"
#include "http/replay.h"
#include "http/reply.h"
#include "http/session.h"
#include "mcp/jsonrpc.h"
#include "mcp/revision.h"
#include "policy/config.h"
#include "policy/rules.h"
#include "tools/shared/links.h"
#include "tools/toolsets.h"

#define ALLOWED "POST, DELETE"		/* and GET, in a session */

struct served {
	struct http_connection *c;
	struct evhttp_request *request;
	struct http_head head;
	struct http_tenant *tenant;	/* held during the examination */
};

/* ---- answers ---- */

static void
reply_error(const struct served *s, int status, int code, const char *text, const char *id,
	    const char *data)
{
	const struct http_error error = { .status = status, .code = code, .text = text, .id = id,
					  .data = data };

	http_reply_error(s->c, s->request, &error);
}

static void
request_refuse(const struct served *s, int status, const char *text)
{
	reply_error(s, status, JSONRPC_INVALID_REQUEST, text, NULL, NULL);
}

static void
request_refuse_connection(const struct served *s)
{
	log_line(LOG_WARNING, "http-refused", "tenant=%s why=has-its-share", s->tenant->principal);
	http_reply_header(s->request, "Connection", "close");
	http_reply_header(s->request, "Retry-After", "1");
	request_refuse(s, 503, "too many connections of this user");
}

static void
reply_verdict(const struct served *s, const struct http_verdict *verdict)
{
	own_mem char *text = verdict->requested ? revision_unsupported(verdict->requested) : NULL;

	reply_error(s, verdict->status, verdict->code, verdict->text, verdict->id, text);
}

/* ---- sessions ---- */

/* The session that the request names; NULL: there is none, and the request was answered. */
static struct http_session *
request_find_session(const struct served *s)
{
	const char *id = s->head.value[HTTP_SESSION];
	struct http_session *session;

	if (!id) {
		request_refuse(s, 400, "the header Mcp-Session-Id is required: send initialize first");
		return NULL;
	}
	session = http_session_find(s->c->server->sessions, id, s->tenant);
	if (!session)
		request_refuse(s, 404, "there is no such session: send initialize again");
	return session;
}

static void
serve_delete(const struct served *s)
{
	struct http_session *session = request_find_session(s);
	struct http_connection *c;

	if (!session)
		return;
	LIST_FOREACH(c, &s->c->server->connections, link)
		if (c->exchange && http_exchange_session(c->exchange) == session)
			http_exchange_abandon(c->exchange);
	http_session_close(session, "client");
	http_reply(s->c, s->request, 204, NULL);
}

/* Serves a stream of the session itself, or resumes one. */
static void
serve_get(const struct served *s)
{
	const char *version = s->head.value[HTTP_VERSION];
	const char *event_id = s->head.value[HTTP_LAST_EVENT];
	struct http_exchange_options options = {
		.connection = s->c, .request = s->request, .tenant = s->tenant,
		.takes_stream = true,
	};
	struct http_replay *replay;
	uint64_t number;

	options.session = request_find_session(s);
	if (!options.session)
		return;
	if (version && !revision_is_legacy(version)) {
		request_refuse(s, 400, "the header MCP-Protocol-Version names no version with sessions");
	} else if (!s->head.takes_stream || s->request->minor < 1) {
		request_refuse(s, 406, "Accept must have text/event-stream");
	} else if (!event_id) {
		http_exchange_listen(&options);
	} else {
		replay = http_replay_find(&options.session->replays, event_id,
					  &number);
		if (replay)
			http_exchange_resume(&options, replay, number);
		else
			request_refuse(s, 400, "what came after this Last-Event-ID is not kept, or not any "
				       "more");
	}
}

/* ---- POST ---- */

/* The revision for a legacy message without a session, where a set of tools replaces a server whose
 * clients may send calls without a handshake. NULL: the message needs a session. */
static const struct revision *
alone_in(const struct served *s)
{
	const char *version = s->head.value[HTTP_VERSION];

	if (s->head.value[HTTP_SESSION] ||
	    !toolsets_wants(s->c->server->options.config, "run-python"))
		return NULL;
	return revision_negotiate(version ? version : "");
}

/* The last check of the ladder: do the headers Mcp-Param agree with the arguments that they repeat?
 */
static bool
params_agree(const struct served *s, const struct jsonrpc_message *message)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(s->request);
	const char *wrong;

	if (method_find(message->method) != METHOD_TOOLS_CALL)
		return true;
	wrong = http_params_mismatch(s->c->server->params, message->params, headers);
	if (wrong)
		reply_error(s, 400, HTTP_HEADER_MISMATCH, wrong, message->id.raw, NULL);
	return !wrong;
}

static void
serve_way(const struct served *s, const struct http_verdict *verdict,
	  struct jsonrpc_line *line, size_t bytes)
{
	struct http_exchange_options options = {
		.connection = s->c, .request = s->request, .tenant = s->tenant,
		/* a client of HTTP/1.0 cannot tell where a stream ends */
		.takes_stream = s->head.takes_stream && s->request->minor >= 1,
	};

	switch (verdict->way) {
	case HTTP_WAY_REFUSE:
		reply_verdict(s, verdict);
		return;
	case HTTP_WAY_ACCEPT:
		http_reply(s->c, s->request, 202, NULL);
		return;
	case HTTP_WAY_SESSION:
		options.alone = alone_in(s);
		if (!options.alone && !(options.session = request_find_session(s)))
			return;
		break;
	case HTTP_WAY_MODERN:
		if (!params_agree(s, &line->message[0]))
			return;
		options.modern = true;
		break;
	case HTTP_WAY_INITIALIZE:
		break;
	}
	http_exchange_start(&options, line, bytes);
}

/* May a body of this many bytes be parsed now? If not, the request is held until its turn. */
static bool
has_turn(const struct served *s, size_t bytes)
{
	if (bytes < JSONRPC_LONG || s->c->has_turn)
		return true;
	s->c->held = s->request;
	rota_wait(s->c->server->options.rota, &s->c->turn, s->tenant->principal);
	return false;
}

static void
serve_post(const struct served *s)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(s->request);
	size_t bytes = evbuffer_get_length(body);
	struct http_verdict verdict;
	struct jsonrpc_line line;
	const char *text;

	if (!http_is_json(s->head.value[HTTP_CONTENT_TYPE])) {
		request_refuse(s, 415, "Content-Type must be application/json");
		return;
	}
	if (!has_turn(s, bytes))
		return;
	text = bytes ? (const char *)evbuffer_pullup(body, -1) : "";
	jsonrpc_parse(xalloc_check((void *)text), bytes, &line);
	evbuffer_drain(body, bytes);
	http_connection_serves(s->c, 0);
	http_ladder(&s->head, &line, &verdict);
	serve_way(s, &verdict, &line, bytes);
	jsonrpc_line_done(&line);
}

/* ---- every request ---- */

static bool
request_is_of_ours(const struct served *s)
{
	const struct config *config = s->c->server->options.config;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(s->request);
	const char *named = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *host = s->head.value[HTTP_HOST], *origin = s->head.value[HTTP_ORIGIN];
	const char *own = s->c->endpoint->host;

	if (origin && !http_origin_is_allowed(origin, &config->http.origins))
		return false;
	if (named && *named && !http_host_is_ours(named, own, &config->http.hosts))
		return false;
	return !host || http_host_is_ours(host, own, &config->http.hosts);
}

/* The path of the request; "": it has none. */
static const char *
request_path(const struct served *s)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(s->request);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;

	return path ? path : "";
}

static bool
request_is_path(const struct served *s)
{
	const char *path = request_path(s);

	/* Other servers are often at "/mcp/", so clients may be configured with this path. */
	return strcmp(path, HTTP_PATH) == 0 || strcmp(path, HTTP_PATH "/") == 0;
}

/* Clients without a session have nothing to listen to, so GET is not offered. */
static bool
is_verb(const struct served *s, enum evhttp_cmd_type verb)
{
	return verb == EVHTTP_REQ_POST || verb == EVHTTP_REQ_DELETE ||
	       (verb == EVHTTP_REQ_GET && s->head.value[HTTP_SESSION]);
}

/* The first checks: path, verb, Host and Origin. False: the request was refused. */
static bool
may_pass(const struct served *s, enum evhttp_cmd_type verb)
{
	if (!s->head.value[HTTP_HOST] && s->request->minor >= 1) {
		request_refuse(s, 400, "the header Host is required");
	} else if (!request_is_path(s)) {
		request_refuse(s, 404, "the endpoint is " HTTP_PATH);
	} else if (!is_verb(s, verb)) {
		http_reply_header(s->request, "Allow", ALLOWED);
		request_refuse(s, 405, "only POST, and GET and DELETE of a session, are served");
	} else if (!request_is_of_ours(s)) {
		request_refuse(s, 403, "this Host or Origin is not allowed");
	} else {
		return true;
	}
	return false;
}

/* Asks whose the peer's uid is. False: the request is held until that is known, or was refused. */
static bool
take_owner(const struct served *s)
{
	struct http_caller *caller = &s->c->caller;
	struct why why = { .text = "" };
	int r = gate_owner(s->c->server->options.gate, caller->uid, &s->c->identity,
			   &caller->owner, &why);

	caller->owner_known = r == 0;
	if (r == -EINPROGRESS)
		s->c->held = s->request;
	else if (r < 0)
		request_refuse(s, r == -EACCES || r == -EMLINK ? 403 : 503, why.text);
	return r == 0;
}

/* Determines the principal, and holds its tenant. False: the request is held or was refused. */
static bool
take_principal(struct served *s)
{
	const struct evkeyvalq *headers = evhttp_request_get_input_headers(s->request);
	struct http_server *server = s->c->server;
	struct auth_verdict verdict;

	if (!http_principal(server->options.auth, &s->c->caller, headers, &s->head, &verdict))
		return take_owner(s) && take_principal(s);
	if (verdict.status == 0) {
		s->tenant = http_tenant_find(&server->tenants, verdict.principal);
		tenant_restrict(s->tenant->tenant, verdict.profile);
		return true;
	}
	if (verdict.challenge)
		http_reply_header(s->request, "WWW-Authenticate", verdict.challenge);
	request_refuse(s, verdict.status, verdict.text);
	return false;
}

/* Does policy know the principal? If not, the request is held until it does, or the request was
 * refused. */
static bool
request_is_identified(const struct served *s)
{
	struct why why = { .text = "" };
	int r = gate_identify(s->c->server->options.gate, s->tenant->principal, &s->c->identity,
			      &why);

	if (r == -EINPROGRESS)
		s->c->held = s->request;
	else if (r < 0)
		request_refuse(s, 503, why.text);
	return r == 0;
}

/* Is it GET or HEAD? False: the request was refused. */
static bool
only_reads(const struct served *s, enum evhttp_cmd_type verb)
{
	if (verb == EVHTTP_REQ_GET || verb == EVHTTP_REQ_HEAD)
		return true;
	http_reply_header(s->request, "Allow", "GET, HEAD");
	request_refuse(s, 405, "this can only be read");
	return false;
}

/* The checks of what can be read without a token. False: the request was refused. */
static bool
may_read(const struct served *s, enum evhttp_cmd_type verb)
{
	if (!s->head.value[HTTP_HOST] && s->request->minor >= 1)
		request_refuse(s, 400, "the header Host is required");
	else if (!request_is_of_ours(s))
		request_refuse(s, 403, "this Host or Origin is not allowed");
	else
		return only_reads(s, verb);
	return false;
}

/* What the service lacks to take calls, as a line, malloc'd; NULL: nothing. A service that stops
 * accepts no connection. */
static char *
missing_for_calls(const struct http_server *server)
{
	struct engine_counts counts;

	engine_count(server->options.engine, &counts);
	if (counts.zygotes_ready == 0)
		return xstrdup("no zygote is ready\n");
	for (enum helper_kind kind = 0; kind < HELPER_FORKER; kind++)
		if (helper_state(kind).away > 0)
			return xasprintf("the %s helper is away\n", helper_name(kind));
	return NULL;
}

/* The probes of container managers and proxies. They have no token, and name the container's
 * address as Host; the answers are the same for everybody, so another page may read them. */
static bool
serve_health(const struct served *s, enum evhttp_cmd_type verb)
{
	bool ready = strcmp(request_path(s), HTTP_READY_PATH) == 0;
	char *missing, *line;

	if (!ready && strcmp(request_path(s), HTTP_HEALTH_PATH) != 0)
		return false;
	if (!only_reads(s, verb))
		return true;
	missing = ready ? missing_for_calls(s->c->server) : NULL;
	line = missing ? missing : xstrdup("ok\n");
	http_reply_header(s->request, "Cache-Control", "no-store");
	http_reply_text(s->c, s->request, missing ? 503 : 200, "text/plain; charset=utf-8", line,
			strlen(line));
	return true;
}

/* The document that names the issuer of tokens. A client without a token must be able to read
 * it. */
static bool
serve_metadata(const struct served *s, enum evhttp_cmd_type verb)
{
	const struct auth *auth = s->c->server->options.auth;
	const char *document = auth ? auth_metadata(auth, request_path(s)) : NULL;
	struct jsonout out;

	if (!document)
		return false;
	if (may_read(s, verb)) {
		jsonout_init(&out);
		jsonout_raw(&out, document, strlen(document));
		http_reply_header(s->request, "Cache-Control", "max-age=300");
		http_reply(s->c, s->request, 200, &out);
		jsonout_done(&out);
	}
	return true;
}

/* A reader with a signed link needs no token. */
static bool
serve_link(const struct served *s, enum evhttp_cmd_type verb)
{
	const char *path = request_path(s);

	if (!s->c->server->options.config->http.links ||
	    strncmp(path, LINKS_PATH, strlen(LINKS_PATH)) != 0)
		return false;
	if (may_read(s, verb) && !http_download_serve(s->c, s->request, path))
		request_refuse(s, 404, "there is no such file, or this link has expired");
	return true;
}

static void
serve_metrics(const struct served *s)
{
	const struct http_server_options *options = &s->c->server->options;
	bool plain = s->head.takes_plain && !s->head.takes_openmetrics;
	size_t len;
	char *text = options->write_metrics(options->write_metrics_arg, plain, &len);

	http_reply_text(s->c, s->request, 200, plain ? OPENMETRICS_PLAIN : OPENMETRICS_TYPE, text,
			len);
}

/* Serves a socket for metrics, which has nothing else but the probes. */
static void
serve_only_metrics(const struct served *s, enum evhttp_cmd_type verb)
{
	if (strcmp(request_path(s), HTTP_METRICS_PATH) != 0)
		request_refuse(s, 404, "there are " HTTP_METRICS_PATH ", " HTTP_HEALTH_PATH " and "
			       HTTP_READY_PATH);
	else if (may_read(s, verb))
		serve_metrics(s);
}

/* Are they wanted from a socket of MCP, where only [metrics] readers get them? */
static bool
wants_metrics(const struct served *s)
{
	return s->c->server->options.config->metrics.readers.n > 0 &&
	       strcmp(request_path(s), HTTP_METRICS_PATH) == 0;
}

/* A scraper names a container's address as Host. No page of another site has sent it: it has a
 * token. */
static bool
may_scrape(const struct served *s, enum evhttp_cmd_type verb)
{
	struct auth *auth = s->c->server->options.auth;

	return s->head.value[HTTP_AUTHORIZATION] && auth && auth_has_tokens(auth)
		? only_reads(s, verb) : may_read(s, verb);
}

static bool
is_reader(const struct served *s)
{
	return policy_is_any(gate_subject(s->c->server->options.gate, s->tenant->principal),
			     &s->c->server->options.config->metrics.readers);
}

void
http_request_serve(struct http_connection *c, struct evhttp_request *request)
{
	enum evhttp_cmd_type verb = evhttp_request_get_command(request);
	struct served s = { .c = c, .request = request };
	const char *wrong = http_head_read(evhttp_request_get_input_headers(request), &s.head);

	http_connection_serves(c, evbuffer_get_length(evhttp_request_get_input_buffer(request)));
	if (request->minor > 1) {	/* evhttp ignores it, and answers with it */
		request->minor = 1;
		wrong = "HTTP can only be 1.0 or 1.1";
	}
	if (wrong) {
		http_reply_header(request, "Connection", "close");
		request_refuse(&s, 400, wrong);
		return;
	}
	/* evhttp ignores the body of some verbs: the bytes that follow may be one. */
	if (verb != EVHTTP_REQ_POST && verb != EVHTTP_REQ_DELETE && verb != EVHTTP_REQ_GET)
		http_reply_header(request, "Connection", "close");
	if (serve_health(&s, verb))
		return;
	if (c->endpoint->only_metrics) {
		serve_only_metrics(&s, verb);
		return;
	}
	if (serve_metadata(&s, verb) || serve_link(&s, verb))
		return;
	if (!(wants_metrics(&s) ? may_scrape : may_pass)(&s, verb) || !take_principal(&s))
		return;
	if (!request_is_identified(&s))
		;
	else if (!http_connection_take(c, s.tenant))
		request_refuse_connection(&s);
	else if (wants_metrics(&s) && is_reader(&s))
		serve_metrics(&s);
	else if (wants_metrics(&s))
		request_refuse(&s, 403, "you may not read the metrics ([metrics] readers)");
	else if (verb == EVHTTP_REQ_POST)
		serve_post(&s);
	else if (s.head.mcp_twice)
		request_refuse(&s, 400, "a header of the protocol is said twice");
	else if (verb == EVHTTP_REQ_GET)
		serve_get(&s);
	else
		serve_delete(&s);
	http_tenant_let_go(s.tenant);
}

void
http_request_serve_held(void *arg)
{
	struct http_connection *c = arg;
	struct evhttp_request *request = c->held;

	c->held = NULL;
	http_request_serve(c, request);
}

/* The whole request is checked again: a token may have been revoked meanwhile. */
void
http_request_serve_in_turn(void *arg)
{
	struct http_connection *c = arg;

	if (http_connection_is_gone(c)) {
		evhttp_connection_free(c->evcon);
		return;
	}
	c->has_turn = true;
	http_request_serve_held(c);
	c->has_turn = false;
}
