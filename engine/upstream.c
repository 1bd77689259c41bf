/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the process of mcp-python-tools, calls, and lists of tools.
 * Reads:   frames from that process, which has connections to untrusted servers: each text is
 * bounded, names are checked again, and JSON is parsed before it is kept. */
#include "engine/upstream.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <jansson.h>

#include "base/jsonbound.h"
#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "host/child.h"
#include "host/secret.h"
#include "policy/config.h"
#include "proto/frame.h"

#define START_SECONDS 10
#define GRACE_MS 500		/* the time that the process has to end its sessions with servers */
#define SERVED_MS 60000		/* a process that has served this long does not count as failed */
#define WRITER_MAX (32 * 1024 * 1024)
#define BUCKETS 256		/* of calls, which have numbers in a row */

/* An open call, or the wait for a list. */
struct upstream_call {
	LIST_ENTRY(upstream_call) link;
	struct upstream *upstream;
	uint64_t id;			/* 0: it waits for a list */
	uint32_t server;
	upstream_done *done;
	void (*on_progress)(void *arg, const char *text);	/* NULL: not called */
	void *arg;
	struct event soon;		/* gives the result in a later turn: see finish_soon */
	char *text;
};

struct server {
	struct upstream_server seen;
	struct upstream_tool *next;	/* tools of the list that is arriving */
	size_t n_next, next_bytes, next_values;
};

struct upstream {
	struct upstream_options options;
	struct child child;
	uint64_t stamp;			/* of the files of credentials, at the process's start */
	bool renews;			/* it is being ended, so that the next one gets new
					 * credentials */
	struct server server[TOOL_SERVERS_MAX];
	uint32_t n_servers;
	uint64_t last_id;
	LIST_HEAD(, upstream_call) calls[BUCKETS];
	size_t n_calls;
	void (*on_listed)(void *arg);	/* NULL: not called */
	void *on_listed_arg;
};

_Static_assert(CONFIG_TOOLS_MAX < TOOL_SERVERS_MAX, "messages have room for all of them");

/* ---- servers ---- */

static void
free_tools(struct upstream_tool *tool, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(tool[i].name);
		free(tool[i].about);
	}
	free(tool);
}

static void
drop_next(struct server *s)
{
	free_tools(s->next, s->n_next);
	s->next = NULL;
	s->n_next = s->next_bytes = s->next_values = 0;
}

static void
upstream_set_state(struct server *s, enum tool_server_state state, const char *text, size_t len)
{
	free(s->seen.text);
	s->seen.text = xmemdup0(text, len);
	s->seen.state = state;
}

const struct upstream_server *
upstream_server(const struct upstream *u, size_t i)
{
	return u != NULL && i < u->n_servers ? &u->server[i].seen : NULL;
}

const char *
upstream_state_name(enum tool_server_state state)
{
	static const char *const names[TOOL_SERVER_STATE_COUNT] = { "starting", "serving", "down" };

	return names[state];
}

const struct upstream_server *
upstream_find(const struct upstream *u, const char *name)
{
	for (uint32_t i = 0; u != NULL && i < u->n_servers; i++)
		if (strcmp(u->server[i].seen.name, name) == 0)
			return &u->server[i].seen;
	return NULL;
}

const struct upstream_tool *
upstream_find_tool(const struct upstream_server *server, const char *name)
{
	for (size_t i = 0; i < server->n_tools; i++)
		if (strcmp(server->tool[i].name, name) == 0)
			return &server->tool[i];
	return NULL;
}

/* ---- calls ---- */

static void
free_call(struct upstream_call *call)
{
	LIST_REMOVE(call, link);
	call->upstream->n_calls--;
	event_del(&call->soon);
	free(call->text);
	free(call);
}

static void
upstream_finish(struct upstream_call *call, enum tool_status status, const char *body, size_t len)
{
	upstream_done *done = call->done;
	void *arg = call->arg;

	free_call(call);
	done(arg, status, body, len);
}

static void
on_soon(evutil_socket_t, short, void *arg)
{
	struct upstream_call *call = arg;
	own_mem char *text = call->text;

	call->text = NULL;
	upstream_finish(call, text != NULL ? TOOL_FAILED : TOOL_RETURNED, text != NULL ? text : "",
			text != NULL ? strlen(text) : 0);
}

/* Finishes a call in a later turn of the loop. text: the reason, taken over: the result is
 * TOOL_FAILED; NULL: it is TOOL_RETURNED. */
static void
finish_soon(struct upstream_call *call, char *text)
{
	call->text = text;
	event_active(&call->soon, EV_TIMEOUT, 0);
}

