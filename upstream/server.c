/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.
 * Owns:    a server's process or its transfers by HTTP, the requests that wait for its answer, and
 * its new list of tools.
 * Reads:   messages of that server, hostile; shape.c bounds the parts that are passed on. */
#include "upstream/server_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonbound.h"
#include "base/xalloc.h"
#include "policy/shape.h"

#define REVISION "io.modelcontextprotocol/protocolVersion"
#define TASKS "io.modelcontextprotocol/tasks"
#define MODERN "2026-07-28"
#define LEGACY "2025-11-25"
#define DISCOVER_MS 5000	/* without an answer by then, the server does not know the method */
#define START_MS 60000		/* for each other answer until it serves */
#define RELISTEN_MS 2000	/* pause before an ended stream of changes is opened again, the
				 * first time */
#define RELISTEN_DOUBLED 5	/* how often that pause is doubled */
#define RELIST_MS 1000		/* between two lists, even if the server reports changes more
				 * often */
#define AGAIN_FIRST_MS 500
#define AGAIN_MOST_MS 60000
#define SERVED_MS 60000		/* a server that has served this long is started again without
				 * a delay, once */
#define PAGES_MAX 200
#define CURSOR_MAX 4096		/* bytes */
#define MESSAGE_VALUES_MAX 200000	/* of a message: more takes this process too long */

static void server_initialize(struct server *s);
static void server_list(struct server *s, const char *cursor);
static void server_give_up(struct server *s, const char *format, ...)
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

/* ---- requests ---- */

void
request_forget(struct request *request)
{
	LIST_REMOVE(request, link);
	event_del(&request->late);
	event_del(&request->poll);
	free(request->task);
	free(request);
}

/* HTTP repeats in its headers what is in the message. */
static int
server_post(struct server *s, const json_t *message, uint64_t id, const char *text)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	const json_t *params = json_object_get(message, "params");
	const char *tool = json_string_value(json_object_get(params, "name"));
	const char *name = tool ? tool : json_string_value(json_object_get(params, "taskId"));
	bool is_modern = s->is_modern || json_object_get(json_object_get(params, "_meta"), REVISION);
	json_t *headers = is_modern && tool
		? listing_headers(&s->listing, tool, json_object_get(params, "arguments")) : NULL;
	int r;

	r = remote_send(s->remote, &(struct remote_message){
		.id = id, .method = method,
		.name = name ? name : json_string_value(json_object_get(params, "uri")),
		.headers = headers,
		.revision = is_modern ? MODERN : s->revision, .is_modern = is_modern,
		.text = text, .len = strlen(text) });
	json_decref(headers);
	return r;
}

/* id: of the request whose end is waited for; 0: of none. */
int
server_write(struct server *s, json_t *message, uint64_t id)
{
	char *line = json_dumps(message, JSON_COMPACT);
	int r = -EINVAL;

	if (line && s->remote)
		r = server_post(s, message, id, line);
	else if (line)
		r = process_write(&s->process, line, strlen(line));
	free(line);
	json_decref(message);
	return r;
}

/* The members that every request of the modern era has. */
json_t *
server_envelope(void)
{
	return xalloc_check(json_pack("{s:s,s:{s:s,s:s},s:{s:{s:{}}}}", REVISION, MODERN,
		"io.modelcontextprotocol/clientInfo", "name", "mcp-pythond", "version",
		PACKAGE_VERSION, "io.modelcontextprotocol/clientCapabilities", "extensions",
		TASKS));
}

void
server_notify(struct server *s, const char *method, json_t *params)
{
	json_t *message = json_pack("{s:s,s:s}", "jsonrpc", "2.0", "method", method);

	xalloc_check(message);
	if (params)
		json_object_set_new(message, "params", params);
	/* If it does not read, its requests are late. */
	(void)server_write(s, message, 0);
}

static void on_late(evutil_socket_t fd, short what, void *arg);

