/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.
 * Owns:    a server's process or its transfers by HTTP, the requests that wait for its answer, and
 * its new list of tools.
 * Reads:   messages of that server, hostile; shape.c bounds what of them is passed on. */
#include "upstream/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <jansson.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "upstream/process.h"
#include "upstream/remote.h"
#include "policy/shape.h"

#define MODERN "2026-07-28"
#define LEGACY "2025-11-25"
#define REVISION_MAX 32
#define DISCOVER_MS 5000	/* then it does not know the method, and says nothing */
#define START_MS 60000		/* for each other answer until it serves */
#define RELISTEN_MS 2000	/* before an ended stream of changes is opened again, first */
#define RELISTEN_DOUBLED 5	/* so often it is doubled */
#define RELIST_MS 1000		/* between two lists, however often it says that it has changed */
#define AGAIN_FIRST_MS 500
#define AGAIN_MOST_MS 60000
#define SERVED_MS 60000		/* after so long it is started again without a delay, once */
#define PAGES_MAX 200
#define CURSOR_MAX 4096		/* bytes */
#define ID_MAX 1024		/* bytes of the id of a server's request */

enum kind { DISCOVER, INITIALIZE, INITIALIZED, LIST, LISTEN, CALL };

struct request {
	LIST_ENTRY(request) link;
	struct server *server;
	enum kind kind;
	uint64_t id;
	uint64_t call;			/* of TOOLS_CALL; with CALL */
	uint32_t seconds, result_max;	/* likewise */
	struct event late;
};

struct server {
	struct server_options options;
	struct remote *remote;		/* NULL: it is a process, which the next three are for */
	char *words;			/* of the command, each with NUL behind it */
	char **argv;
	struct process process;
	enum tool_server_state state;
	char revision[REVISION_MAX + 1];	/* "": not known yet */
	bool is_modern;
	bool skips_discover;		/* the method made it end */
	uint64_t last_id;
	LIST_HEAD(, request) requests;
	/* The list that is being read. */
	json_t *listed;			/* of tools; NULL: none is being read */
	size_t listed_bytes;
	unsigned int pages, left_out;
	bool is_stale;			/* it has changed meanwhile */
	struct event relist, relisten;
	unsigned int relistened;	/* times since the start */
	/* Its next start. */
	struct event again;
	unsigned int failed;
	uint64_t served_since;		/* milliseconds; 0: it has not served */
	uint32_t n_tools, n_left_out;	/* that the supervisor was told of */
};

