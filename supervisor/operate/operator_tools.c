/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: operators' calls that have no answer yet.
 * Reads:   requests of operators; what other servers say, bounded by engine/upstream.h. */
#include "supervisor/operate/operator_tools.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonbound.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/execution.h"
#include "engine/upstream.h"
#include "govern/audit.h"
#include "policy/chain.h"

#define CALL_SECONDS 60
#define RESULT_MAX (1024 * 1024)	/* bytes */

struct operator_call {
	struct upstream_call *call;	/* NULL: it waits for its record */
	struct writing_wait recorded;
	const struct engine *engine;
	char *text;			/* the arguments */
	struct audit *audit;
	const struct upstream_server *server;
	char *tool, *principal;
	char hash[CHAIN_DIGITS + 1];		/* of the arguments */
	uint64_t since_us;
	void (*done)(void *arg, json_t *answer);
	void *arg;
};

/* ---- what there is ---- */

static json_t *
operator_tools_first_line(const struct upstream_tool *tool)
{
	json_auto_t *about = json_loads(tool->about, JSON_ALLOW_NUL, NULL);
	const char *text = json_string_value(json_object_get(about, "description"));

	return json_stringn(text ? text : "", text ? strcspn(text, "\n") : 0);
}

json_t *
operator_tools_list(const struct engine *engine)
{
	const struct upstream_server *server;
	json_t *list = json_array();

	for (size_t i = 0; (server = upstream_server(engine_upstream(engine), i)); i++)
		for (size_t k = 0; k < server->n_tools; k++)
			json_array_append_new(list, json_pack("{s:s,s:s,s:b,s:o}", "server",
				server->name, "tool", server->tool[k].name, "read_only",
				server->tool[k].read_only, "description",
				operator_tools_first_line(&server->tool[k])));
	return json_pack("{s:b,s:o}", "ok", 1, "tools", list);
}

static const struct upstream_tool *
operator_tools_find(const struct engine *engine, const json_t *request,
		    const struct upstream_server **server_r, struct why *why_r)
{
	const char *server = json_string_value(json_object_get(request, "server"));
	const char *name = json_string_value(json_object_get(request, "tool"));
	const struct upstream_tool *tool = NULL;

	*server_r = server ? upstream_find(engine_upstream(engine), server) : NULL;
	if (!*server_r) {
		why_say(why_r, -ENOENT, "server", "there is no server of that name");
		return NULL;
	}
	if (name)
		tool = upstream_find_tool(*server_r, name);
	if (!tool)
		why_say(why_r, -ENOENT, "tool", "the server %s %s", server,
			(*server_r)->state == TOOL_SERVER_SERVING ? "has no such tool"
								  : "does not run now");
	return tool;
}

json_t *
operator_tools_describe(const struct engine *engine, const json_t *request, struct why *why_r)
{
	const struct upstream_server *server;
	const struct upstream_tool *tool = operator_tools_find(engine, request, &server, why_r);

	if (!tool)
		return NULL;
	return json_pack("{s:b,s:o}", "ok", 1, "about", json_loads(tool->about, JSON_ALLOW_NUL,
								  NULL));
}

/* ---- calls ---- */

static void
operator_tools_free_call(struct operator_call *call)
{
	writing_unwait(&call->recorded);
	free(call->text);
	free(call->tool);
	free(call->principal);
	free(call);
}

static json_t *
operator_tools_about(const struct operator_call *call, json_t *more)
{
	xalloc_check(more);
	json_object_set_new(more, "by", json_string("operator"));
	json_object_set_new(more, "server", json_string(call->server->name));
	json_object_set_new(more, "tool", json_string(call->tool));
	json_object_set_new(more, "arguments_sha256", json_string(call->hash));
	return more;
}