static struct request *
new_request(struct server *s, enum kind kind)
{
	struct request *request = xcalloc(1, sizeof(*request));

	*request = (struct request){ .server = s, .kind = kind, .id = ++s->last_id };
	LIST_INSERT_HEAD(&s->requests, request, link);
	evtimer_assign(&request->late, s->options.base, on_late, request);
	evtimer_assign(&request->poll, s->options.base, call_on_poll, request);
	return request;
}

/* params: taken over. 0 or -errno. */
int
request_send(struct server *s, const struct request *request, const char *method, json_t *params)
{
	json_t *meta = s->is_modern || request->kind == DISCOVER ? server_envelope()
								  : json_object();

	/* Of a task its server tells another way. */
	if (request->kind == CALL && !request->task)
		json_object_set_new(meta, "progressToken", json_integer((json_int_t)request->id));
	if (json_object_size(meta) > 0)
		json_object_set(params, "_meta", meta);
	json_decref(meta);
	return server_write(s, xalloc_check(json_pack("{s:s,s:I,s:s,s:o}", "jsonrpc", "2.0", "id",
						    (json_int_t)request->id, "method", method,
						    "params", params)), request->id);
}

/* params: taken over. 0; or -errno: nothing was sent, and there is no request. */
int
request_ask(struct server *s, enum kind kind, const char *method, json_t *params, uint32_t ms,
    struct request **request_r)
{
	struct request *request = new_request(s, kind);
	struct timeval late = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };
	int r = request_send(s, request, method, params);

	if (r < 0) {
		request_forget(request);
		return r;
	}
	if (ms > 0)
		event_add(&request->late, &late);
	if (request_r)
		*request_r = request;
	return 0;
}

/* Sends a request. If this fails before the server serves, the start of the server has failed. 0 or
 * -errno. */
static int
ask_first(struct server *s, enum kind kind, const char *method, json_t *params, uint32_t ms)
{
	int r = request_ask(s, kind, method, params, ms, NULL);

	if (r < 0 && s->state != TOOL_SERVER_SERVING)
		server_give_up(s, "it cannot be asked for %s: %s", method, strerror(-r));
	return r;
}

struct request *
request_find(struct server *s, const json_t *id)
{
	struct request *request;

	LIST_FOREACH(request, &s->requests, link)
		if (json_is_integer(id) && json_integer_value(id) > 0 &&
		    (uint64_t)json_integer_value(id) == request->id)
			return request;
	return NULL;
}

/* ---- its end ---- */

void
server_arm(struct event *timer, uint32_t ms)
{
	const struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	event_add(timer, &delay);
}

/* The server has no process or session any more: answers its open requests, and plans its next
 * start. */
static void
go_down(struct server *s, const char *text)
{
	struct request *request, *next;
	uint32_t ms;

	s->state = TOOL_SERVER_DOWN;
	/* What ended before it served, asked in either era, is asked in the other one next. */
	if (!s->served_since)
		s->skips_discover = false;
	for (request = LIST_FIRST(&s->requests); request; request = next) {
		next = LIST_NEXT(request, link);
		if (request->kind == DISCOVER && !s->remote && !s->discovers_late)
			s->skips_discover = true;
		if (request->kind == CALL)
			call_fail_with(s, request->call, "the server %s ended in the middle of the "
				     "call, which may have been done or not: %s", s->options.name,
				     text);
		request_forget(request);
	}
	listing_drop(&s->listing);
	event_del(&s->relist);
	event_del(&s->relisten);
	if (s->served_since && clock_ms() - s->served_since > SERVED_MS)
		s->failed = 0;
	s->served_since = 0;
	ms = AGAIN_FIRST_MS << (s->failed < 10 ? s->failed : 10);
	s->failed++;
	tell_state(s, text);
	server_arm(&s->again, ms < AGAIN_MOST_MS ? ms : AGAIN_MOST_MS);
}

static void
on_end(void *arg, const char *text)
{
	go_down(arg, text);
}

