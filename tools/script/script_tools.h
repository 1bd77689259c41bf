/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of other MCP servers' tools by a script. This module knows the servers that the script may
 * use, asks policy for a verdict about each call, asks a person if needed, writes the records, and
 * keeps the bounds of a run. The engine numbers the calls (engine/execution.h), and
 * engine/upstream.h makes them.
 */
#ifndef TOOLS_SCRIPT_SCRIPT_TOOLS_H
#define TOOLS_SCRIPT_SCRIPT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/queue.h>

#include "mcp/tool.h"
#include "tools/shared/other_tools.h"

struct script_input;

/* For one execution; embedded in the run of a tool. Zeroed: there are no servers. */
struct script_tools {
	const struct tool_host *host;	/* of the run; NULL: nothing was offered */
	struct script_input *input;	/* of the run; a question of it may be open, or wait */
	struct execution *execution;	/* the execution that makes calls; NULL: none was made */
	struct other_tools others;	/* the servers, and their lists */
	uint64_t bytes;			/* of all results so far */
	uint32_t asking;		/* number of the call that the client's user is asked about;
					 * 0: none */
	size_t n_sent;			/* open calls of the client's own tools that were sent to it
					 */
	struct event *patience;		/* a call waits for an operator, and the run is to become a
					 * job; NULL: it is not */
	LIST_HEAD(, script_call) calls;	/* calls without an answer */
	LIST_HEAD(, script_grant) grants;	/* tools that were approved for the rest of the run */
};

/* Lets a request call the tools of the servers that its tenant may use. host, input: of the run,
 * borrowed as long as the run exists. */
void script_tools_offer(struct script_tools *tools, const struct tool_host *host,
			struct script_input *input, struct execution_request *request);

/* The approval that the script waits for, as a text for people: "waits for ...". False: it waits for
 * none. */
bool script_tools_waits(const struct script_tools *tools, char *text_r, size_t size);

/* Answers the execution, now or later. As on_tool of execution_watcher. */
void script_tools_call(struct script_tools *tools, struct execution *execution,
		       const struct execution_tool *tool);

/* Is a question about the script's calls open at the client? A run has one open question at a time,
 * except for calls of the client's own tools. */
bool script_tools_asks(const struct script_tools *tools);

/* Takes replies of the client, and asks the next question that waits. */
void script_tools_reply_to(struct script_tools *tools, struct execution *execution,
			   const struct tool_reply *reply, size_t n);

/* To be called when the execution has ended or was cancelled: open calls are cancelled and
 * recorded. Does nothing if there is none. */
void script_tools_end(struct script_tools *tools);

/* ---- the part of an answer about these calls (run_script_calls.c) ----
 *
 * A client that wants to run the script again learns from it what was done already. */

struct jsonout;
struct outcome;

/* Writes members of an open object: tool_calls and, if there were more calls, tool_calls_left_out.
 * Writes nothing if there was no call. */
void run_calls_write(const struct outcome *outcome, struct jsonout *out);

/* Writes a line for models: how often each tool was called, and with which results. */
void run_calls_say(const struct outcome *outcome, FILE *to);

#endif
