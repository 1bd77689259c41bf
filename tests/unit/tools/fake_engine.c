/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_engine.h. One engine at a time. */
#include "tests/unit/tools/fake_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/why.h"
#include "engine/upstream.h"
#include "policy/config.h"

struct engine {
	struct event_base *base;
	const struct config *config;
	struct execution *first;
	bool stopping;
	void (*on_done)(void *arg);
	void *on_done_arg;
};

struct tenant {
	struct tenant *next;
	unsigned int holders;
	uint64_t call_bytes;
	char principal[600];
};

static struct tenant *first_tenant;

struct execution {
	struct execution *next;
	struct engine *engine;
	struct execution_watcher watcher;
	bool watched, cancelled;
	enum cancel_reason reason;
	struct limits limits;
	bool is_cell;
	char *script;
	char *answer;			/* of a program of the service; NULL: it is a script */
	unsigned int questions;		/* that it may ask */
	bool asks;			/* ... and waits for the answer */
	char *line;			/* that it got; NULL: none */
	struct event *soon;
};

static struct fake_record record;
static const struct fake_python *pythons;
static const char *const *answers;

void
fake_engine_answers(const char *const *these)
{
	answers = these;
}

void
fake_engine_pythons(const struct fake_python *these)
{
	pythons = these;
}

const struct fake_record *
fake_engine_record(void)
{
	return &record;
}

struct event_base *
fake_engine_base(const struct engine *engine)
{
	return engine->base;
}

int
engine_new(const struct engine_options *options, struct engine **engine_r)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	memset(&record, 0, sizeof(record));
	engine->base = options->base;
	engine->config = options->config;
	*engine_r = engine;
	return 0;
}

static void
forget(struct execution *x)
{
	struct execution **link = &x->engine->first;

	while (*link != x)
		link = &(*link)->next;
	*link = x->next;
	event_free(x->soon);
	free(x->script);
	free(x->answer);
	free(x->line);
	free(x);
	record.alive--;
}

void
engine_free(struct engine *engine)
{
	if (!engine)
		return;
	while (engine->first)
		forget(engine->first);
	free(engine);
}

static char *
unhex(const char *hex, size_t *len_r)
{
	size_t n = strlen(hex) / 2;
	char *bytes = malloc(n + 1);
	char digits[3] = "";

	for (size_t i = 0; i < n; i++) {
		memcpy(digits, hex + 2 * i, 2);
		bytes[i] = (char)strtoul(digits, NULL, 16);
	}
	*len_r = n;
	return bytes;
}

static enum outcome_status
status_named(const char *name)
{
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++)
		if (strcmp(outcome_status_name((enum outcome_status)i), name) == 0)
			return (enum outcome_status)i;
	abort();
}

/* The answer of a program of the service; NULL: it is a script, or the test has set no answer. */
static char *
answer_of(const struct execution_request *request)
{
	static const char key[] = "requires-python = '";
	const struct fake_python *python = pythons;
	const char *at;
	char *answer = NULL;

	if (request->internal && answers) {
		answer = strdup(*answers);
		answers += answers[1] != NULL;
		return answer;
	}
	if (!request->internal || !python)
		return NULL;
	if (request->stdin_text) {
		at = strstr(request->stdin_text, key);
		at = at ? at + strlen(key) : "'";
		if (asprintf(&answer, "{\"dependencies\":[],\"requires_python\":\"%.*s\"}",
			     (int)strcspn(at, "'"), at) < 0)
			abort();
		return answer;
	}
	while (python->profile && strcmp(python->profile, request->profile) != 0)
		python++;
	if (!python->profile ||
	    asprintf(&answer, "{\"program\":\"/usr/bin/python3\",\"markers\":{\"python_full_version\":\"%s\"},\"packages\":{}}",
		     python->version) < 0)
		abort();
	return answer;
}

