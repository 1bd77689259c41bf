/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the record of an execution's calls.
 * Reads:   calls of tools, from a script's process, which is hostile. An honest worker makes no
 * more calls than it may, at a time and in all, numbers them, and names servers that it was told
 * of; anything else is a breach of the protocol. */
#include "engine/execution_tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/running.h"
#include "engine/worker.h"
#include "policy/tools.h"

struct tool_call {
	struct outcome_tool_call told;
	uint32_t number;
	bool open;			/* it has no answer yet */
	bool is_list;			/* it asks which tools a server has: it is not reported */
	bool reads;
	uint64_t began_us;		/* when it was sent to its server; 0: it was not */
};

struct execution_tools {
	uint32_t number;			/* of the last call; 0: none */
	uint32_t n_lists;			/* how many calls asked for a list */
	struct tool_call *call;			/* in their order: the open calls, and at most
						 * OUTCOME_CALLS_MAX ended ones */
	size_t n, n_open;
	uint32_t left_out;
	struct outcome_tool_call *shown;	/* while the answer is given */
};

struct execution_tools *
tools_new(void)
{
	return xcalloc(1, sizeof(struct execution_tools));
}

/* ---- what is told of calls ---- */

static void
tools_copy_text(char *to, size_t size, const struct msg_str *from)
{
	size_t len = from->len < size ? from->len : size - 1;

	if (len < from->len)
		len -= utf8_begun(from->at, len);
	memcpy(to, from->at, len);
	to[len] = '\0';
}

static void
tools_forget(struct execution_tools *t, size_t at)
{
	memmove(&t->call[at], &t->call[at + 1], (--t->n - at) * sizeof(*t->call));
}

/* The ended call to leave out of the outcome: the first one that only read and ended well, or else
 * the first one. */
static size_t
tools_dullest(const struct execution_tools *t)
{
	size_t first = t->n;

	for (size_t i = t->n; i-- > 0;)
		if (!t->call[i].open)
			first = i;
	for (size_t i = first; i < t->n; i++)
		if (!t->call[i].open && t->call[i].reads && t->call[i].told.end == TOOL_RETURNED)
			return i;
	return first;
}

/* The open call with this number. NULL: there is none. */
static struct tool_call *
find_open(const struct execution_tools *t, uint32_t number)
{
	for (size_t i = 0; t != NULL && i < t->n; i++)
		if (t->call[i].open && t->call[i].number == number)
			return &t->call[i];
	return NULL;
}

static void
end_call(struct execution *e, struct tool_call *call, unsigned int end, size_t bytes)
{
	const struct engine_observer *observer = e->engine->options.observer;
	struct execution_tools *t = e->tools;

	call->open = false;
	t->n_open--;
	if (call->is_list) {
		tools_forget(t, (size_t)(call - t->call));
		return;
	}
	call->told.end = end == TOOL_CANCELLED && !call->began_us ? TOOL_REFUSED : end;
	call->told.bytes = end == TOOL_RETURNED || end == TOOL_RAISED ? bytes : 0;
	if (call->began_us)
		call->told.ms = (clock_us() - call->began_us) / 1000;
	if (observer != NULL && observer->on_tool_call != NULL)
		observer->on_tool_call(observer->arg, &(struct engine_tool_call){
			.server = call->told.server,
			/* The tools of clients have no name here: clients choose the names, and
			 * could make any number of them. */
			.tool = call->began_us && strcmp(call->told.server, TOOLS_CLIENT) != 0
				? call->told.tool : NULL,
			.end = call->told.end, .ms = call->told.ms, .bytes = call->told.bytes });
	if (t->n - t->n_open > OUTCOME_CALLS_MAX) {
		tools_forget(t, tools_dullest(t));
		t->left_out++;
	}
}

void
execution_begin_tool(struct execution *e, uint32_t number, bool reads)
{
	struct tool_call *call = find_open(e->tools, number);

	if (call == NULL)
		return;
	call->reads = reads;
	call->began_us = clock_us();
}

