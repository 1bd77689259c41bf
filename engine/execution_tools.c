/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   calls of tools, hostile: our own worker makes no more than it may, at once and in all,
 * numbers them, and names servers that it was told of. */
#include "engine/execution_tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/execution_parts.h"
#include "engine/worker.h"

static bool
is_told_of(const struct msg_strs *servers, const struct msg_str *name)
{
	for (size_t i = 0; i < servers->n; i++)
		if (servers->item[i].len == name->len &&
		    memcmp(servers->item[i].at, name->at, name->len) == 0)
			return true;
	return false;
}

int
tools_take(struct execution *e, const struct msg_tool_call *call)
{
	struct execution_tools *t = &e->tools;
	own_mem char *server = NULL, *tool = NULL, *arguments = NULL;

	if (call->id != e->serial || call->number != t->number + 1 ||
	    call->number > e->request.tool_calls || t->n_open >= e->request.tool_calls_at_once ||
	    call->has_tool != call->has_arguments || !is_told_of(&e->request.tools, &call->server))
		return -EBADMSG;
	t->number = call->number;
	t->open[t->n_open++] = call->number;
	if (e->stopping != GOES_ON || e->watcher.on_tool == NULL) {
		static const char text[] = "the run is being ended";

		execution_answer_tool(e, call->number, TOOL_REFUSED, text, strlen(text));
		return 0;
	}
	server = xmemdup0(call->server.at, call->server.len);
	if (call->has_tool) {
		tool = xmemdup0(call->tool.at, call->tool.len);
		arguments = xmemdup0(call->arguments.at, call->arguments.len);
	}
	e->watcher.on_tool(e->watcher.arg, &(struct execution_tool){
		.number = call->number, .server = server, .tool = tool, .arguments = arguments,
		.arguments_len = call->has_arguments ? call->arguments.len : 0 });
	return 0;
}

/* False: it is not open. */
static bool
close_call(struct execution_tools *t, uint32_t number)
{
	for (size_t i = 0; i < t->n_open; i++) {
		if (t->open[i] != number)
			continue;
		t->open[i] = t->open[--t->n_open];
		return true;
	}
	return false;
}

static int
answer(struct execution *e, const struct msg_tool_result *result)
{
	const struct msg msg = { .type = MSG_TOOL_RESULT, .tool_result = *result };

	return e->repl != NULL ? e->repl->stage->send(e->repl, &msg, -1)
			       : worker_send(e->worker, &msg, -1);
}

void
execution_answer_tool(struct execution *e, uint32_t number, enum tool_status status,
		      const char *body, size_t len)
{
	struct msg_tool_result result = { .number = number, .status = status,
					  .body = { body, len } };

	if (e->state != EXECUTION_RUNNING || !close_call(&e->tools, number))
		return;
	/* Another failed send means that the process has ended; its end is reported elsewhere. */
	if (answer(e, &result) == -ENOBUFS) {
		result.status = TOOL_FAILED;
		result.body = msg_str("the script has not read its earlier results");
		(void)answer(e, &result);
	}
}

void
execution_await_consent(struct execution *e, bool awaits)
{
	if (e->state != EXECUTION_RUNNING || awaits == (e->consents.since_us != 0))
		return;
	if (awaits)
		(void)prompts_open(&e->consents, e->consents.number + 1, clock_us());
	else
		prompts_close(&e->consents, clock_us());
	execution_look_at_clocks(e);
}
