/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the open calls of one conversation, and its end.
 * After the client has cancelled a call, nothing of it is sent. */
#include "mcp/conversation.h"

#include "base/xalloc.h"
#include "mcp/call.h"
#include "mcp/catalog.h"
#include "mcp/client_tools.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/tool_list.h"

/* ---- calls in flight ---- */

struct mcp_call *
conversation_find_call(const struct mcp_conversation *conversation, const json_t *id)
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

/* ---- creation and end ---- */

struct mcp_conversation *
mcp_conversation_new(const struct mcp_conversation_options *options)
{
	struct mcp_conversation *conversation = xcalloc(1, sizeof(*conversation));

	conversation->options = *options;
	conversation->mcp = options->mcp;
	conversation->session = options->session;
	conversation->log_level = conversation->mcp->options.catalog->quiet
		? LEVEL_EMERGENCY : LEVEL_INFO;
	TAILQ_INIT(&conversation->calls);
	LIST_INIT(&conversation->listenings);
	LIST_INIT(&conversation->outgoing);
	LIST_INSERT_HEAD(&conversation->mcp->conversations, conversation, link);
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

/* Separates a call from its exchange: nothing more is sent for the call, and the carrier is not
 * told that the exchange is done. */
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
	LIST_REMOVE(conversation, link);
	json_decref(conversation->subscribed);
	client_tools_release(conversation->client_tools);
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