static char *
why_down(const struct upstream *u, const struct server *s)
{
	return xasprintf("the server %s does not run now: %s", s->seen.name,
			 u->child.state == CHILD_DOWN && *u->child.text ? u->child.text
									: s->seen.text);
}

void
upstream_on_progress(struct upstream_call *call, void (*on_progress)(void *arg, const char *text))
{
	call->on_progress = on_progress;
}

/* id: 0 for the wait for a list. */
static struct upstream_call *
new_call(struct upstream *u, uint64_t id, const struct upstream_server *server,
	 upstream_done *done, void *arg)
{
	struct upstream_call *call = xcalloc(1, sizeof(*call));

	*call = (struct upstream_call){ .upstream = u, .id = id, .done = done, .arg = arg };
	while (&u->server[call->server].seen != server)
		call->server++;
	evtimer_assign(&call->soon, u->options.base, on_soon, call);
	LIST_INSERT_HEAD(&u->calls[id % BUCKETS], call, link);
	u->n_calls++;
	return call;
}

struct upstream_call *
upstream_call(struct upstream *u, const struct upstream_server *server, const char *tool,
	      const char *arguments, uint32_t seconds, uint32_t result_max, upstream_done *done,
	      void *arg)
{
	struct upstream_call *call = new_call(u, ++u->last_id, server, done, arg);
	const struct msg msg = { .type = MSG_TOOLS_CALL, .tools_call = {
		.call = call->id, .server = call->server, .tool = msg_str(tool),
		.arguments = msg_str(arguments), .seconds = seconds, .result_max = result_max } };
	int r = -ENOTCONN;

	if (server->state == TOOL_SERVER_SERVING)
		r = child_send(&u->child, &msg, NULL, 0);
	if (r == -ENOBUFS)
		finish_soon(call, xstrdup("too many calls wait to be made"));
	else if (r < 0)
		finish_soon(call, why_down(u, &u->server[call->server]));
	return call;
}

struct upstream_call *
upstream_await(struct upstream *u, const struct upstream_server *server, upstream_done *done,
	       void *arg)
{
	struct upstream_call *call = new_call(u, 0, server, done, arg);

	if (server->state == TOOL_SERVER_SERVING)
		finish_soon(call, NULL);
	else if (server->state == TOOL_SERVER_DOWN)
		finish_soon(call, why_down(u, &u->server[call->server]));
	return call;
}

void
upstream_drop(struct upstream_call *call)
{
	const struct msg msg = { .type = MSG_TOOLS_CANCEL, .tools_cancel.call = call->id };

	/* If the message cannot be sent, a later result is ignored. */
	if (call->id != 0 && call->text == NULL)
		(void)child_send(&call->upstream->child, &msg, NULL, 0);
	free_call(call);
}

/* Finishes an open call, or the wait for a list. */
static void
finish_waiting_call(const struct upstream *u, struct upstream_call *call)
{
	const struct server *of = &u->server[call->server];

	if (event_pending(&call->soon, EV_TIMEOUT, NULL) || call->text != NULL)
		return;
	if (of->seen.state == TOOL_SERVER_SERVING)
		finish_soon(call, NULL);
	else
		finish_soon(call, call->id != 0
			    ? xstrdup("the client of other servers ended in the middle of the "
				      "call, which may have been done or not")
			    : why_down(u, of));
}

/* Finishes the waits for a server's list. s NULL: for all servers. calls: open calls of tools, too.
 */
static void
finish_waiting(struct upstream *u, const struct server *s, bool calls)
{
	struct upstream_call *call;

	/* It finishes in a later turn. The waits are in the first bucket. */
	for (size_t i = 0; i < (calls ? BUCKETS : 1); i++)
		LIST_FOREACH(call, &u->calls[i], link)
			if ((s == NULL || &u->server[call->server] == s) &&
			    (call->id == 0 || calls))
				finish_waiting_call(u, call);
}

/* ---- messages ---- */

/* Does a name have only characters that policy/shape.c allows? */
static bool
is_name(const struct msg_str *name)
{
	for (size_t i = 0; i < name->len; i++)
		if (!isalnum((unsigned char)name->at[i]) && !strchr("_-./:", name->at[i]))
			return false;
	return true;
}

static bool
is_object(const struct msg_str *text)
{
	json_auto_t *json = json_loadb(text->at, text->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
				       NULL);

	return json_is_object(json);
}

