/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is answered by a run, from its dispatch to its answer: tools/call, prompts/get or
 * resources/read. The call writes the run's messages in the form of the request's revision.
 */
#ifndef MCP_CALL_H
#define MCP_CALL_H

#include <sys/queue.h>

#include <jansson.h>

#include "engine/execution.h"
#include "mcp/jsonrpc.h"
#include "mcp/run.h"
#include "mcp/seal.h"

struct batch;
struct mcp_conversation;
struct mcp_exchange;
struct mcp_progress;
struct request;

/* Owned by the conversation; see mcp/conversation_parts.h. */
struct mcp_call {
	TAILQ_ENTRY(mcp_call) link;
	struct mcp_conversation *conversation;
	struct mcp_exchange *exchange;	/* NULL: the client has left it */
	struct batch *batch;		/* NULL: the request was not in an array */
	struct jsonrpc_id id;
	const struct revision *revision;
	enum mcp_method method;
	int log_level;			/* the lowest level that is sent; -1: none */
	size_t bytes;			/* charged to its conversation */
	struct mcp_audience audience;
	struct mcp_progress *progress;	/* NULL: the client wants none */
	struct seal_binding binding;	/* modern: identifies the call in a requestState */
};

/* Makes a call, which takes over the request's id. bytes: charged to the conversation. */
struct mcp_call *mcp_call_new(const struct request *request, enum mcp_method method,
			      size_t bytes);

/* Leaves the run, and frees the call. Nothing more is sent. */
void mcp_call_free(struct mcp_call *call, enum cancel_reason reason);

/* Joins a run that is not over, and starts the progress messages that the client wants. */
void mcp_call_join(struct mcp_call *call, struct mcp_run *run,
		   const struct request *request);

/* Answers with the result of the run. Frees the call. */
void mcp_call_end(struct mcp_call *call, const struct tool_answer *answer,
		  const struct tool_failure *failure);

/* Asks the client the open questions of the run, as the call's revision demands. May free the call.
 */
void mcp_call_ask(struct mcp_call *call);

#endif
