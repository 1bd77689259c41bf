/* Runs in: the supervisor.   Owns: the calls in flight of one conversation, open batches.
 * Reads:   messages of a client, parsed but otherwise hostile.
 * Nothing of a call is ever sent after the client has cancelled it. */
#include "supervisor/mcp/conversation.h"

#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/conversation_parts.h"
#include "supervisor/mcp/repeat.h"
#include "supervisor/mcp/tool_list.h"
#include "supervisor/xalloc.h"

/* ---- sending ---- */

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

/* One answer that was owed is there, or (answer NULL) will never be. */
static void
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

static struct batch *
batch_new(void)
{
	struct batch *batch = xcalloc(1, sizeof(*batch));

	batch->owed = 1;
	jsonout_open(&batch->out, '[');
	return batch;
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

/* ---- calls in flight ---- */

static struct mcp_call *
find_call(const struct mcp_conversation *conversation, const json_t *id)
{
	struct mcp_call *call;

	TAILQ_FOREACH(call, &conversation->calls, link)
		if (json_equal(call->id.value, id))
			return call;
	return NULL;
}

void
conversation_add_call(struct mcp_conversation *conversation, struct mcp_call *call)
{
	TAILQ_INSERT_HEAD(&conversation->calls, call, link);
	conversation->in_flight++;
	exchange_owe(call->exchange);
	if (call->batch)
		call->batch->owed++;
}

void
conversation_end_call(struct mcp_call *call, enum mcp_sent kind, struct jsonout *answer,
		      enum cancel_reason reason)
{
	struct mcp_conversation *conversation = call->conversation;
	const struct mcp_conversation_options *options = &conversation->options;
	struct mcp_exchange *exchange = call->exchange;
	struct batch *batch = call->batch;

	forget_outgoing(conversation, call, exchange != NULL);
	TAILQ_REMOVE(&conversation->calls, call, link);
	conversation->in_flight--;
	options->let_go(options->arg, call->bytes);
	mcp_call_free(call, reason);
	if (batch)
		batch_settle(batch, exchange, answer);
	else if (answer)
		conversation_send(exchange, kind, answer);
	if (answer)
		jsonout_done(answer);
	exchange_settle(exchange);
}

/* ---- which era, which method ---- */

static void
refuse(const struct request *request, int code, const char *text)
{
	request_error(request, MCP_SENT_REFUSAL, code, text, NULL);
}

static void
refuse_version(const struct request *request)
{
	const json_t *asked = request->envelope.requested;
	struct jsonout data;
	char *text;

	jsonout_init(&data);
	jsonout_open(&data, '{');
	jsonout_member_raw(&data, "supported", revision_modern_list());
	jsonout_key(&data, "requested");
	jsonout_text(&data, json_string_value(asked), json_string_length(asked));
	jsonout_close(&data, '}');
	text = jsonout_take(&data);
	request_error(request, MCP_SENT_REFUSAL, MCP_UNSUPPORTED_VERSION,
		      "this protocol version is not supported", text);
	free(text);
}

/* A request that claims no revision. True: go on, with request->revision. */
static bool
admit_legacy(struct request *request, enum mcp_method method)
{
	const struct mcp_conversation *conversation = request->conversation;

	request->revision = conversation->session ? conversation->session
						  : revision_negotiate("");
	request->abilities = conversation->abilities;
	if (method == METHOD_DISCOVER) {
		refuse(request, JSONRPC_INVALID_PARAMS,
		       "server/discover needs _meta with " META_VERSION);
		return false;
	}
	if (conversation->session || method == METHOD_INITIALIZE || method == METHOD_PING ||
	    method == METHOD_UNKNOWN)
		return true;
	if (request->envelope.has_modern_keys)
		refuse(request, JSONRPC_INVALID_PARAMS,
		       "_meta: " META_VERSION " is required");
	else
		refuse(request, JSONRPC_INVALID_REQUEST,
		       "not initialized: send initialize first, or name a "
		       "protocol version in _meta");
	return false;
}

static bool
admit(struct request *request, enum mcp_method method)
{
	switch (request->envelope.verdict) {
	case ENVELOPE_NONE:
		return admit_legacy(request, method);
	case ENVELOPE_MODERN:
		request->revision = request->envelope.revision;
		request->abilities = revision_abilities(request->revision,
							request->envelope.capabilities);
		if (!request->batch)
			return true;
		refuse(request, JSONRPC_INVALID_REQUEST,
		       "batches are not part of this revision");
		return false;
	case ENVELOPE_MALFORMED:
		refuse(request, JSONRPC_INVALID_PARAMS, request->envelope.text);
		return false;
	case ENVELOPE_UNSUPPORTED:
		refuse_version(request);
		return false;
	}
	return false;
}

static void
serve_request(struct request *request)
{
	const struct mcp_conversation *conversation = request->conversation;
	enum mcp_method method = method_find(request->message->method);

	if (find_call(conversation, request->message->id.value) ||
	    is_listening(conversation, request->message->id.value)) {
		refuse(request, JSONRPC_INVALID_REQUEST,
		       "a call with this id is still in flight");
		return;
	}
	envelope_read(request->message->params, &request->envelope);
	if (!admit(request, method))
		return;
	if (!revision_has(request->revision, mcp_catalog(conversation->mcp), method))
		method = METHOD_UNKNOWN;
	serve_method(request, method);
}

/* A run that is known by a key outlives the loss of its client, but not its client's wish,
 * unless somebody else waits for it too. */
static void
cancel_kept(const struct mcp_call *call)
{
	struct mcp_run *run = call->audience.run;

	if (run && mcp_run_is_kept(run) && mcp_run_askers(run) == 1)
		mcp_repeat_drop(mcp_repeats(call->conversation->mcp), run);
}

/* From now on its client may be told of what it did not ask for. */
static void
on_initialized(struct mcp_conversation *conversation)
{
	if (conversation->session && !conversation->tools)
		conversation->tools = mcp_tool_list(conversation->mcp,
						    conversation->options.tenant);
}

/* Everything else but a cancellation of something in flight is ignored, as both eras want. */
static void
on_notification(struct mcp_conversation *conversation,
		const struct jsonrpc_message *message)
{
	const json_t *id = json_object_get(message->params, "requestId");
	enum mcp_method method = method_find(message->method);
	struct mcp_call *call;

	if (method == METHOD_NOTE_INITIALIZED)
		on_initialized(conversation);
	if (method != METHOD_NOTE_CANCELLED || !id)
		return;
	call = find_call(conversation, id);
	if (!call) {
		end_listening(conversation, id, NULL, false);
		return;
	}
	cancel_kept(call);
	conversation_end_call(call, MCP_SENT_ANSWER, NULL, CANCEL_BY_CLIENT);
}

static void
on_message(struct mcp_conversation *conversation, struct mcp_exchange *exchange,
	   struct jsonrpc_message *message, struct batch *batch)
{
	struct request request = { .conversation = conversation, .exchange = exchange,
				   .message = message, .batch = batch };

	switch (message->kind) {
	case JSONRPC_REQUEST:
		serve_request(&request);
		break;
	case JSONRPC_NOTIFICATION:
		on_notification(conversation, message);
		break;
	case JSONRPC_RESPONSE:
		take_response(conversation, message);
		break;
	case JSONRPC_INVALID:
		refuse(&request, message->code, message->text);
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
		refuse(&request, JSONRPC_INVALID_REQUEST,
		       "batches are not part of this revision");
		return;
	}
	batch = batch_new();
	for (size_t i = 0; i < line->n; i++)
		on_message(conversation, exchange, &line->message[i], batch);
	batch_settle(batch, exchange, NULL);
}

void
mcp_conversation_take(struct mcp_conversation *conversation,
		      struct mcp_exchange *exchange, struct jsonrpc_line *line,
		      size_t line_bytes)
{
	conversation->bytes_each = line_bytes / line->n;
	if (conversation->options.by_stream)
		conversation->exchange = exchange;
	exchange_owe(exchange);
	if (line->is_batch)
		on_batch(conversation, exchange, line);
	else
		on_message(conversation, exchange, &line->message[0], NULL);
	exchange_settle(exchange);
}

/* ---- from its beginning to its end ---- */

struct mcp_conversation *
mcp_conversation_new(const struct mcp_conversation_options *options)
{
	struct mcp_conversation *conversation = xcalloc(1, sizeof(*conversation));

	conversation->options = *options;
	conversation->mcp = options->mcp;
	conversation->session = options->session;
	conversation->log_level = LEVEL_INFO;
	TAILQ_INIT(&conversation->calls);
	LIST_INIT(&conversation->listenings);
	LIST_INIT(&conversation->outgoing);
	mcp_add_conversation(conversation->mcp, conversation);
	return conversation;
}

struct mcp_exchange *
mcp_conversation_hear(struct mcp_conversation *conversation, struct mcp_exchange *exchange)
{
	struct mcp_exchange *before = conversation->exchange;

	conversation->exchange = exchange;
	tell_tools_changed(conversation);
	return before;
}

/* Nothing is sent at it any more, nor is its carrier told that it is done. */
static void
forget_exchange(struct mcp_call *call)
{
	struct mcp_exchange *exchange = call->exchange;

	call->exchange = NULL;
	if (exchange)
		exchange->owed--;
}

void
mcp_conversation_leave(struct mcp_conversation *conversation,
		       struct mcp_exchange *exchange, bool cancel)
{
	struct mcp_call *call, *next;

	if (conversation->exchange == exchange)
		conversation->exchange = NULL;
	end_listening(conversation, NULL, exchange, false);
	for (call = TAILQ_FIRST(&conversation->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->exchange != exchange)
			continue;
		forget_exchange(call);
		if (cancel)
			conversation_end_call(call, MCP_SENT_ANSWER, NULL,
					      CANCEL_DISCONNECTED);
	}
}

void
mcp_conversation_free(struct mcp_conversation *conversation)
{
	struct mcp_call *call;

	if (!conversation)
		return;
	forget_outgoing(conversation, NULL, false);
	end_listening(conversation, NULL, NULL, false);
	while ((call = TAILQ_FIRST(&conversation->calls))) {
		forget_exchange(call);
		conversation_end_call(call, MCP_SENT_ANSWER, NULL, CANCEL_DISCONNECTED);
	}
	mcp_remove_conversation(conversation->mcp, conversation);
	json_decref(conversation->subscribed);
	tool_list_release(conversation->tools);
	free(conversation);
}

void
mcp_conversation_end_input(struct mcp_conversation *conversation)
{
	struct mcp_call *call, *next;

	conversation->input_ended = true;
	end_listening(conversation, NULL, NULL, true);
	forget_outgoing(conversation, NULL, false);
	for (call = TAILQ_FIRST(&conversation->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (!call->revision->modern && call->audience.run)
			mcp_run_give_up(call->audience.run);
	}
}

const struct revision *
mcp_conversation_session(const struct mcp_conversation *conversation)
{
	return conversation->session;
}

size_t
mcp_conversation_in_flight(const struct mcp_conversation *conversation)
{
	return conversation->in_flight;
}