static int
on_tool(struct upstream *u, const struct msg_tools_tool *tool)
{
	size_t values = jsonbound_values(tool->about.at, tool->about.len);
	struct server *s;

	if (tool->server >= u->n_servers || !is_name(&tool->name))
		return -EBADMSG;
	s = &u->server[tool->server];
	if (values > TOOLS_VALUES_MAX - s->next_values || !is_object(&tool->about))
		return -EBADMSG;
	s->next_values += values;
	s->next_bytes += tool->about.len;
	if (s->n_next == TOOLS_MAX || s->next_bytes > TOOLS_ABOUT_MAX)
		return -EBADMSG;
	s->next = xrealloc(s->next, (s->n_next + 1) * sizeof(*s->next));
	s->next[s->n_next++] = (struct upstream_tool){
		.name = xmemdup0(tool->name.at, tool->name.len), .read_only = tool->read_only,
		.about = xmemdup0(tool->about.at, tool->about.len) };
	return 0;
}

/* Logs a server's new state. told: the text of TOOLS_SERVER. */
static void
log_server(const struct server *s, const struct msg_str *told)
{
	struct log_quoted text, revision;

	log_line(s->seen.state == TOOL_SERVER_DOWN ? LOG_WARNING : LOG_INFO, "tools-server",
		 "name=%s state=%s revision=%s tools=%zu left_out=%u text=%s", s->seen.name,
		 upstream_state_name(s->seen.state),
		 log_quote(&revision, s->seen.revision, strlen(s->seen.revision)),
		 s->seen.n_tools, s->seen.left_out,
		 log_quote(&text, told->at, told->len));
}

static int
on_server(struct upstream *u, const struct msg_tools_server *told)
{
	struct server *s;

	if (told->server >= u->n_servers)
		return -EBADMSG;
	s = &u->server[told->server];
	if (told->state == TOOL_SERVER_SERVING) {
		if (told->tools != s->n_next)
			return -EBADMSG;
		free_tools(s->seen.tool, s->seen.n_tools);
		s->seen.tool = s->next;
		s->seen.n_tools = s->n_next;
		s->seen.left_out = told->left_out;
		s->next = NULL;
		s->n_next = s->next_bytes = 0;
	}
	drop_next(s);
	free(s->seen.revision);
	s->seen.revision = xmemdup0(told->revision.at, told->revision.len);
	/* The reason why it ended is kept until the server serves again. */
	if (told->state == TOOL_SERVER_STARTING && told->text.len == 0)
		s->seen.state = told->state;
	else
		upstream_set_state(s, told->state, told->text.at, told->text.len);
	log_server(s, &told->text);
	if (told->state != TOOL_SERVER_STARTING)
		finish_waiting(u, s, false);
	if (told->state == TOOL_SERVER_SERVING && u->on_listed != NULL)
		u->on_listed(u->on_listed_arg);
	return 0;
}

static struct upstream_call *
find_call(const struct upstream *u, uint64_t id)
{
	struct upstream_call *call;

	LIST_FOREACH(call, &u->calls[id % BUCKETS], link)
		if (call->id == id)
			break;
	return call;
}

static int
on_progress(const struct upstream *u, const struct msg_tools_progress *progress)
{
	struct upstream_call *call = find_call(u, progress->call);
	own_mem char *text = xmemdup0(progress->text.at, progress->text.len);

	if (call != NULL && call->on_progress != NULL)
		call->on_progress(call->arg, text);
	return 0;
}

static int
on_result(struct upstream *u, const struct msg_tools_result *result)
{
	struct upstream_call *call;

	if (result->status == TOOL_REFUSED)
		return -EBADMSG;
	call = find_call(u, result->call);
	/* The call is not known: the result may have crossed a TOOLS_CANCEL. */
	if (call == NULL)
		return 0;
	if (result->status == TOOL_FAILED && result->body.len > TOOL_TROUBLE_MAX)
		return -EBADMSG;
	upstream_finish(call, result->status, result->body.at != NULL ? result->body.at : "",
			result->body.len);
	return 0;
}

static int
upstream_on_ready(struct upstream *u, const struct msg_tools_ready *ready)
{
	if (u->child.state != CHILD_STARTING)
		return -EBADMSG;
	if (!child_is_of_build(&u->child, &ready->build))
		return -EPROTO;
	child_is_ready(&u->child);
	child_arm(&u->child, SERVED_MS);
	return 0;
}