static void
server_give_up(struct server *s, const char *format, ...)
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
server_initialize(struct server *s)
{
	s->is_modern = false;
	ask_first(s, INITIALIZE, "initialize",
		  xalloc_check(json_pack("{s:s,s:{},s:{s:s,s:s}}", "protocolVersion", LEGACY,
					 "capabilities", "clientInfo", "name", "mcp-pythond",
					 "version", PACKAGE_VERSION)), START_MS);
}

static void
take_capabilities(struct server *s, const json_t *result)
{
	s->has_resources = json_is_object(json_object_get(json_object_get(result, "capabilities"),
							  "resources"));
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

/* The server is of the newer era, although its answer was slow: forgets the start in the older
 * one. */
static void
forget_start(struct server *s)
{
	struct request *request, *next;

	for (request = LIST_FIRST(&s->requests); request; request = next) {
		next = LIST_NEXT(request, link);
		request_forget(request);
	}
	listing_drop(&s->listing);
}

/* result NULL: an error; the server may not know the method. */
static void
on_discovered(struct server *s, const json_t *result)
{
	bool is_modern = has_word(json_object_get(result, "supportedVersions"), MODERN);

	if (s->discovers_late && (!is_modern || s->state == TOOL_SERVER_SERVING))
		return;
	if (!is_modern) {
		server_initialize(s);
		return;
	}
	if (s->discovers_late)
		forget_start(s);
	take_capabilities(s, result);
	s->is_modern = true;
	snprintf(s->revision, sizeof(s->revision), "%s", MODERN);
	server_list(s, NULL);
}

/* Sends notifications/initialized, and asks for the list of tools. Some servers list nothing before
 * this notification. Over HTTP it could be overtaken, so there the list is asked for when the
 * notification has been answered. */
static void
say_initialized(struct server *s)
{
	struct request *request;
	json_t *message;

	if (!s->remote) {
		server_notify(s, "notifications/initialized", NULL);
		server_list(s, NULL);
		return;
	}
	request = new_request(s, INITIALIZED);
	server_arm(&request->late, START_MS);
	message = json_pack("{s:s,s:s}", "jsonrpc", "2.0", "method", "notifications/initialized");
	if (server_write(s, xalloc_check(message), request->id) < 0)
		server_give_up(s, "it cannot be told that the session has begun");
}

static void
on_initialized(struct server *s, const json_t *result)
{
	const char *revision = json_string_value(json_object_get(result, "protocolVersion"));

	if (!revision) {
		server_give_up(s, "its answer to initialize has no protocolVersion");
		return;
	}
	take_capabilities(s, result);
	shape_text(s->revision, sizeof(s->revision), revision);
	say_initialized(s);
}

/* ---- its tools ---- */

static void
server_list(struct server *s, const char *cursor)
{
	json_t *params = xalloc_check(json_object());

	if (!cursor) {
		listing_begin(&s->listing);
		s->is_stale = false;
	} else {
		json_object_set_new(params, "cursor", xalloc_check(json_string(cursor)));
	}
	if (ask_first(s, LIST, "tools/list", params, START_MS) < 0 &&
	    s->state == TOOL_SERVER_SERVING) {
		listing_drop(&s->listing);
		server_arm(&s->relist, RELIST_MS);
	}
}

/* Changes come in the answer of a request that stays open (a modern server), or in that of a GET
 * (an earlier one, over HTTP). */
static void
listen_for_changes(struct server *s)
{
	struct request *request;

	if (s->is_modern) {
		(void)request_ask(s, LISTEN, "subscriptions/listen",
			  xalloc_check(json_pack("{s:{s:b}}", "notifications", "toolsListChanged",
						 1)), 0, NULL);
	} else if (s->remote) {
		request = new_request(s, LISTEN);
		if (remote_listen(s->remote, request->id, s->revision) < 0)
			request_forget(request);
	}
}

static void
listen_later(struct server *s)
{
	server_arm(&s->relisten, RELISTEN_MS << (s->relistened < RELISTEN_DOUBLED ? s->relistened
									  : RELISTEN_DOUBLED));
	s->relistened++;
}

/* Opens the stream of changes again, and lists the tools: changes in the meantime were missed. */
static void
on_relisten(evutil_socket_t, short, void *arg)
{
	struct server *s = arg;

	listen_for_changes(s);
	if (!s->listing.tools)
		server_list(s, NULL);
}

/* A server that serves keeps the list that it has. */
static void
not_listed(struct server *s, const char *text)
{
	if (s->state != TOOL_SERVER_SERVING) {
		server_give_up(s, "it does not list its tools: %s", text);
		return;
	}
	listing_drop(&s->listing);
	if (s->is_stale)
		server_arm(&s->relist, RELIST_MS);
}

static void
on_listed(struct server *s, const json_t *result)
{
	const json_t *tools = json_object_get(result, "tools");
	const char *next = json_string_value(json_object_get(result, "nextCursor"));
	bool is_first = s->state != TOOL_SERVER_SERVING;

	if (!json_is_array(tools)) {
		not_listed(s, "its answer to tools/list has no tools");
		return;
	}
	listing_take(&s->listing, tools, s->is_modern && s->remote);
	if (next && ++s->listing.pages < PAGES_MAX && strlen(next) <= CURSOR_MAX) {
		server_list(s, next);
		return;
	}
	if (s->has_resources)
		listing_add_reader(&s->listing);
	s->state = TOOL_SERVER_SERVING;
	if (is_first)
		s->served_since = clock_ms();
	s->n_left_out = s->listing.left_out;
	s->n_tools = listing_end(&s->listing, s->options.number, s->options.tell, s->options.arg);
	tell_state(s, "");
	if (is_first)
		listen_for_changes(s);
	if (s->is_stale)
		server_arm(&s->relist, RELIST_MS);
}

static void
on_relist(evutil_socket_t, short, void *arg)
{
	struct server *s = arg;

	if (s->state != TOOL_SERVER_SERVING || s->listing.tools)
		return;
	if (s->options.is_full(s->options.arg))
		server_arm(&s->relist, RELIST_MS);
	else
		server_list(s, NULL);
}

/* ---- messages of the server ---- */

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
	(void)server_write(s, message, 0);
}