static void
operator_tools_record_end(const struct operator_call *call, unsigned int end, const char *body,
			  size_t len)
{
	char hash[CHAIN_DIGITS + 1];

	chain_hash(body, len, hash);
	audit_write(call->audit, AUDIT_TOOL_ENDED, call->principal, NULL, operator_tools_about(call,
		json_pack("{s:s,s:I,s:I,s:s}", "status", tool_end_name(end),
			  "ms", (json_int_t)((clock_us() - call->since_us) / 1000), "bytes",
			  (json_int_t)len, "result_sha256", hash)));
}

static void
operator_tools_on_called(void *arg, enum tool_status status, const char *body, size_t len)
{
	struct operator_call call = *(struct operator_call *)arg;
	bool has_result = status == TOOL_RETURNED || status == TOOL_RAISED;
	bool fits = !has_result || jsonbound_values(body, len) <= JSON_VALUES_MAX;
	json_t *result = has_result && fits ? json_loadb(body, len, JSON_ALLOW_NUL, NULL) : NULL;

	operator_tools_record_end(&call, status, body, len);
	operator_tools_free_call(arg);
	if (result)
		call.done(call.arg, json_pack("{s:b,s:s,s:o}", "ok", 1, "status",
					      tool_end_name(status), "result", result));
	else if (!fits)
		call.done(call.arg, json_pack("{s:b,s:s}", "ok", 0, "error", "the tool has "
					      "returned, and its result has too many values"));
	else
		call.done(call.arg, json_pack("{s:b,s:s%}", "ok", 0, "error", body, len));
}

static void
operator_tools_make(struct operator_call *call)
{
	call->call = upstream_call(engine_upstream(call->engine), call->server, call->tool,
				   call->text, CALL_SECONDS, RESULT_MAX, operator_tools_on_called,
				   call);
}

static void
operator_tools_on_recorded(void *arg, int error)
{
	struct operator_call *call = arg;
	void (*done)(void *arg, json_t *answer) = call->done;

	if (error == 0) {
		operator_tools_make(call);
		return;
	}
	arg = call->arg;
	operator_tools_free_call(call);
	done(arg, json_pack("{s:b,s:s}", "ok", 0, "error", "the audit log cannot be written"));
}

struct operator_call *
operator_tools_call(const struct engine *engine, struct audit *audit, const char *principal,
		    const json_t *request, void (*done)(void *arg, json_t *answer), void *arg,
		    struct why *why_r)
{
	const json_t *arguments = json_object_get(request, "arguments");
	const struct upstream_server *server;
	const struct upstream_tool *tool = operator_tools_find(engine, request, &server, why_r);
	struct operator_call *call;
	int r;

	if (tool && !json_is_object(arguments))
		why_say(why_r, -EINVAL, "arguments", "arguments: must be an object");
	if (!tool || !json_is_object(arguments))
		return NULL;
	call = xcalloc(1, sizeof(*call));
	*call = (struct operator_call){ .recorded = { .on_written = operator_tools_on_recorded,
						      .arg = call },
					.engine = engine, .audit = audit, .server = server,
					.tool = xstrdup(tool->name),
					.principal = xstrdup(principal), .since_us = clock_us(),
					.done = done, .arg = arg };
	call->text = xalloc_check(json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS));
	chain_hash(call->text, strlen(call->text), call->hash);
	/* The record comes first: without it nothing may happen. */
	r = audit_write_first(audit, AUDIT_TOOL_CALLED, principal, NULL,
			      operator_tools_about(call, json_object()), &call->recorded);
	if (r == 0) {
		operator_tools_make(call);
	} else if (r != -EINPROGRESS) {
		why_say(why_r, -EIO, "audit", "the audit log cannot be written");
		operator_tools_free_call(call);
		return NULL;
	}
	return call;
}

void
operator_tools_drop(struct operator_call *call)
{
	if (!call)
		return;
	if (call->call)
		upstream_drop(call->call);
	operator_tools_record_end(call, TOOL_CANCELLED, "", 0);
	operator_tools_free_call(call);
}
