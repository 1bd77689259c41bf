/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: calls that are open, also as a server's task.
 * Reads:   results, tasks and progress of that server, hostile. */
#include "upstream/server_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "policy/shape.h"

#define POLL_MS 1000		/* a task is asked for, unless its server says how often */
#define POLL_LEAST_MS 100
#define POLL_MOST_MS 10000
#define PROGRESS_MS 200		/* between two messages of a call's progress */

/* ---- to the supervisor ---- */

static void
tell_result(struct server *s, uint64_t call, enum tool_status status, const char *body)
{
	s->options.tell(s->options.arg, &(struct msg){
		.type = MSG_TOOLS_RESULT,
		.tools_result = { .call = call, .status = status, .body = msg_str(body) } });
}

void
call_fail_with(struct server *s, uint64_t call, const char *format, ...)
{
	char text[TOOL_TROUBLE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell_result(s, call, TOOL_FAILED, text);
}

/* ---- given up ---- */

/* Cancels a task that the server has made of a call: it goes on without a request. */
static void
cancel_task(struct server *s, const struct request *request)
{
	json_t *params = xalloc_check(json_pack("{s:s}", "taskId", request->task));

	if (s->is_modern)
		json_object_set_new(params, "_meta", server_envelope());
	(void)server_write(s, xalloc_check(json_pack("{s:s,s:I,s:s,s:o}", "jsonrpc", "2.0", "id",
						   (json_int_t)++s->last_id, "method",
						   "tasks/cancel", "params", params)), 0);
}

/* Tells the server that a request is not awaited any more. */
static void
notify_cancelled(struct server *s, const struct request *request, const char *why)
{
	json_t *params;

	if (s->remote && request->id != 0)
		remote_cancel(s->remote, request->id);
	if (request->task) {
		cancel_task(s, request);
		return;
	}
	/* For a modern server the end of the connection means that. */
	if (s->remote && s->is_modern)
		return;
	params = xalloc_check(json_pack("{s:I,s:s}", "requestId", (json_int_t)request->id,
					"reason", why));
	if (s->is_modern)
		json_object_set_new(params, "_meta", server_envelope());
	server_notify(s, "notifications/cancelled", params);
}

/* ---- progress ---- */

void
call_on_progress(struct server *s, const json_t *params)
{
	struct request *request = request_find(s, json_object_get(params, "progressToken"));
	const json_t *progress = json_object_get(params, "progress");
	const json_t *total = json_object_get(params, "total");
	const char *message = json_string_value(json_object_get(params, "message"));
	char said[TOOL_PROGRESS_MAX / 2], text[TOOL_PROGRESS_MAX], of[32] = "";
	uint64_t now = clock_ms();

	if (!request || request->kind != CALL || !json_is_number(progress) ||
	    (request->told_ms != 0 && now - request->told_ms < PROGRESS_MS))
		return;
	request->told_ms = now;
	shape_text(said, sizeof(said), message ? message : "");
	if (json_is_number(total))
		snprintf(of, sizeof(of), " of %.6g", json_number_value(total));
	snprintf(text, sizeof(text), "%.6g%s%s%s", json_number_value(progress), of,
		 *said ? ": " : "", said);
	s->options.tell(s->options.arg, &(struct msg){
		.type = MSG_TOOLS_PROGRESS,
		.tools_progress = { .call = request->call, .text = msg_str(text) } });
}

/* ---- tasks: calls whose result comes later ---- */

static void fail_call(struct server *s, struct request *request, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A call is over without a result. */
static void
fail_call(struct server *s, struct request *request, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	call_fail_with(s, request->call, "the server %s %s", s->options.name, text);
	request_forget(request);
}

/* An id that HTTP can have in a header. */
static bool
is_task_id(const json_t *id)
{
	const char *text = json_string_value(id);
	size_t len = json_string_length(id);

	if (!text || len == 0 || len > ID_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

/* Asks for the task again after a while. A server up to revision 2025-11-25 answers tasks/result
 * only when there is a result, so it is asked at once. */
static void
await_task(struct server *s, struct request *request, const json_t *task)
{
	const json_t *often = json_object_get(task, "pollIntervalMs");
	json_int_t ms = json_is_integer(often) ? json_integer_value(often) : POLL_MS;

	if (!s->is_modern)
		ms = 0;
	else if (ms < POLL_LEAST_MS)
		ms = POLL_LEAST_MS;
	request->id = 0;
	server_arm(&request->poll, (uint32_t)(ms < POLL_MOST_MS ? ms : POLL_MOST_MS));
}

void
call_on_poll(evutil_socket_t, short, void *arg)
{
	struct request *request = arg;
	struct server *s = request->server;

	request->id = ++s->last_id;
	if (request_send(s, request, s->is_modern ? "tasks/get" : "tasks/result", xalloc_check(
			 json_pack("{s:s}", "taskId", request->task))) < 0)
		fail_call(s, request, "cannot be asked for its task; the call may have been done "
			  "or not");
}

bool
call_is_task(struct server *s, struct request *request, const json_t *answer,
	     const json_t **result_r)
{
	const char *type = json_string_value(json_object_get(answer, "resultType"));
	const json_t *task = s->is_modern ? answer : json_object_get(answer, "task");
	const char *status = json_string_value(json_object_get(task, "status"));
	const json_t *id = json_object_get(task, "taskId");
	bool begins = !request->task && (s->is_modern ? type && strcmp(type, "task") == 0
						      : json_is_object(task));

	*result_r = answer;
	if (!begins && !(request->task && s->is_modern))
		return false;
	if (!is_task_id(id) || (!begins && strcmp(json_string_value(id), request->task) != 0) ||
	    !status) {
		fail_call(s, request, "has made the call a task that cannot be followed");
		return true;
	}
	if (begins)
		request->task = xstrdup(json_string_value(id));
	if (!s->is_modern || strcmp(status, "working") == 0 || begins) {
		await_task(s, request, task);
	} else if (strcmp(status, "completed") == 0) {
		*result_r = json_object_get(answer, "result");
		return false;
	} else if (strcmp(status, "input_required") == 0) {
		cancel_task(s, request);
		fail_call(s, request, "wants more from its client before it answers, which scripts "
			  "cannot give");
	} else {
		fail_call(s, request, strcmp(status, "cancelled") == 0
			  ? "has cancelled the task of the call"
			  : "says that the task of the call has failed");
	}
	return true;
}

/* A resource in the form that scripts get: a tool's result with the contents as blocks. Owned;
 * NULL: it is malformed. */
static json_t *
resource_result(const json_t *result)
{
	const json_t *contents = json_object_get(result, "contents");
	json_t *blocks = xalloc_check(json_array()), *one;
	size_t i;

	json_array_foreach(contents, i, one)
		json_array_append_new(blocks, xalloc_check(json_pack("{s:s,s:O}", "type",
								     "resource", "resource", one)));
	return json_is_array(contents) ? json_pack("{s:o}", "content", blocks)
				       : (json_decref(blocks), NULL);
}

void
call_on_result(struct server *s, const struct request *request, const json_t *result,
	  const char *error)
{
	enum tool_status status;
	json_t *contents = NULL;
	char *body;

	if (!result) {
		call_fail_with(s, request->call, "the server %s answers with an error: %s",
			     s->options.name, error);
		return;
	}
	if (request->reads)
		contents = resource_result(result);
	status = shape_result(request->reads ? contents : result, request->result_max, &body);
	json_decref(contents);
	tell_result(s, request->call, status, body);
	free(body);
}

/* ---- calls ---- */

void
call_is_late(struct request *request)
{
	struct server *s = request->server;
	uint32_t seconds = request->seconds;
	uint64_t call = request->call;

	notify_cancelled(s, request, "it took too long");
	request_forget(request);
	call_fail_with(s, call, "the server %s has not answered within %" PRIu32 " seconds; what "
		       "the call does may still be done", s->options.name, seconds);
}

void
server_call(struct server *s, const struct msg_tools_call *call)
{
	own_mem char *tool = xmemdup0(call->tool.at, call->tool.len);
	json_t *arguments, *params;
	struct request *request;
	bool reads;
	int r;

	if (s->state != TOOL_SERVER_SERVING) {
		call_fail_with(s, call->call, "the server %s does not run now", s->options.name);
		return;
	}
	arguments = json_loadb(call->arguments.at, call->arguments.len, JSON_ALLOW_NUL, NULL);
	if (!json_is_object(arguments)) {
		json_decref(arguments);
		call_fail_with(s, call->call, "the arguments are not a JSON object");
		return;
	}
	reads = listing_is_reader(&s->listing, tool);
	if (reads && !json_is_string(json_object_get(arguments, "uri"))) {
		json_decref(arguments);
		call_fail_with(s, call->call, "uri must be a string");
		return;
	}
	if (reads)
		params = json_pack("{s:O}", "uri", json_object_get(arguments, "uri"));
	else
		params = json_pack("{s:s,s:O}", "name", tool, "arguments", arguments);
	xalloc_check(params);
	json_decref(arguments);
	if (!s->is_modern && listing_wants_task(&s->listing, tool))
		json_object_set_new(params, "task", json_pack("{s:I}", "ttl",
							      (json_int_t)call->seconds * 1000));
	r = request_ask(s, CALL, reads ? LISTING_READER : "tools/call", params, call->seconds * 1000, &request);
	if (r < 0) {
		call_fail_with(s, call->call, r == -ENOBUFS
			       ? "the server %s does not read what it is sent" : r == -E2BIG
			       ? "an argument that the server %s wants in a header is longer than "
				 "4096 bytes, and cannot be sent"
			       : "the server %s does not run now", s->options.name);
		return;
	}
	request->call = call->call;
	request->reads = reads;
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
		notify_cancelled(s, request, "the result is not needed any more");
		request_forget(request);
		return;
	}
}