static void
on_notification(struct server *s, const char *method, const json_t *params)
{
	if (strcmp(method, "notifications/progress") == 0)
		call_on_progress(s, params);
	if (strcmp(method, "notifications/tools/list_changed") != 0)
		return;
	if (s->listing.tools)
		s->is_stale = true;
	else if (s->state == TOOL_SERVER_SERVING && !evtimer_pending(&s->relist, NULL))
		server_arm(&s->relist, RELIST_MS);
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
			server_give_up(s, "it answers initialize with an error: %s", error);
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
		call_on_result(s, request, result, error);
		break;
	}
}

static void
take_answer(struct server *s, const json_t *message, const json_t *id)
{
	const json_t *error = json_object_get(message, "error");
	const json_t *result = error ? NULL : json_object_get(message, "result");
	const char *said = json_string_value(json_object_get(error, "message"));
	struct request *request = request_find(s, id), answered;
	char text[256];

	/* A notification has no answer: only its HTTP status ends it. */
	if (!request || request->kind == INITIALIZED)
		return;
	if (s->remote)
		remote_release(s->remote, request->id);
	shape_text(text, sizeof(text), said ? said : "no message");
	if (request->kind == CALL && result && call_is_task(s, request, result, &result))
		return;
	answered = *request;
	request_forget(request);
	on_answer(s, &answered, result, text);
}

