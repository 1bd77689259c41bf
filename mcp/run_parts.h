/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a run, for the files that make it up: mcp/run.c has its beginning, its end and its
 * audiences, mcp/run_permission.c waits for a person's permission, mcp/run_questions.c has its
 * questions.
 */
#ifndef MCP_RUN_PARTS_H
#define MCP_RUN_PARTS_H

#include <stdbool.h>

#include <jansson.h>

#include "mcp/tool.h"

struct mcp_run;

/* ---- mcp/run.c ---- */

/* To be called before and after calls to the tool or the audiences. After run_leave the run may be
 * gone. */
void run_enter(struct mcp_run *run);
void run_leave(struct mcp_run *run);

/* Makes the next turn of the loop look at the run, for steps that cannot be done while a function
 * of the tool is on the stack. */
void run_wake(struct mcp_run *run);

/* Fills in the host for the tool of the run. */
void run_make_host(struct mcp_run *run, bool wants_output, struct tool_host *host_r);

/* Starts the tool. To be called when no permission is needed any more. on_end may be called from
 * within. */
void run_start_tool(struct mcp_run *run, const struct tool_host *host,
		    const json_t *arguments);

/* ---- mcp/run_permission.c ---- */

/* Asks a person, and starts the tool once the person has agreed; otherwise refuses the call. The
 * host is copied. */
void run_ask_permission(struct mcp_run *run, const struct tool_host *host,
			const json_t *arguments);

/* Answers that policy refuses the call, and records it. */
void run_refuse(struct mcp_run *run, const struct tool_host *host, const char *text);

/* Takes the reply of the client's user. The run may be gone afterwards. */
void run_take_permission(struct mcp_run *run, const struct tool_reply *reply);

/* Stops waiting for permission. Does nothing if the run does not wait. */
void run_forget_permission(struct mcp_run *run);

/* ---- mcp/run_questions.c ---- */

/* Gives the tool its replies, or sends the questions that were not sent yet. The run may be gone
 * afterwards. */
void run_go_on_asking(struct mcp_run *run);

/* Asks the open questions again. To be called when the audience that was asked has left. */
void run_ask_again(struct mcp_run *run);

/* Takes a question back: on_withdraw of struct tool_host. */
bool run_withdraw(struct mcp_run *run, const char *key);

#endif
