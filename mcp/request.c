/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: open batches.
 * Sends the messages that belong to a request: alone, or in the answer of its batch. */
#include "base/xalloc.h"
#include "mcp/conversation_parts.h"

void
conversation_send(struct mcp_exchange *exchange, enum mcp_sent kind,
		  struct jsonout *message)
{
	if (exchange)
		exchange->send(exchange, kind, message);
	jsonout_done(message);
}

void
exchange_owe(struct mcp_exchange *exchange)
{
	if (exchange)
		exchange->owed++;
}

void
exchange_settle(struct mcp_exchange *exchange)
{
	if (exchange && --exchange->owed == 0)
		exchange->on_done(exchange);
}

void
batch_settle(struct batch *batch, struct mcp_exchange *exchange,
	     const struct jsonout *answer)
{
	if (answer) {
		jsonout_raw(&batch->out, answer->at, answer->len);
		batch->answers++;
	}
	if (--batch->owed)
		return;
	jsonout_close(&batch->out, ']');
	if (batch->answers)
		conversation_send(exchange, MCP_SENT_ANSWER, &batch->out);
	jsonout_done(&batch->out);
	free(batch);
}

struct batch *
batch_new(void)
{
	struct batch *batch = xcalloc(1, sizeof(*batch));

	batch->owed = 1;
	jsonout_open(&batch->out, '[');
	return batch;
}

void
conversation_open_note(struct jsonout *out, const char *method)
{
	jsonout_init(out);
	jsonout_open(out, '{');
	jsonout_member_text(out, "jsonrpc", "2.0");
	jsonout_member_text(out, "method", method);
	jsonout_member_open(out, "params", '{');
}

void
conversation_notify(struct mcp_exchange *exchange, struct jsonout *out)
{
	jsonout_close(out, '}');
	jsonout_close(out, '}');
	conversation_send(exchange, MCP_SENT_MESSAGE, out);
}

void
request_answer(const struct request *request, enum mcp_sent kind, struct jsonout *out)
{
	if (request->batch) {
		request->batch->owed++;
		batch_settle(request->batch, request->exchange, out);
		jsonout_done(out);
	} else {
		conversation_send(request->exchange, kind, out);
	}
}

void
request_error(const struct request *request, enum mcp_sent kind, int code,
	      const char *text, const char *data)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_write_error(&out, request->message->id.raw, code, text, data);
	request_answer(request, kind, &out);
}

bool
request_has_room(const struct request *request)
{
	const struct mcp_conversation *conversation = request->conversation;
	const struct mcp_conversation_options *options = &conversation->options;
	bool full = conversation->in_flight >= CONVERSATION_CALLS_MAX;

	if (!full && options->hold(options->arg, conversation->line_bytes))
		return true;
	request_error(request, MCP_SENT_ERROR, JSONRPC_INTERNAL_ERROR,
		      full ? "too many calls in flight on this connection"
			   : "too many bytes in flight of this user", NULL);
	return false;
}

void
refuse_lacking(const struct request *request, unsigned int abilities)
{
	const struct tool_failure failure = { .kind = FAIL_CLIENT_LACKS, .lacks = abilities };
	struct jsonout out;

	jsonout_init(&out);
	revision_write_failure(request->revision, &out, request->message->id.raw,
			       METHOD_TOOLS_CALL, &failure);
	request_answer(request, MCP_SENT_REFUSAL, &out);
}