/* Does this status mean that the server does not know the method? Statuses about credentials or
 * trouble say nothing about its era. */
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
	struct request *request = request_find(s, number), failed;

	json_decref(number);
	if (!request)
		return;
	failed = *request;
	request_forget(request);
	if (failed.kind == DISCOVER && is_unknown(status))
		server_initialize(s);
	else if (failed.kind == CALL)
		call_fail_with(s, failed.call, "the server %s has not answered the call, which may "
			     "have been done or not: %s", s->options.name, text);
	else if (failed.kind == INITIALIZED && status >= 200 && status < 300)
		server_list(s, NULL);
	else if (failed.kind == LIST)
		not_listed(s, text);
	else if (failed.kind != LISTEN)
		server_give_up(s, "%s", text);
	else if (status == 0 || status == 200)
		listen_later(s);
}

/* The line is not JSON, is ambiguous, or holds too much: fails the call whose answer it seems to
 * be. */
static void
on_unreadable(struct server *s, const char *line, size_t len, const char *why)
{
	static const char key[] = "\"id\":";
	const char *end = line + len, *at = line;

	/* When the server goes down, the line is gone. */
	while (s->state != TOOL_SERVER_DOWN &&
	       (at = memmem(at, (size_t)(end - at), key, strlen(key)))) {
		at += strlen(key);
		at += strspn(at, " ");
		on_failed(s, strtoull(at, NULL, 10), 200, why);
	}
}

static void
on_line(void *arg, char *line, size_t len)
{
	struct server *s = arg;
	bool fits = jsonbound_values(line, len) <= MESSAGE_VALUES_MAX;
	json_t *message = fits ? json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
					    NULL) : NULL;
	const json_t *id = json_object_get(message, "id");
	const char *method = json_string_value(json_object_get(message, "method"));

	/* Any other line is ignored: some servers write a greeting. */
	if (!message)
		on_unreadable(s, line, len, fits ? "its answer cannot be read as JSON"
			      : "its answer has too many values, or is nested too deeply");
	if (method && id && !json_is_null(id))
		on_request(s, id, method);
	else if (method)
		on_notification(s, method, json_object_get(message, "params"));
	else if (id)
		take_answer(s, message, id);
	json_decref(message);
}

static void
on_late(evutil_socket_t, short, void *arg)
{
	struct request *request = arg, late = *request;
	struct server *s = request->server;
	char late_text[64];

	if (late.kind == CALL) {
		call_is_late(request);
		return;
	}
	/* A program may still be starting: its late answer counts too. */
	if (late.kind == DISCOVER && !s->remote) {
		s->discovers_late = true;
		server_initialize(s);
		return;
	}
	request_forget(request);
	snprintf(late_text, sizeof(late_text), "it has not answered within %d seconds",
		 START_MS / 1000);
	if (s->remote)
		remote_cancel(s->remote, late.id);
	if (late.kind == DISCOVER) {
		server_initialize(s);
	} else if (late.kind == LIST) {
		not_listed(s, late_text);
	} else {
		server_give_up(s, "%s", late_text);
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
	s->is_modern = s->discovers_late = false;
	s->relistened = 0;
	tell_state(s, "");
	if (!s->remote)
		r = process_start(&s->process);
	if (r < 0) {
		char text[128];

		snprintf(text, sizeof(text), "it cannot be started: %s", strerror(-r));
		go_down(s, text);
	} else if (s->skips_discover) {
		server_initialize(s);
	} else {
		ask_first(s, DISCOVER, "server/discover", xalloc_check(json_object()),
			  DISCOVER_MS + (*s->options.token_url ? REMOTE_TOKEN_MS : 0));
	}
}

static void
on_again(evutil_socket_t, short, void *arg)
{
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

void
server_end(struct server *s)
{
	event_del(&s->again);
	event_del(&s->relist);
	event_del(&s->relisten);
	while (!LIST_EMPTY(&s->requests))
		request_forget(LIST_FIRST(&s->requests));
	s->state = TOOL_SERVER_DOWN;
	if (s->remote)
		remote_end(s->remote);
	else
		process_end(&s->process);
}

bool
server_is_busy(const struct server *s)
{
	return s->remote && remote_is_busy(s->remote);
}
