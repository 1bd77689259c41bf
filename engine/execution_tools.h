/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of other servers' tools by an execution: the open calls, and the ended calls that the
 * outcome reports. The number of calls is bounded, at a time and in all. The watcher
 * (engine/execution.h) answers them.
 */
#ifndef ENGINE_EXECUTION_TOOLS_H
#define ENGINE_EXECUTION_TOOLS_H

struct execution;
struct msg_tool_call;
struct outcome;

/* The calls of one execution. */
struct execution_tools;

/* For an execution that may call tools. Never NULL; no call was made. */
struct execution_tools *tools_new(void);

/* The execution calls a tool, or asks which tools a server has. 0; or -EBADMSG: it may not do so,
 * or not now. */
int tools_take(struct execution *execution, const struct msg_tool_call *call);

/* The execution has ended: cancels the open calls. */
void tools_end(struct execution *execution);

/* Puts the calls into an outcome, which borrows them. Called once. tools may be NULL. */
void tools_show(struct execution_tools *tools, struct outcome *outcome);

void tools_free(struct execution_tools *tools);		/* NULL is fine */

#endif