void
tools_end(struct execution *e)
{
	struct execution_tools *t = e->tools;

	while (t != NULL && t->n_open > 0)
		for (size_t i = 0; i < t->n; i++)
			if (t->call[i].open) {
				end_call(e, &t->call[i], TOOL_CANCELLED, 0);
				break;
			}
}

void
tools_show(struct execution_tools *t, struct outcome *outcome)
{
	if (t == NULL)
		return;
	t->shown = xcalloc(t->n + 1, sizeof(*t->shown));
	for (size_t i = 0; i < t->n; i++)
		t->shown[i] = t->call[i].told;
	outcome->tool_call = t->shown;
	outcome->n_tool_calls = t->n;
	outcome->more_tool_calls = t->left_out;
}

void
tools_free(struct execution_tools *t)
{
	if (t == NULL)
		return;
	free(t->call);
	free(t->shown);
	free(t);
}

/* ---- calls ---- */

static bool
is_told_of(const struct msg_strs *servers, const struct msg_str *name)
{
	for (size_t i = 0; i < servers->n; i++)
		if (servers->item[i].len == name->len &&
		    memcmp(servers->item[i].at, name->at, name->len) == 0)
			return true;
	return false;
}

static bool
may_be_made(const struct execution *e, const struct msg_tool_call *call)
{
	const struct execution_tools *t = e->tools;

	return call->has_tool ? t->number - t->n_lists < e->request.tool_calls
			      : t->n_lists < TOOL_LISTS_MAX && e->request.tool_calls > 0;
}

int
tools_take(struct execution *e, const struct msg_tool_call *call)
{
	struct execution_tools *t = e->tools;
	own_mem char *server = NULL, *tool = NULL, *arguments = NULL;
	struct tool_call *made;

	if (t == NULL || call->id != e->serial || call->number != t->number + 1 ||
	    t->n_open >= e->request.tool_calls_at_once || !may_be_made(e, call) ||
	    call->has_tool != call->has_arguments || !is_told_of(&e->request.tools, &call->server))
		return -EBADMSG;
	t->number = call->number;
	t->n_lists += !call->has_tool;
	t->call = xrealloc(t->call, (t->n + 1) * sizeof(*t->call));
	made = &t->call[t->n++];
	*made = (struct tool_call){ .number = call->number, .open = true,
				    .is_list = !call->has_tool };
	tools_copy_text(made->told.server, sizeof(made->told.server), &call->server);
	if (call->has_tool) {
		tools_copy_text(made->told.tool, sizeof(made->told.tool), &call->tool);
		tools_copy_text(made->told.arguments, sizeof(made->told.arguments),
				&call->arguments);
		made->told.arguments_cut = call->arguments.len > OUTCOME_ARGUMENTS_MAX;
	}
	t->n_open++;
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

static int
tools_answer(struct execution *e, const struct msg_tool_result *result)
{
	const struct msg msg = { .type = MSG_TOOL_RESULT, .tool_result = *result };

	return e->repl != NULL ? e->engine->cells->send(e->repl, &msg, -1)
			       : worker_send(e->worker, &msg, -1);
}

void
execution_answer_tool(struct execution *e, uint32_t number, enum tool_status status,
		      const char *body, size_t len)
{
	struct msg_tool_result result = { .number = number, .status = status,
					  .body = { body, len } };
	struct tool_call *call = find_open(e->tools, number);

	if (e->state != EXECUTION_RUNNING || call == NULL)
		return;
	end_call(e, call, status, len);
	/* -ENOBUFS: the result does not fit. Any other failed send means that the process has
	 * ended; its end is reported elsewhere. */
	if (tools_answer(e, &result) == -ENOBUFS) {
		result.status = TOOL_FAILED;
		result.body = msg_str("the script has not read its earlier results");
		(void)tools_answer(e, &result);
	}
}

void
execution_await_consent(struct execution *e, bool awaits)
{
	if (e->state != EXECUTION_RUNNING || awaits == (e->consents.since_us != 0))
		return;
	if (awaits)
		(void)waits_open(&e->consents, e->consents.number + 1, clock_us());
	else
		waits_close(&e->consents, clock_us());
	execution_look_at_clocks(e);
}
