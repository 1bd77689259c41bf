/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: requests to legacy clients, until their replies.
 * Reads:   responses of a client, in any shape. A response that matches no request is ignored. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/xalloc.h"
#include "mcp/call.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/run.h"
#include "policy/config.h"

#define WHY_MAX 256	/* bytes of the reason why an answer cannot be read */

struct outgoing {
	LIST_ENTRY(outgoing) link;
	uint64_t id;
	struct mcp_call *call;
	char key[QUESTION_KEY_MAX + 1];	/* of the run's question that it asks */
	struct event *late;
};

static void
outgoing_free(struct outgoing *outgoing)
{
	LIST_REMOVE(outgoing, link);
	event_free(outgoing->late);
	free(outgoing);
}

static void
send_question(const struct outgoing *outgoing, struct mcp_question *question)
{
	struct mcp_call *call = outgoing->call;
	struct jsonout out;

	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "jsonrpc", "2.0");
	jsonout_member_uint(&out, "id", outgoing->id);
	mcp_question_write(question, call->revision, &out);
	jsonout_close(&out, '}');
	conversation_send(call->exchange, MCP_SENT_MESSAGE, &out);
}

/* Takes a request back: from now on an answer to it is ignored. */
static void
ask_withdraw_request(struct outgoing *outgoing, const char *reason)
{
	struct jsonout out;

	conversation_open_note(&out, "notifications/cancelled");
	jsonout_member_uint(&out, "requestId", outgoing->id);
	jsonout_member_text(&out, "reason", reason);
	conversation_notify(outgoing->call->exchange, &out);
	outgoing_free(outgoing);
}

static void
ask_on_late(evutil_socket_t, short, void *arg)
{
	struct outgoing *outgoing = arg;
	struct mcp_run *run = outgoing->call->audience.run;

	mcp_run_give_up_one(run, outgoing->key, NULL);
	ask_withdraw_request(outgoing, "there was no answer in time");
}

void
ask_by_requests(struct mcp_call *call)
{
	struct mcp_conversation *conversation = call->conversation;
	const struct mcp *mcp = conversation->mcp;
	const struct timeval wait = { .tv_sec = mcp->options.config->mcp.ask_seconds };
	size_t n;
	struct mcp_question *question = mcp_run_questions(call->audience.run, &n);

	for (size_t i = 0; i < n; i++) {
		struct outgoing *outgoing;

		if (question[i].state != QUESTION_NEW)
			continue;
		if (!call->exchange || conversation->input_ended) {
			mcp_run_give_up_one(call->audience.run, question[i].key, NULL);
			continue;
		}
		outgoing = xcalloc(1, sizeof(*outgoing));
		outgoing->id = ++conversation->last_outgoing;
		outgoing->call = call;
		memcpy(outgoing->key, question[i].key, sizeof(outgoing->key));
		outgoing->late = xalloc_check(evtimer_new(mcp->options.base, ask_on_late,
							  outgoing));
		evtimer_add(outgoing->late, &wait);
		LIST_INSERT_HEAD(&conversation->outgoing, outgoing, link);
		send_question(outgoing, &question[i]);
	}
}

void
take_response(struct mcp_conversation *conversation,
	      const struct jsonrpc_message *message)
{
	struct outgoing *outgoing;
	struct mcp_run *run;
	char why[WHY_MAX];

	if (!json_is_integer(message->id.value))
		return;
	LIST_FOREACH(outgoing, &conversation->outgoing, link)
		if (outgoing->id == (uint64_t)json_integer_value(message->id.value))
			break;
	if (!outgoing)
		return;
	run = outgoing->call->audience.run;
	if (message->text)
		snprintf(why, sizeof(why), "the client's answer cannot be read: %s", message->text);
	if (!mcp_run_reply(run, outgoing->key, message->result))
		mcp_run_give_up_one(run, outgoing->key, message->text ? why : NULL);
	outgoing_free(outgoing);
}

void
ask_withdraw(const struct mcp_call *call, const char *key)
{
	struct outgoing *outgoing;

	LIST_FOREACH(outgoing, &call->conversation->outgoing, link)
		if (outgoing->call == call && strcmp(outgoing->key, key) == 0)
			break;
	if (outgoing)
		ask_withdraw_request(outgoing, "its time is over");
}

void
forget_outgoing(struct mcp_conversation *conversation, const struct mcp_call *call,
		bool say_so)
{
	struct outgoing *outgoing, *next;

	for (outgoing = LIST_FIRST(&conversation->outgoing); outgoing; outgoing = next) {
		next = LIST_NEXT(outgoing, link);
		if (call && outgoing->call != call)
			continue;
		if (say_so)
			ask_withdraw_request(outgoing, "the call is over");
		else
			outgoing_free(outgoing);
	}
}