static void
fill(const struct execution *x, struct outcome *o, char **text)
{
	size_t len;

	if (x->answer) {
		o->value_repr = o->value_json = x->answer;
	} else if (strncmp(x->script, "status ", 7) == 0) {
		o->status = status_named(x->script + 7);
		o->exit_code = o->status == OUTCOME_OVERLOADED ? -1 : 1;
		o->retry_after_ms = 250;
		o->message = "the fake says so";
		if (o->status == OUTCOME_ERROR) {
			o->error_type = "ValueError";
			o->error_message = "bad \"value\"";
			o->error_traceback = "Traceback\n  line 3\nValueError\n";
			o->error_line = 3;
		}
	} else if (strncmp(x->script, "flood ", 6) == 0) {
		len = strtoul(x->script + 6, NULL, 10);
		*text = malloc(len + 1);
		memset(*text, 'x', len);
		o->stream[STREAM_STDOUT] = (struct outcome_stream){ *text, len, len, 0 };
	} else if (strncmp(x->script, "bytes ", 6) == 0) {
		*text = unhex(x->script + 6, &len);
		o->stream[STREAM_STDOUT] = (struct outcome_stream){ *text, len, len, 0 };
	} else if (strncmp(x->script, "json ", 5) == 0) {
		o->value_repr = o->value_json = x->script + 5;
	} else if (x->line) {
		len = strlen(x->line);
		o->stream[STREAM_STDOUT] = (struct outcome_stream){ x->line, len, len, 0 };
	} else if (strncmp(x->script, "ask ", 4) == 0) {
		o->status = OUTCOME_ERROR;
		o->exit_code = 1;
		o->message = "the fake says so";
		o->error_type = "EOFError";
	} else if (strncmp(x->script, "names ", 6) == 0) {
		o->names = x->script + 6;
	} else {
		len = strlen(x->script);
		o->stream[STREAM_STDOUT] = (struct outcome_stream){ x->script, len, len, 0 };
		o->value_repr = o->value_json = "42";
	}
}

static void
on_soon(evutil_socket_t fd, short what, void *arg)
{
	struct execution *x = arg;
	struct outcome o = {
		.status = OUTCOME_OK, .id = execution_id(x), .exit_code = 0,
		.stream = { { "", 0, 0, 0 }, { "", 0, 0, 0 } }, .transcript = "",
		.duration_ms = 12, .cpu_ms = 8, .peak_memory_bytes = 20 << 20,
		.limits = &x->limits,
	};
	char *text = NULL;

	(void)fd;
	(void)what;
	if (!x->cancelled && strncmp(x->script, "say ", 4) == 0) {
		if (x->watched && x->watcher.on_output)
			x->watcher.on_output(x->watcher.arg, STREAM_STDOUT, x->script + 4,
					     strlen(x->script + 4));
		return;
	}
	if (!x->cancelled && x->questions > 0 && strncmp(x->script, "ask ", 4) == 0) {
		x->questions = 0;
		x->asks = true;
		x->watcher.on_prompt(x->watcher.arg, 1, x->script + 4, strlen(x->script + 4));
		return;
	}
	if (x->cancelled) {
		o.status = OUTCOME_CANCELLED;
		o.exit_code = 137;
		o.message = x->reason == CANCEL_SHUTDOWN ? "cancelled: shutdown" : "cancelled";
	} else {
		fill(x, &o, &text);
	}
	if (x->is_cell)
		o.state = o.status == OUTCOME_OK || o.status == OUTCOME_ERROR
				  ? STATE_COMMITTED : STATE_ROLLED_BACK;
	if (x->watched)
		x->watcher.on_outcome(x->watcher.arg, &o);
	free(text);
	forget(x);
}

static void
remember(const struct execution_request *request)
{
	record.last_args[0] = '\0';
	for (size_t i = 0; i < request->n_args; i++) {
		strncat(record.last_args, request->args[i], 64);
		strcat(record.last_args, "|");
	}
	snprintf(record.last_stdin, sizeof(record.last_stdin), "%s",
		 request->stdin_text ? request->stdin_text : "(none)");
	snprintf(record.last_profile, sizeof(record.last_profile), "%s",
		 request->profile ? request->profile : "(none)");
	snprintf(record.last_imports, sizeof(record.last_imports), "%s",
		 request->imports ? "" : "any");
	for (size_t i = 0; i < request->n_imports; i++) {
		if (i)
			strcat(record.last_imports, " ");
		strncat(record.last_imports, request->imports[i], 64);
	}
	snprintf(record.last_globals, sizeof(record.last_globals), "%s",
		 request->globals ? request->globals : "(none)");
	record.last_limits = request->limits;
}

