/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   messages of a client, parsed but otherwise hostile.
 * Decides to which era a message belongs, which method it asks for, and which function answers
 * it. */
#include "mcp/conversation.h"

#include "base/own.h"
#include "mcp/call.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/repeat.h"
#include "policy/config.h"

static void
dispatch_refuse_request(const struct request *request, int code, const char *text)
{
	request_error(request, MCP_SENT_REFUSAL, code, text, NULL);
}

static void
dispatch_refuse_version(const struct request *request)
{
	own_mem char *text = revision_unsupported(request->envelope.requested);

	request_error(request, MCP_SENT_REFUSAL, MCP_UNSUPPORTED_VERSION,
		      "this protocol version is not supported", text);
}

/* Decides about a request that names no revision. True: request->revision is set. False: the
 * request was answered. */
static bool
admit_legacy(struct request *request, enum mcp_method method)
{
	const struct mcp_conversation *conversation = request->conversation;

	request->revision = conversation->session ? conversation->session
						  : revision_negotiate("");
	request->abilities = conversation->abilities;
	if (method == METHOD_DISCOVER) {
		dispatch_refuse_request(request, JSONRPC_INVALID_PARAMS,
					"server/discover needs _meta with " META_VERSION);
		return false;
	}
	if (conversation->session || method == METHOD_INITIALIZE || method == METHOD_PING ||
	    method == METHOD_UNKNOWN)
		return true;
	if (request->envelope.has_modern_keys)
		dispatch_refuse_request(request, JSONRPC_INVALID_PARAMS,
					"_meta: " META_VERSION " is required");
	else
		dispatch_refuse_request(request, JSONRPC_INVALID_REQUEST,
					"not initialized: send initialize first, or name a "
					"protocol version in _meta");
	return false;
}

static bool
dispatch_admit(struct request *request, enum mcp_method method)
{
	switch (request->envelope.verdict) {
	case ENVELOPE_NONE:
		return admit_legacy(request, method);
	case ENVELOPE_MODERN:
		request->revision = revision_for_client(
			request->envelope.revision,
			request->conversation->mcp->options.config->mcp.structured,
			request->envelope.client);
		request->abilities = revision_abilities(request->revision,
							request->envelope.capabilities);
		if (!request->batch)
			return true;
		dispatch_refuse_request(request, JSONRPC_INVALID_REQUEST,
					"batches are not part of this revision");
		return false;
	case ENVELOPE_MALFORMED:
		dispatch_refuse_request(request, JSONRPC_INVALID_PARAMS, request->envelope.text);
		return false;
	case ENVELOPE_UNSUPPORTED:
		dispatch_refuse_version(request);
		return false;
	}
	return false;
}

static void
serve_request(struct request *request)
{
	const struct mcp_conversation *conversation = request->conversation;
	enum mcp_method method = method_find(request->message->method);

	if (conversation_find_call(conversation, request->message->id.value) ||
	    is_listening(conversation, request->message->id.value)) {
		dispatch_refuse_request(request, JSONRPC_INVALID_REQUEST,
					"a call with this id is still in flight");
		return;
	}
	envelope_read(request->message->params, &request->envelope);
	if (!dispatch_admit(request, method))
		return;
	if (!revision_has(request->revision, conversation->mcp->options.catalog, method))
		method = METHOD_UNKNOWN;
	serve_method(request, method);
}

/* Cancels a call if the client asks for it. Other notifications are ignored, as both eras demand.
 */
static void
dispatch_on_notification(struct mcp_conversation *conversation,
			 const struct jsonrpc_message *message)
{
	const json_t *id = json_object_get(message->params, "requestId");
	enum mcp_method method = method_find(message->method);
	struct mcp_call *call;
	struct mcp_run *run;

	/* From now on the client may get notifications. */
	if (method == METHOD_NOTE_INITIALIZED && conversation->session && !conversation->tools)
		conversation->tools = mcp_tool_list(conversation->mcp,
						    conversation->options.tenant);
	if (method != METHOD_NOTE_CANCELLED || !id)
		return;
	call = conversation_find_call(conversation, id);
	if (!call) {
		end_listening(conversation, id, NULL, false);
		return;
	}
	/* Drops the run of a cancelled call from the repeated calls, unless another call waits for
	 * the run, too. A run with a key outlives the loss of its client, but not the client's
	 * cancellation. */
	run = call->audience.run;
	if (run && run->keeps && mcp_run_askers(run) == 1)
		mcp_repeat_drop(call->conversation->mcp->tables.repeats, run);
	conversation_end_call(call, MCP_SENT_ANSWER, NULL, CANCEL_BY_CLIENT);
}

static void
dispatch_on_message(struct mcp_conversation *conversation, struct mcp_exchange *exchange,
		    struct jsonrpc_message *message, struct batch *batch)
{
	struct request request = { .conversation = conversation, .exchange = exchange,
				   .message = message, .batch = batch };

	switch (message->kind) {
	case JSONRPC_REQUEST:
		serve_request(&request);
		break;
	case JSONRPC_NOTIFICATION:
		dispatch_on_notification(conversation, message);
		break;
	case JSONRPC_RESPONSE:
		take_response(conversation, message);
		if (message->text) {
			/* The refusal has no id: this one belongs to a request of the server, and
			 * the client may use the same id for a request of its own. */
			jsonrpc_id_done(&message->id);
			dispatch_refuse_request(&request, message->code, message->text);
		}
		break;
	case JSONRPC_INVALID:
		dispatch_refuse_request(&request, message->code, message->text);
		break;
	}
}

static void
on_batch(struct mcp_conversation *conversation, struct mcp_exchange *exchange,
	 struct jsonrpc_line *line)
{
	struct jsonrpc_message refusal = { .id = { NULL, NULL } };
	const struct request request = { .exchange = exchange, .message = &refusal };
	struct batch *batch;

	if (!conversation->session || !conversation->session->batches) {
		dispatch_refuse_request(&request, JSONRPC_INVALID_REQUEST,
					"batches are not part of this revision");
		return;
	}
	batch = batch_new();
	for (size_t i = 0; i < line->n; i++)
		dispatch_on_message(conversation, exchange, &line->message[i], batch);
	batch_settle(batch, exchange, NULL);
}

void
mcp_conversation_take(struct mcp_conversation *conversation,
		      struct mcp_exchange *exchange, struct jsonrpc_line *line,
		      size_t line_bytes)
{
	conversation->line_bytes = line_bytes;
	if (conversation->options.by_stream)
		conversation->exchange = exchange;
	exchange_owe(exchange);
	if (line->is_batch)
		on_batch(conversation, exchange, line);
	else
		dispatch_on_message(conversation, exchange, &line->message[0], NULL);
	exchange_settle(exchange);
}