static void initialize(struct server *s);
static void list(struct server *s, const char *cursor);
static void give_up(struct server *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- to the supervisor ---- */

static void
tell_state(struct server *s, const char *text)
{
	s->options.tell(s->options.arg, &(struct msg){
		.type = MSG_TOOLS_SERVER,
		.tools_server = { .server = s->options.number, .state = s->state,
				  .tools = s->n_tools, .left_out = s->n_left_out,
				  .revision = msg_str(s->revision), .text = msg_str(text) } });
}

static void
tell_result(struct server *s, uint64_t call, enum tool_status status, const char *body)
{
	s->options.tell(s->options.arg, &(struct msg){
		.type = MSG_TOOLS_RESULT,
		.tools_result = { .call = call, .status = status, .body = msg_str(body) } });
}

static void tell_failure(struct server *s, uint64_t call, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
tell_failure(struct server *s, uint64_t call, const char *format, ...)
{
	char text[TOOL_TROUBLE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell_result(s, call, TOOL_FAILED, text);
}

/* ---- requests ---- */

static void
forget(struct request *request)
{
	LIST_REMOVE(request, link);
	event_del(&request->late);
	free(request);
}

/* HTTP repeats in its headers what is in the message. */
static int
post(struct server *s, const json_t *message, uint64_t id, const char *text)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	const json_t *params = json_object_get(message, "params");
	bool is_modern = s->is_modern || json_object_get(params, "_meta");

	return remote_send(s->remote, &(struct remote_message){
		.id = id, .method = method, .name = json_string_value(json_object_get(params, "name")),
		.revision = is_modern ? MODERN : s->revision, .is_modern = is_modern,
		.text = text, .len = strlen(text) });
}

/* id: of the request whose end is waited for; 0: of none. */
static int
write_json(struct server *s, json_t *message, uint64_t id)
{
	char *line = json_dumps(message, JSON_COMPACT);
	int r = -EINVAL;

	if (line && s->remote)
		r = post(s, message, id, line);
	else if (line)
		r = process_write(&s->process, line, strlen(line));
	free(line);
	json_decref(message);
	return r;
}

/* What every request of the modern era has. */
static json_t *
envelope(void)
{
	return xalloc_check(json_pack("{s:s,s:{s:s,s:s},s:{}}",
		"io.modelcontextprotocol/protocolVersion", MODERN,
		"io.modelcontextprotocol/clientInfo", "name", "mcp-pythond", "version",
		PACKAGE_VERSION, "io.modelcontextprotocol/clientCapabilities"));
}

static void
notify(struct server *s, const char *method, json_t *params)
{
	json_t *message = json_pack("{s:s,s:s}", "jsonrpc", "2.0", "method", method);

	xalloc_check(message);
	if (params)
		json_object_set_new(message, "params", params);
	/* If it does not read, its requests are late. */
	(void)write_json(s, message, 0);
}

/* The server is told that a request is not waited for any more. */
static void
notify_cancelled(struct server *s, const struct request *request, const char *why)
{
	json_t *params;

	if (s->remote)
		remote_cancel(s->remote, request->id);
	/* To a modern server the end of the connection says it. */
	if (s->remote && s->is_modern)
		return;
	params = xalloc_check(json_pack("{s:I,s:s}", "requestId", (json_int_t)request->id,
					"reason", why));
	if (s->is_modern)
		json_object_set_new(params, "_meta", envelope());
	notify(s, "notifications/cancelled", params);
}

static void on_late(evutil_socket_t fd, short what, void *arg);

static struct request *
new_request(struct server *s, enum kind kind)
{
	struct request *request = xcalloc(1, sizeof(*request));

	*request = (struct request){ .server = s, .kind = kind, .id = ++s->last_id };
	LIST_INSERT_HEAD(&s->requests, request, link);
	evtimer_assign(&request->late, s->options.base, on_late, request);
	return request;
}

/* params: taken over. 0; or -errno: nothing was sent, and there is no request. */
static int
ask(struct server *s, enum kind kind, const char *method, json_t *params, uint32_t ms,
    struct request **request_r)
{
	struct request *request = new_request(s, kind);
	struct timeval late = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };
	int r;

	if (s->is_modern || kind == DISCOVER)
		json_object_set_new(params, "_meta", envelope());
	r = write_json(s, xalloc_check(json_pack("{s:s,s:I,s:s,s:o}", "jsonrpc", "2.0", "id",
						 (json_int_t)request->id, "method", method,
						 "params", params)), request->id);
	if (r < 0) {
		forget(request);
		return r;
	}
	if (ms > 0)
		event_add(&request->late, &late);
	if (request_r)
		*request_r = request;
	return 0;
}

/* Failing to ask before it serves is a failed start. 0 or -errno. */
static int
ask_first(struct server *s, enum kind kind, const char *method, json_t *params, uint32_t ms)
{
	int r = ask(s, kind, method, params, ms, NULL);

	if (r < 0 && s->state != TOOL_SERVER_SERVING)
		give_up(s, "it cannot be asked for %s: %s", method, strerror(-r));
	return r;
}

/* ---- its end ---- */

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
arm(struct event *timer, uint32_t ms)
{
	const struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	event_add(timer, &delay);
}

/* It has no process or session any more: answers what is open, and plans its next start. */
static void
go_down(struct server *s, const char *text)
{
	struct request *request, *next;
	uint32_t ms;

	s->state = TOOL_SERVER_DOWN;
	for (request = LIST_FIRST(&s->requests); request; request = next) {
		next = LIST_NEXT(request, link);
		if (request->kind == DISCOVER && !s->remote)
			s->skips_discover = true;
		if (request->kind == CALL)
			tell_failure(s, request->call, "the server %s ended in the middle of the "
				     "call, which may have been done or not: %s", s->options.name,
				     text);
		forget(request);
	}
	json_decref(s->listed);
	s->listed = NULL;
	event_del(&s->relist);
	event_del(&s->relisten);
	if (s->served_since && now_ms() - s->served_since > SERVED_MS)
		s->failed = 0;
	s->served_since = 0;
	ms = AGAIN_FIRST_MS << (s->failed < 10 ? s->failed : 10);
	s->failed++;
	tell_state(s, text);
	arm(&s->again, ms < AGAIN_MOST_MS ? ms : AGAIN_MOST_MS);
}

static void
on_end(void *arg, const char *text)
{
	go_down(arg, text);
}

static void
give_up(struct server *s, const char *format, ...)
{
	char text[TOOL_TROUBLE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (s->remote)
		remote_end(s->remote);
	else
		process_end(&s->process);
	go_down(s, text);
}

/* ---- the beginning ---- */

static void
initialize(struct server *s)
{
	s->is_modern = false;
	ask_first(s, INITIALIZE, "initialize",
		  xalloc_check(json_pack("{s:s,s:{},s:{s:s,s:s}}", "protocolVersion", LEGACY,
					 "capabilities", "clientInfo", "name", "mcp-pythond",
					 "version", PACKAGE_VERSION)), START_MS);
}

static bool
has_word(const json_t *list, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
		if (json_is_string(one) && strcmp(json_string_value(one), word) == 0)
			return true;
	return false;
}

/* result: NULL: an error; it may know no such method. */
static void
on_discovered(struct server *s, const json_t *result)
{
	if (!has_word(json_object_get(result, "supportedVersions"), MODERN)) {
		initialize(s);
		return;
	}
	s->is_modern = true;
	snprintf(s->revision, sizeof(s->revision), "%s", MODERN);
	list(s, NULL);
}

/* By HTTP messages could pass each other, and some servers list nothing before this one. */
static void
say_initialized(struct server *s)
{
	struct request *request;
	json_t *message;

	if (!s->remote) {
		notify(s, "notifications/initialized", NULL);
		list(s, NULL);
		return;
	}
	request = new_request(s, INITIALIZED);
	arm(&request->late, START_MS);
	message = json_pack("{s:s,s:s}", "jsonrpc", "2.0", "method", "notifications/initialized");
	if (write_json(s, xalloc_check(message), request->id) < 0)
		give_up(s, "it cannot be told that the session has begun");
}

static void
on_initialized(struct server *s, const json_t *result)
{
	const char *revision = json_string_value(json_object_get(result, "protocolVersion"));

	if (!revision) {
		give_up(s, "its answer to initialize has no protocolVersion");
		return;
	}
	shape_text(s->revision, sizeof(s->revision), revision);
	say_initialized(s);
}

/* ---- its tools ---- */

static void
list(struct server *s, const char *cursor)
{
	json_t *params = xalloc_check(json_object());

	if (!cursor) {
		json_decref(s->listed);
		s->listed = xalloc_check(json_array());
		s->listed_bytes = 0;
		s->pages = s->left_out = 0;
		s->is_stale = false;
	} else {
		json_object_set_new(params, "cursor", xalloc_check(json_string(cursor)));
	}
	if (ask_first(s, LIST, "tools/list", params, START_MS) < 0 &&
	    s->state == TOOL_SERVER_SERVING) {
		json_decref(s->listed);
		s->listed = NULL;
		arm(&s->relist, RELIST_MS);
	}
}

static bool
is_listed(const struct server *s, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(s->listed, i, one)
		if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
			return true;
	return false;
}

static void
take_tool(struct server *s, const json_t *tool)
{
	struct shape_tool shaped;

	if (json_array_size(s->listed) == TOOLS_MAX || !shape_tool(tool, &shaped)) {
		s->left_out++;
		return;
	}
	s->listed_bytes += strlen(shaped.about);
	if (s->listed_bytes > TOOLS_ABOUT_MAX || is_listed(s, shaped.name)) {
		s->listed_bytes -= strlen(shaped.about);
		s->left_out++;
	} else {
		json_array_append_new(s->listed, xalloc_check(json_pack("{s:s,s:b,s:s}", "name",
			shaped.name, "read_only", shaped.read_only, "about", shaped.about)));
	}
	free(shaped.about);
}

static void
tell_tools(struct server *s)
{
	const json_t *one;
	size_t i;

	json_array_foreach(s->listed, i, one)
		s->options.tell(s->options.arg, &(struct msg){
			.type = MSG_TOOLS_TOOL,
			.tools_tool = {
				.server = s->options.number,
				.name = msg_str(json_string_value(json_object_get(one, "name"))),
				.read_only = json_is_true(json_object_get(one, "read_only")),
				.about = msg_str(json_string_value(json_object_get(one, "about"))),
			} });
	s->n_tools = (uint32_t)json_array_size(s->listed);
	s->n_left_out = s->left_out;
	json_decref(s->listed);
	s->listed = NULL;
}

/* A modern server tells of changes on the answer of a request that stays open, an earlier one by
 * HTTP on the answer of GET. */
static void
listen_for_changes(struct server *s)
{
	struct request *request;

	if (s->is_modern) {
		(void)ask(s, LISTEN, "subscriptions/listen",
			  xalloc_check(json_pack("{s:{s:b}}", "notifications", "toolsListChanged",
						 1)), 0, NULL);
	} else if (s->remote) {
		request = new_request(s, LISTEN);
		if (remote_listen(s->remote, request->id, s->revision) < 0)
			forget(request);
	}
}

static void
listen_later(struct server *s)
{
	arm(&s->relisten, RELISTEN_MS << (s->relistened < RELISTEN_DOUBLED ? s->relistened
									  : RELISTEN_DOUBLED));
	s->relistened++;
}

/* The stream had ended: what has changed meanwhile was not heard. */
static void
on_relisten(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	listen_for_changes(s);
	if (!s->listed)
		list(s, NULL);
}

/* A server that serves keeps the list that it has. */
static void
not_listed(struct server *s, const char *text)
{
	if (s->state != TOOL_SERVER_SERVING) {
		give_up(s, "it does not list its tools: %s", text);
		return;
	}
	json_decref(s->listed);
	s->listed = NULL;
	if (s->is_stale)
		arm(&s->relist, RELIST_MS);
}

static void
on_listed(struct server *s, const json_t *result)
{
	const json_t *tools = json_object_get(result, "tools"), *tool;
	const char *next = json_string_value(json_object_get(result, "nextCursor"));
	bool is_first = s->state != TOOL_SERVER_SERVING;
	size_t i;

	if (!json_is_array(tools)) {
		not_listed(s, "its answer to tools/list has no tools");
		return;
	}
	json_array_foreach(tools, i, tool)
		take_tool(s, tool);
	if (next && ++s->pages < PAGES_MAX && strlen(next) <= CURSOR_MAX) {
		list(s, next);
		return;
	}
	s->state = TOOL_SERVER_SERVING;
	if (is_first)
		s->served_since = now_ms();
	tell_tools(s);
	tell_state(s, "");
	if (is_first)
		listen_for_changes(s);
	if (s->is_stale)
		arm(&s->relist, RELIST_MS);
}

static void
on_relist(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	if (s->state == TOOL_SERVER_SERVING && !s->listed)
		list(s, NULL);
}

/* ---- what it says ---- */

/* Only ping, which MCP wants answered, has a result. An id goes back as it came, so it has a bound:
 * requests with another id are ignored. */
static void
on_request(struct server *s, const json_t *id, const char *method)
{
	json_t *message;

	if (!json_is_integer(id) && (!json_is_string(id) || json_string_length(id) > ID_MAX))
		return;
	message = xalloc_check(json_pack("{s:s,s:O}", "jsonrpc", "2.0", "id", id));
	if (strcmp(method, "ping") == 0)
		json_object_set_new(message, "result", xalloc_check(json_object()));
	else
		json_object_set_new(message, "error", xalloc_check(json_pack("{s:i,s:s}", "code",
			-32601, "message", "mcp-pythond's scripts have no such method")));
	(void)write_json(s, message, 0);
}

static void
on_notification(struct server *s, const char *method)
{
	if (strcmp(method, "notifications/tools/list_changed") != 0)
		return;
	if (s->listed)
		s->is_stale = true;
	else if (s->state == TOOL_SERVER_SERVING && !evtimer_pending(&s->relist, NULL))
		arm(&s->relist, RELIST_MS);
}

static void
on_called(struct server *s, const struct request *request, const json_t *result,
	  const char *error)
{
	enum tool_status status;
	char *body;

	if (!result) {
		tell_failure(s, request->call, "the server %s answers with an error: %s",
			     s->options.name, error);
		return;
	}
	status = shape_result(result, request->result_max, &body);
	tell_result(s, request->call, status, body);
	free(body);
}

/* result: NULL: an error, as text says. */
static void
on_answer(struct server *s, struct request *request, const json_t *result, const char *error)
{
	switch (request->kind) {
	case DISCOVER:
		on_discovered(s, result);
		break;
	case INITIALIZE:
		if (result)
			on_initialized(s, result);
		else
			give_up(s, "it answers initialize with an error: %s", error);
		break;
	case LIST:
		if (result)
			on_listed(s, result);
		else
			not_listed(s, error);
		break;
	case INITIALIZED:
		break;
	case LISTEN:
		if (result && s->remote)
			listen_later(s);
		break;
	case CALL:
		on_called(s, request, result, error);
		break;
	}
}

static struct request *
find(struct server *s, const json_t *id)
{
	struct request *request;

	LIST_FOREACH(request, &s->requests, link)
		if (json_is_integer(id) && (uint64_t)json_integer_value(id) == request->id)
			return request;
	return NULL;
}

static void
take_answer(struct server *s, const json_t *message, const json_t *id)
{
	const json_t *error = json_object_get(message, "error");
	const json_t *result = error ? NULL : json_object_get(message, "result");
	const char *said = json_string_value(json_object_get(error, "message"));
	struct request *request = find(s, id), answered;
	char text[256];

	/* A notification has no answer: only its HTTP status ends it. */
	if (!request || request->kind == INITIALIZED)
		return;
	if (s->remote)
		remote_release(s->remote, request->id);
	shape_text(text, sizeof(text), said ? said : "no message");
	answered = *request;
	forget(request);
	on_answer(s, &answered, result, text);
}

/* A server that knows no discovery refuses it in its own way; one that wants a credential, or has
 * trouble, says nothing about its era. */
static bool
is_unknown(long status)
{
	return status >= 400 && status < 500 && status != 401 && status != 403 && status != 429;
}

static void
on_failed(void *arg, uint64_t id, long status, const char *text)
{
	struct server *s = arg;
	json_t *number = xalloc_check(json_integer((json_int_t)id));
	struct request *request = find(s, number), failed;

	json_decref(number);
	if (!request)
		return;
	failed = *request;
	forget(request);
	if (failed.kind == DISCOVER && is_unknown(status))
		initialize(s);
	else if (failed.kind == CALL)
		tell_failure(s, failed.call, "the server %s has not answered the call, which may "
			     "have been done or not: %s", s->options.name, text);
	else if (failed.kind == INITIALIZED && status >= 200 && status < 300)
		list(s, NULL);
	else if (failed.kind == LIST)
		not_listed(s, text);
	else if (failed.kind != LISTEN)
		give_up(s, "%s", text);
	else if (status == 0 || status == 200)
		listen_later(s);
}

/* A message that is no JSON, or none that has one meaning: a call whose answer it was meant to be
 * is over. */
static void
on_unreadable(struct server *s, const char *line, size_t len)
{
	static const char key[] = "\"id\":";
	const char *end = line + len, *at = line;

	/* When the server goes down, the line is gone. */
	while (s->state != TOOL_SERVER_DOWN &&
	       (at = memmem(at, (size_t)(end - at), key, strlen(key)))) {
		at += strlen(key);
		at += strspn(at, " ");
		on_failed(s, strtoull(at, NULL, 10), 200, "its answer cannot be read as JSON");
	}
}

static void
on_line(void *arg, char *line, size_t len)
{
	struct server *s = arg;
	json_t *message = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *id = json_object_get(message, "id");
	const char *method = json_string_value(json_object_get(message, "method"));

	/* What else is no message is ignored: some servers write a greeting there. */
	if (!message)
		on_unreadable(s, line, len);
	if (method && id && !json_is_null(id))
		on_request(s, id, method);
	else if (method)
		on_notification(s, method);
	else if (id)
		take_answer(s, message, id);
	json_decref(message);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	struct request *request = arg, late = *request;
	struct server *s = request->server;
	char late_text[64];

	(void)fd;
	(void)what;
	forget(request);
	snprintf(late_text, sizeof(late_text), "it has not answered within %d seconds",
		 START_MS / 1000);
	if (s->remote)
		remote_cancel(s->remote, late.id);
	if (late.kind == DISCOVER) {
		initialize(s);
	} else if (late.kind == CALL) {
		tell_failure(s, late.call, "the server %s has not answered within %" PRIu32
			     " seconds; what the call does may still be done", s->options.name,
			     late.seconds);
		notify_cancelled(s, &late, "it took too long");
	} else if (late.kind == LIST) {
		not_listed(s, late_text);
	} else {
		give_up(s, "%s", late_text);
	}
}

/* ---- calls ---- */

void
server_call(struct server *s, const struct msg_tools_call *call)
{
	own_mem char *tool = xmemdup0(call->tool.at, call->tool.len);
	json_t *arguments, *params;
	struct request *request;
	int r;

	if (s->state != TOOL_SERVER_SERVING) {
		tell_failure(s, call->call, "the server %s does not run now", s->options.name);
		return;
	}
	arguments = json_loadb(call->arguments.at, call->arguments.len, JSON_ALLOW_NUL, NULL);
	if (!json_is_object(arguments)) {
		json_decref(arguments);
		tell_failure(s, call->call, "the arguments are no JSON object");
		return;
	}
	params = xalloc_check(json_pack("{s:s,s:o}", "name", tool, "arguments", arguments));
	r = ask(s, CALL, "tools/call", params, call->seconds * 1000, &request);
	if (r < 0) {
		tell_failure(s, call->call, r == -ENOBUFS
			     ? "the server %s does not read what it is sent"
			     : "the server %s does not run now", s->options.name);
		return;
	}
	request->call = call->call;
	request->seconds = call->seconds;
	request->result_max = call->result_max;
}

void
server_cancel(struct server *s, uint64_t call)
{
	struct request *request;

	LIST_FOREACH(request, &s->requests, link) {
		if (request->kind != CALL || request->call != call)
			continue;
		notify_cancelled(s, request, "nobody waits for it any more");
		forget(request);
		return;
	}
}

/* ---- life ---- */

void
server_start(struct server *s)
{
	int r = 0;

	if (*s->options.trouble) {
		tell_state(s, s->options.trouble);
		return;
	}
	s->state = TOOL_SERVER_STARTING;
	s->revision[0] = '\0';
	s->is_modern = false;
	s->relistened = 0;
	tell_state(s, "");
	if (!s->remote)
		r = process_start(&s->process);
	if (r < 0) {
		char text[128];

		snprintf(text, sizeof(text), "it cannot be started: %s", strerror(-r));
		go_down(s, text);
	} else if (s->skips_discover) {
		initialize(s);
	} else {
		ask_first(s, DISCOVER, "server/discover", xalloc_check(json_object()),
			  DISCOVER_MS + (*s->options.token_url ? REMOTE_TOKEN_MS : 0));
	}
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	server_start(arg);
}

static void
split_words(struct server *s)
{
	size_t n = 0;
	char *at, *word;

	s->words = xstrdup(s->options.command);
	s->argv = xcalloc(strlen(s->words) / 2 + 2, sizeof(*s->argv));
	for (word = strtok_r(s->words, " ", &at); word; word = strtok_r(NULL, " ", &at))
		s->argv[n++] = word;
}

struct server *
server_new(const struct server_options *options)
{
	struct server *s = xcalloc(1, sizeof(*s));

	s->options = *options;
	s->state = TOOL_SERVER_DOWN;
	LIST_INIT(&s->requests);
	if (*options->url)
		s->remote = remote_new(&(struct remote_options){
			.base = options->base, .url = options->url, .ca_file = options->ca_file,
			.header = options->header, .credential = options->credential,
			.token_url = options->token_url, .client_id = options->client_id,
			.scope = options->scope,
			.on_message = on_line, .on_failed = on_failed, .on_end = on_end,
			.arg = s });
	split_words(s);
	s->process = (struct process){ .base = options->base, .argv = s->argv,
				       .on_line = on_line, .on_end = on_end, .arg = s };
	process_init(&s->process);
	evtimer_assign(&s->relist, options->base, on_relist, s);
	evtimer_assign(&s->relisten, options->base, on_relisten, s);
	evtimer_assign(&s->again, options->base, on_again, s);
	return s;
}