static int
upstream_on_message(void *arg, struct frame *frame)
{
	struct upstream *u = arg;

	/* The frame reader lets no other messages through. */
	if (frame->msg.type == MSG_TOOLS_READY)
		return upstream_on_ready(u, &frame->msg.tools_ready);
	if (frame->msg.type == MSG_TOOLS_TOOL)
		return on_tool(u, &frame->msg.tools_tool);
	if (frame->msg.type == MSG_TOOLS_SERVER)
		return on_server(u, &frame->msg.tools_server);
	if (frame->msg.type == MSG_TOOLS_PROGRESS)
		return on_progress(u, &frame->msg.tools_progress);
	if (frame->msg.type == MSG_TOOLS_RESULT)
		return on_result(u, &frame->msg.tools_result);
	return -EBADMSG;
}

/* ---- life ---- */

static void
upstream_on_down(void *arg)
{
	struct upstream *u = arg;
	struct child *c = &u->child;
	struct log_quoted quoted;

	if (child_is_told(c))
		log_line(LOG_WARNING, c->has_served ? "tools-lost" : "tools-failed", "text=%s",
			 log_quote(&quoted, c->text, strlen(c->text)));
	for (uint32_t i = 0; i < u->n_servers; i++) {
		upstream_set_state(&u->server[i], TOOL_SERVER_DOWN, c->text, strlen(c->text));
		drop_next(&u->server[i]);
	}
	finish_waiting(u, NULL, true);
	if (!u->renews)
		child_arm(c, child_backoff_ms(c));
}

/* The stamp of the files of credentials. The launcher reads these files when the process is
 * started. */
static uint64_t
upstream_stamp_of(const struct upstream *u)
{
	const struct config *config = u->options.config;
	uint64_t stamp = 0;

	for (size_t i = 0; i < config->n_tools; i++) {
		stamp = secret_stamp(config->tools[i].credential_file, stamp);
		stamp = secret_stamp(config->tools[i].oauth_client_secret_file, stamp);
	}
	return stamp;
}

static void
upstream_start(struct upstream *u)
{
	u->stamp = upstream_stamp_of(u);
	for (uint32_t i = 0; i < u->n_servers; i++)
		upstream_set_state(&u->server[i], TOOL_SERVER_STARTING, "", 0);
	child_start(&u->child, u->options.launcher, 0, 0);
}

static void
upstream_on_due(void *arg)
{
	struct upstream *u = arg;

	if (u->child.state == CHILD_DOWN)
		upstream_start(u);
	else
		u->child.failed_starts = 0;
}

static bool
upstream_is_used(void *arg)
{
	const struct upstream *u = arg;

	return u->n_calls > 0;
}

static const struct child_kind upstream_kind = {
	.name = "mcp-python-tools",
	.launch = LAUNCH_TOOLS,
	.from = FROM_TOOLS,
	.writer_max = WRITER_MAX,
	.start_seconds = START_SECONDS,
	.grace_ms = GRACE_MS,
	.is_used = upstream_is_used,
	.on_message = upstream_on_message,
	.on_down = upstream_on_down,
	.on_due = upstream_on_due,
};

struct upstream *
upstream_new(const struct upstream_options *options)
{
	struct upstream *u = xcalloc(1, sizeof(*u));

	u->options = *options;
	for (size_t i = 0; i < options->config->n_tools; i++) {
		struct server *s = &u->server[u->n_servers++];

		s->seen.name = options->config->tools[i].name;
		s->seen.text = xstrdup("");
		s->seen.revision = xstrdup("");
	}
	child_init(&u->child, &upstream_kind, options->base, u);
	upstream_start(u);
	return u;
}

void
upstream_watch(struct upstream *u, void (*on_listed)(void *arg), void *arg)
{
	u->on_listed = on_listed;
	u->on_listed_arg = arg;
}

void
upstream_free(struct upstream *u)
{
	if (u == NULL)
		return;
	child_done(&u->child);
	for (size_t i = 0; i < BUCKETS; i++)
		while (!LIST_EMPTY(&u->calls[i]))
			free_call(LIST_FIRST(&u->calls[i]));
	for (uint32_t i = 0; i < u->n_servers; i++) {
		struct server *s = &u->server[i];

		drop_next(s);
		free_tools(s->seen.tool, s->seen.n_tools);
		free(s->seen.text);
		free(s->seen.revision);
	}
	free(u);
}

void
upstream_renew_credentials(struct upstream *u)
{
	if (u == NULL || !child_is_up(&u->child) || upstream_stamp_of(u) == u->stamp)
		return;
	child_note(&u->child, 0, "files of credentials have changed, so it is started again");
	u->renews = true;
	child_end(&u->child);
	child_reap(&u->child);
	u->renews = false;
	upstream_start(u);
}
