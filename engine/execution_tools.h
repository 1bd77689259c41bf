/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of other servers' tools that an execution has open, a bounded number at once and in
 * all, and what its outcome tells of calls. The watcher decides what becomes of them
 * (engine/execution.h).
 */
#ifndef ENGINE_EXECUTION_TOOLS_H
#define ENGINE_EXECUTION_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/execution.h"
#include "proto/message.h"

struct tool_call {
	struct outcome_tool_call told;
	uint32_t number;
	bool open;			/* it has no answer yet */
	bool is_list;			/* it asks which tools a server has: nobody is told of it */
	bool reads;
	uint64_t began_us;		/* 0: it was not sent to its server */
};

/* Its members belong to execution_tools.c. Zeroed: none was made. */
struct execution_tools {
	uint32_t number;			/* of the last one; 0: none */
	uint32_t n_lists;			/* of them: it asked for a list */
	struct tool_call *call;			/* in their order: those that are open, and ended
						 * ones, at most OUTCOME_CALLS_MAX */
	size_t n, n_open;
	uint32_t left_out;
	struct outcome_tool_call *shown;	/* while the answer is given */
};

/* The execution calls a tool, or asks for a list. 0; or -EBADMSG: it may not, or not now. */
int tools_take(struct execution *execution, const struct msg_tool_call *call);

/* The execution is over: calls that are open are cancelled. */
void tools_end(struct execution *execution);

/* Shows the calls in an outcome, which borrows them. Once. */
void tools_show(struct execution_tools *tools, struct outcome *outcome);

void tools_done(struct execution_tools *tools);

#endif
