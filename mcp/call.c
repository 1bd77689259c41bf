/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the id of each call, its progress. */
#include "mcp/call.h"

#include "base/xalloc.h"
#include "mcp/catalog.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/parking.h"
#include "mcp/progress.h"
#include "mcp/task.h"
#include "policy/config.h"

static struct mcp_call *
call_of(struct mcp_audience *audience)
{
	return (struct mcp_call *)((char *)audience - offsetof(struct mcp_call, audience));
}

/* ---- events of the run ---- */

static void
call_on_output(struct mcp_audience *audience, enum stream stream, const char *bytes,
	       size_t len)
{
	struct mcp_call *call = call_of(audience);

	if (call->progress)
		mcp_progress_output(call->progress, stream, bytes, len);
}

static void
call_tell_progress(struct mcp_audience *audience, const struct tool_progress *progress)
{
	struct mcp_call *call = call_of(audience);

	if (call->progress)
		mcp_progress_say(call->progress, progress);
}

static void
call_on_log(struct mcp_audience *audience, const struct tool_log *log)
{
	struct mcp_call *call = call_of(audience);
	struct jsonout out;

	if (call->log_level < 0 || (int)log->level < call->log_level)
		return;
	jsonout_init(&out);
	revision_write_log(&out, log);
	conversation_send(call->exchange, MCP_SENT_NEWS, &out);
}

static void
call_on_task(struct mcp_audience *audience, struct mcp_task *task)
{
	struct mcp_call *call = call_of(audience);
	struct jsonout out;

	if (!(audience->abilities & CLIENT_TAKES_TASKS))
		return;
	jsonout_init(&out);
	jsonrpc_open_result(&out, call->id.raw);
	mcp_task_write_created(task, call->revision, &out);
	jsonrpc_close_result(&out);
	conversation_end_call(call, MCP_SENT_ANSWER, &out, CANCEL_BY_CLIENT);
}

static void
call_on_ask(struct mcp_audience *audience)
{
	mcp_call_ask(call_of(audience));
}

static void
call_on_withdraw(struct mcp_audience *audience, const char *key)
{
	ask_withdraw(call_of(audience), key);
}

static void
call_on_end(struct mcp_audience *audience, const struct tool_answer *answer,
	    const struct tool_failure *failure)
{
	mcp_call_end(call_of(audience), answer, failure);
}

static const struct mcp_audience_type call_audience = {
	.on_output = call_on_output,
	.on_progress = call_tell_progress,
	.on_log = call_on_log,
	.on_ask = call_on_ask,
	.on_withdraw = call_on_withdraw,
	.on_task = call_on_task,
	.on_end = call_on_end,
};

void
mcp_call_end(struct mcp_call *call, const struct tool_answer *answer,
	     const struct tool_failure *failure)
{
	enum mcp_sent kind = MCP_SENT_ANSWER;
	struct jsonout out;

	mcp_progress_finish(call->progress);
	jsonout_init(&out);
	if (failure) {
		kind = failure->kind == FAIL_CLIENT_LACKS && call->revision->modern
			       ? MCP_SENT_REFUSAL : MCP_SENT_ERROR;
		revision_write_failure(call->revision, &out, call->id.raw, call->method,
				       failure);
	} else {
		jsonrpc_open_result(&out, call->id.raw);
		revision_write_answer(call->revision, &out, call->method, answer);
		jsonrpc_close_result(&out);
	}
	conversation_end_call(call, kind, &out, CANCEL_BY_CLIENT);
}

/* ---- questions ---- */

/* Asks in the modern way: answers the request with the questions, and parks the run until another
 * request brings the answers. */
static void
ask_by_answer(struct mcp_call *call)
{
	struct mcp_run *run = call->audience.run;
	struct jsonout out;
	char *state = mcp_parking_put(call->conversation->mcp->tables.parking, run,
				      mcp_run_asks_first(run), &call->binding);

	if (!state) {
		mcp_run_give_up(run);	/* too many runs are parked already */
		return;
	}
	jsonout_init(&out);
	jsonrpc_open_result(&out, call->id.raw);
	revision_open_result(call->revision, &out, "input_required");
	jsonout_key(&out, "inputRequests");
	mcp_run_write_questions(run, call->revision, &out);
	jsonout_member_text(&out, "requestState", state);
	jsonout_close(&out, '}');
	jsonrpc_close_result(&out);
	free(state);
	conversation_end_call(call, MCP_SENT_ANSWER, &out, CANCEL_BY_CLIENT);
}

void
mcp_call_ask(struct mcp_call *call)
{
	/* The output is sent first, so that the user sees it before the question. */
	mcp_progress_finish(call->progress);
	if (call->revision->modern)
		ask_by_answer(call);
	else
		ask_by_requests(call);
}

/* ---- creation and end ---- */

struct mcp_call *
mcp_call_new(const struct request *request, enum mcp_method method, size_t bytes)
{
	struct mcp_call *call = xcalloc(1, sizeof(*call));
	const struct mcp_conversation *conversation = request->conversation;

	call->conversation = request->conversation;
	call->exchange = request->exchange;
	call->batch = request->batch;
	call->id = jsonrpc_id_take(&request->message->id);
	call->revision = request->revision;
	call->method = method;
	call->bytes = bytes;
	call->log_level = -1;
	if (conversation->mcp->options.catalog->logging)
		call->log_level = request->revision->modern
					  ? request->envelope.log_level
					  : (int)conversation->log_level;
	call->audience.type = &call_audience;
	call->audience.abilities =
		request->abilities | (request->envelope.streams ? CLIENT_SHOWS_OUTPUT : 0);
	call->audience.text_alone = !request->revision->structured;
	return call;
}

static void
send_progress(void *arg, struct jsonout *message)
{
	const struct mcp_call *call = arg;

	conversation_send(call->exchange, MCP_SENT_NEWS, message);
}

static bool
ask_usage(void *arg, struct execution_now *now_r)
{
	const struct mcp_call *call = arg;

	return call->audience.run && mcp_run_uses(call->audience.run, now_r);
}

static bool
ask_wait(void *arg, char *text_r, size_t size)
{
	const struct mcp_call *call = arg;

	return call->audience.run && mcp_run_waits(call->audience.run, text_r, size);
}

void
mcp_call_join(struct mcp_call *call, struct mcp_run *run,
	      const struct request *request)
{
	struct mcp *mcp = call->conversation->mcp;
	/* Half of a stream's cap in the answer is for its head, and only the head is streamed. */
	const struct mcp_progress_options options = {
		.base = mcp->options.base,
		.revision = call->revision,
		.token = request->envelope.progress_token,
		.streams = request->envelope.streams,
		.stream_max = mcp->options.config->limits.standard.output_bytes / 2,
		.send = send_progress,
		.uses = ask_usage,
		.waits = ask_wait,
		.arg = call,
	};

	mcp_run_join(run, &call->audience);
	if (options.token)
		call->progress = mcp_progress_new(&options);
}

void
mcp_call_free(struct mcp_call *call, enum cancel_reason reason)
{
	mcp_progress_free(call->progress);
	call->progress = NULL;
	mcp_run_leave(&call->audience, reason);
	jsonrpc_id_done(&call->id);
	free(call);
}