int
execution_start(struct engine *engine, struct tenant *tenant,
		const struct execution_request *request,
		const struct execution_watcher *watcher, struct execution **execution_r,
		struct why *why_r)
{
	static const struct timeval now;
	struct execution *x;

	(void)tenant;
	if (request->profile && !config_find_profile(engine->config, request->profile))
		return why_say(why_r, -ENOENT, "profile", "profile is not configured");
	x = calloc(1, sizeof(*x));
	x->engine = engine;
	x->watcher = *watcher;
	x->watched = true;
	x->limits = request->limits;
	x->is_cell = request->repl;
	x->script = strndup(request->script, request->script_len);
	x->answer = answer_of(request);
	x->questions = request->prompts;
	x->soon = evtimer_new(engine->base, on_soon, x);
	x->next = engine->first;
	engine->first = x;
	record.started++;
	record.alive++;
	remember(request);
	if (strcmp(x->script, "hang") != 0)
		evtimer_add(x->soon, &now);
	*execution_r = x;
	return 0;
}

void
execution_answer_prompt(struct execution *x, const char *line, size_t len)
{
	static const struct timeval now;

	if (!x->asks || x->cancelled)
		return;
	x->asks = false;
	x->line = line ? strndup(line, len) : NULL;
	record.answered++;
	evtimer_add(x->soon, &now);
}

void
engine_tell_input(const struct engine *engine, enum engine_input what)
{
	(void)engine;
	record.input[what]++;
}

void
execution_cancel(struct execution *x, enum cancel_reason reason)
{
	static const struct timeval now;

	if (x->cancelled)
		return;
	x->cancelled = true;
	x->reason = reason;
	record.cancelled++;
	record.last_reason = reason;
	/* As the real one: stopping a worker drains its pipes. */
	if (x->watched && x->watcher.on_output)
		x->watcher.on_output(x->watcher.arg, STREAM_STDOUT, "late\n", 5);
	evtimer_add(x->soon, &now);
}

void
execution_unwatch(struct execution *x)
{
	x->watched = false;
	record.unwatched++;
}

/* None of them has a process. */
bool
execution_uses(struct execution *x, struct execution_now *now_r)
{
	(void)x;
	(void)now_r;
	return false;
}

const char *
execution_id(const struct execution *x)
{
	(void)x;
	return "x-abcdefghijklmnopqrstuvwxyz";
}

static void
on_shut_down(evutil_socket_t fd, short what, void *arg)
{
	struct engine *engine = arg;

	(void)fd;
	(void)what;
	engine->on_done(engine->on_done_arg);
}

void
engine_shutdown(struct engine *engine, void (*on_done)(void *arg), void *arg)
{
	static const struct timeval soon = { .tv_usec = 20000 };

	for (struct execution *x = engine->first; x; x = x->next)
		execution_cancel(x, CANCEL_SHUTDOWN);
	engine->on_done = on_done;
	engine->on_done_arg = arg;
	event_base_once(engine->base, -1, EV_TIMEOUT, on_shut_down, engine, &soon);
}

struct tenant *
engine_tenant(struct engine *engine, uid_t uid)
{
	char principal[32];

	snprintf(principal, sizeof(principal), "uid:%u", uid);
	return engine_tenant_named(engine, principal);
}

struct tenant *
engine_tenant_named(struct engine *engine, const char *principal)
{
	struct tenant *tenant = first_tenant;

	(void)engine;
	while (tenant && strcmp(tenant->principal, principal) != 0)
		tenant = tenant->next;
	if (!tenant) {
		tenant = calloc(1, sizeof(*tenant));
		snprintf(tenant->principal, sizeof(tenant->principal), "%s", principal);
		tenant->next = first_tenant;
		first_tenant = tenant;
	}
	tenant_hold(tenant);
	return tenant;
}

