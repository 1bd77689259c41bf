/* One tools/call from its request to its answer, whatever transport it came by: runs the
 * tool, sends progress to a client that gave a token, writes the answer.
 */
#ifndef SUPERVISOR_MCP_CALL_H
#define SUPERVISOR_MCP_CALL_H

#include <jansson.h>

#include "supervisor/execution.h"
#include "supervisor/jsonrpc.h"

struct envelope;
struct jsonout;
struct mcp;
struct mcp_call;
struct revision;
struct tenant;
struct tool;

struct mcp_call_watcher {
	/* A notification that may be left out when the client is slow. */
	void (*on_progress)(void *arg, struct jsonout *message);
	/* The answer; the last callback. The watcher frees the call, now or later. */
	void (*on_answer)(void *arg, struct mcp_call *call, struct jsonout *answer);
	void *arg;
};

/* id is taken over. The revision is one of the table, the rest is borrowed and outlives
 * the call. */
struct mcp_call *mcp_call_new(const struct mcp *mcp, struct tenant *tenant,
			      const struct revision *revision, struct jsonrpc_id *id,
			      const struct mcp_call_watcher *watcher);

/* arguments: an object; envelope: what the request said of progress; both borrowed for now
 * only. on_answer may come before it returns, so the caller must be done with the call. */
void mcp_call_start(struct mcp_call *call, const struct tool *tool,
		    const json_t *arguments, const struct envelope *envelope);

/* Stops the work; no callback follows. Then the call can only be freed. */
void mcp_call_cancel(struct mcp_call *call, enum cancel_reason reason);

void mcp_call_free(struct mcp_call *call);

const json_t *mcp_call_id(const struct mcp_call *call);

/* Whoever keeps calls in a list may use these; NULL at first. */
struct mcp_call *mcp_call_next(const struct mcp_call *call);
void mcp_call_set_next(struct mcp_call *call, struct mcp_call *next);
void *mcp_call_group(const struct mcp_call *call);
void mcp_call_set_group(struct mcp_call *call, void *group);

/* Bytes that the call is charged with; 0 at first. */
size_t mcp_call_bytes(const struct mcp_call *call);
void mcp_call_set_bytes(struct mcp_call *call, size_t bytes);

#endif
