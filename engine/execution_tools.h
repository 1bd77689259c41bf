/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of other servers' tools by an execution: the open calls, and the ended calls that the
 * outcome reports. The number of calls is bounded, at a time and in all. The watcher
 * (engine/execution.h) answers them.
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
	bool is_list;			/* it asks which tools a server has: it is not reported */
	bool reads;
	uint64_t began_us;		/* when it was sent to its server; 0: it was not */
};

/* The calls of tools that an execution makes. The members belong to execution_tools.c. Zeroed: no
 * call was made. */
struct execution_tools {
	uint32_t number;			/* of the last call; 0: none */
	uint32_t n_lists;			/* how many calls asked for a list */
	struct tool_call *call;			/* in their order: the open calls, and at most
						 * OUTCOME_CALLS_MAX ended ones */
	size_t n, n_open;
	uint32_t left_out;
	struct outcome_tool_call *shown;	/* while the answer is given */
};

/* The execution calls a tool, or asks which tools a server has. 0; or -EBADMSG: it may not do so,
 * or not now. */
int tools_take(struct execution *execution, const struct msg_tool_call *call);

/* The execution has ended: cancels the open calls. */
void tools_end(struct execution *execution);

/* Puts the calls into an outcome, which borrows them. Called once. */
void tools_show(struct execution_tools *tools, struct outcome *outcome);

void tools_done(struct execution_tools *tools);

#endif