void
tenant_hold(struct tenant *tenant)
{
	tenant->holders++;
	record.tenants_held++;
}

uint64_t
tenant_charge(struct tenant *tenant, int64_t bytes)
{
	return tenant->call_bytes += (uint64_t)bytes;
}

void
tenant_restrict(struct tenant *tenant, const char *profile)
{
	(void)tenant;
	(void)profile;
}

bool
engine_uses(const struct engine *engine, const char *environment)
{
	(void)engine;
	(void)environment;
	return false;
}

void
execution_await_consent(struct execution *execution, bool awaits)
{
	(void)execution;
	(void)awaits;
}

/* There is no other MCP server: these are never called. */
struct upstream *
engine_upstream(const struct engine *engine)
{
	(void)engine;
	return NULL;
}

const struct upstream_server *
upstream_server(const struct upstream *upstream, size_t i)
{
	(void)upstream;
	(void)i;
	return NULL;
}

const struct upstream_server *
upstream_find(const struct upstream *upstream, const char *name)
{
	(void)upstream;
	(void)name;
	return NULL;
}

const struct upstream_tool *
upstream_find_tool(const struct upstream_server *server, const char *name)
{
	(void)server;
	(void)name;
	return NULL;
}

struct upstream_call *
upstream_call(struct upstream *upstream, const struct upstream_server *server, const char *tool,
	      const char *arguments, uint32_t seconds, uint32_t result_max, upstream_done *done,
	      void *arg)
{
	(void)upstream;
	(void)server;
	(void)tool;
	(void)arguments;
	(void)seconds;
	(void)result_max;
	(void)done;
	(void)arg;
	return NULL;
}

void
upstream_on_progress(struct upstream_call *call, void (*on_progress)(void *arg, const char *text))
{
	(void)call;
	(void)on_progress;
}

struct upstream_call *
upstream_await(struct upstream *upstream, const struct upstream_server *server,
	       upstream_done *done, void *arg)
{
	(void)upstream;
	(void)server;
	(void)done;
	(void)arg;
	return NULL;
}

void
upstream_drop(struct upstream_call *call)
{
	(void)call;
}

void
execution_begin_tool(struct execution *execution, uint32_t number, bool reads)
{
	(void)execution;
	(void)number;
	(void)reads;
}

void
execution_answer_tool(struct execution *execution, uint32_t number, enum tool_status status,
		      const char *body, size_t len)
{
	(void)execution;
	(void)number;
	(void)status;
	(void)body;
	(void)len;
}

struct keeper *
engine_keeper(const struct engine *engine)
{
	(void)engine;
	return NULL;
}

const char *
engine_packages(const struct engine *engine)
{
	(void)engine;
	return "";
}

const char *
engine_extension(const struct engine *engine)
{
	(void)engine;
	return "";
}

const char *
engine_platform(const struct engine *engine)
{
	(void)engine;
	return "";
}

void
engine_enforcement(const struct engine *engine, struct engine_enforcement *how_r)
{
	(void)engine;
	*how_r = (struct engine_enforcement){ .text = "nothing is enforced" };
}

uint64_t
engine_generation(const struct engine *engine, const char *profile)
{
	(void)engine;
	(void)profile;
	return 1;
}

const char *
tenant_profile(const struct tenant *tenant)
{
	(void)tenant;
	return "";
}

void
tenant_count(const struct tenant *tenant, struct tenant_counts *counts_r)
{
	*counts_r = (struct tenant_counts){ .sessions = tenant->holders };
}

const char *
tenant_principal(const struct tenant *tenant)
{
	return tenant->principal;
}

struct filestore *
tenant_filestore(const struct tenant *tenant)
{
	(void)tenant;
	return NULL;
}

void
tenant_release(struct tenant *tenant)
{
	struct tenant **link = &first_tenant;

	record.tenants_held--;
	if (--tenant->holders)
		return;
	while (*link != tenant)
		link = &(*link)->next;
	*link = tenant->next;
	free(tenant);
}

void
tenant_bound(struct tenant *tenant, unsigned int running_max, unsigned int queued_max)
{
	(void)tenant;
	(void)running_max;
	(void)queued_max;
}
