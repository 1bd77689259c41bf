/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of other servers' tools that an execution has open: a bounded number at once and in
 * all. The watcher decides what becomes of them (engine/execution.h).
 */
#ifndef ENGINE_EXECUTION_TOOLS_H
#define ENGINE_EXECUTION_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

struct execution;

/* Its members belong to execution_tools.c. Zeroed: none was made. */
struct execution_tools {
	uint32_t number;			/* of the last one; 0: none */
	uint32_t open[TOOL_CALLS_AT_ONCE];	/* numbers of those without an answer */
	size_t n_open;
};

/* The execution calls a tool, or asks for a list. 0; or -EBADMSG: it may not, or not now. */
int tools_take(struct execution *execution, const struct msg_tool_call *call);

#endif
