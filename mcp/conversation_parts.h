/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a conversation, for the files that make it up. From the top: mcp/dispatch.c takes
 * messages, mcp/methods.c and mcp/lists.c answer requests at once, mcp/start.c begins calls,
 * mcp/conversation.c and mcp/call.c have the open calls, mcp/listen.c has subscriptions, mcp/ask.c
 * asks the client, mcp/request.c sends.
 */
#ifndef MCP_CONVERSATION_PARTS_H
#define MCP_CONVERSATION_PARTS_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/jsonout.h"
#include "mcp/carrier.h"
#include "mcp/envelope.h"
#include "mcp/jsonrpc.h"
#include "mcp/revision.h"
#include "mcp/tool.h"

struct mcp_call;
struct tool_list;

/* The answers of one array line, until all of them are there. */
struct batch {
	size_t owed;		/* answers that are missing: one for each open call, and one more
				 * while the dispatcher reads the line */
	size_t answers;
	struct jsonout out;
};

struct mcp_conversation {
	LIST_ENTRY(mcp_conversation) link;
	struct mcp_conversation_options options;
	struct mcp *mcp;
	const struct revision *session;	/* agreed on by the handshake; NULL: none yet */
	unsigned int abilities;		/* enum client_ability, from the handshake */
	struct client_tools *client_tools;	/* from the handshake; NULL: none */
	enum log_level log_level;	/* of legacy calls */
	TAILQ_HEAD(, mcp_call) calls;
	size_t in_flight;		/* calls and listenings */
	LIST_HEAD(, listening) listenings;
	LIST_HEAD(, outgoing) outgoing;	/* requests to the client that it has not answered */
	uint64_t last_outgoing;		/* the number in the id of the last of them */
	json_t *subscribed;		/* legacy: an object with uris as keys; NULL: none */
	struct tool_list *tools;	/* legacy: the list that the client has; NULL: none yet */
	struct mcp_exchange *exchange;	/* for messages that belong to no request; NULL: none */
	size_t line_bytes;		/* the length of the line being read, for each of its
					 * messages: one of them may be almost all of it */
	bool input_ended;
};

/* A request while it is dispatched. */
struct request {
	struct mcp_conversation *conversation;
	struct mcp_exchange *exchange;
	struct jsonrpc_message *message;
	struct batch *batch;			/* NULL: the request is not in an array */
	struct envelope envelope;
	const struct revision *revision;	/* NULL: not known yet */
	unsigned int abilities;			/* of the client, for this request */
	struct client_tools *client_tools;	/* borrowed; NULL: none */
};

/* ---- mcp/request.c ---- */

/* Begins a notification; its parameters follow. conversation_notify ends and sends it. */
void conversation_open_note(struct jsonout *out, const char *method);
void conversation_notify(struct mcp_exchange *exchange, struct jsonout *out);

/* Sends a message that is not an answer. exchange NULL: the message is dropped. */
void conversation_send(struct mcp_exchange *exchange, enum mcp_sent kind,
		       struct jsonout *message);

/* Answers a request at once. */
void request_answer(const struct request *request, enum mcp_sent kind, struct jsonout *out);
void request_error(const struct request *request, enum mcp_sent kind, int code,
		   const char *text, const char *data);

/* May one more call or subscription be in flight? True: it is charged with
 * conversation->line_bytes. False: the request was answered with an error. */
bool request_has_room(const struct request *request);

/* Answers with the error MCP_CLIENT_LACKS: the client has not declared these abilities (enum
 * client_ability). */
void refuse_lacking(const struct request *request, unsigned int abilities);

/* A new batch, with one owed answer for its reader. */
struct batch *batch_new(void);

/* Adds one of the owed answers. answer NULL: this one will not come. After the last one the batch
 * is sent and freed. */
void batch_settle(struct batch *batch, struct mcp_exchange *exchange,
		  const struct jsonout *answer);

/* An exchange owes one answer more, or one less. When it owes none, its carrier is told, and may
 * free the conversation: do not use it afterwards. NULL is fine. */
void exchange_owe(struct mcp_exchange *exchange);
void exchange_settle(struct mcp_exchange *exchange);

/* ---- mcp/conversation.c ---- */

/* The call in flight with this id, or NULL. */
struct mcp_call *conversation_find_call(const struct mcp_conversation *conversation,
					const json_t *id);

/* Adds a call to those in flight. */
void conversation_add_call(struct mcp_conversation *conversation, struct mcp_call *call);

/* Ends a call: sends its answer (NULL: none), then frees the call. */
void conversation_end_call(struct mcp_call *call, enum mcp_sent kind, struct jsonout *answer,
			   enum cancel_reason reason);

/* ---- mcp/methods.c ---- */

/* Answers a request for a method; METHOD_UNKNOWN: with the error for that. */
void serve_method(struct request *request, enum mcp_method method);

/* Answers a request for one of the methods that mcp/methods.def gives it. */
typedef void serve_fn(struct request *request, enum mcp_method method);

/* ---- mcp/start.c ---- */

serve_fn serve_tools_call, serve_prompts_get, serve_resources_read;

/* ---- mcp/lists.c ---- */

serve_fn serve_tools_list, serve_resources_list, serve_skills, serve_prompts_list, serve_complete;

/* ---- mcp/ask.c ---- */

/* Sends the new questions of a legacy call's run to the client, as requests. */
void ask_by_requests(struct mcp_call *call);

/* Withdraws the request for the question with this key, if there is one: an answer to it is ignored
 * from now on. */
void ask_withdraw(const struct mcp_call *call, const char *key);

/* Takes a response of the client. */
void take_response(struct mcp_conversation *conversation,
		   const struct jsonrpc_message *message);

/* Drops the requests to the client that have no reply yet: those of this call, or of all calls
 * (NULL). say_so: the client is told of this; false if it has left. */
void forget_outgoing(struct mcp_conversation *conversation, const struct mcp_call *call,
		     bool say_so);

/* ---- mcp/listen.c ---- */

serve_fn serve_listen;

/* Ends subscriptions. id: only the one whose request has this id; NULL: any. exchange: only those
 * that are sent by this exchange; NULL: any. say_so: the client is told. True: there was one. */
bool end_listening(struct mcp_conversation *conversation, const json_t *id,
		   const struct mcp_exchange *exchange, bool say_so);
bool is_listening(const struct mcp_conversation *conversation, const json_t *id);

/* Tells listening clients if tools/list differs from the list that they have. */
void tell_tools_changed(struct mcp_conversation *conversation);

/* Tells the client that this resource has changed, if the client has subscribed to the resource,
 * whether by resources/subscribe (legacy) or by a subscription (modern). */
void tell_resource_changed(struct mcp_conversation *conversation, const char *uri);

#endif
