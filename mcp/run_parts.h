/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a run, for the files that make it up: mcp/run.c has its beginning, its end and its
 * audiences, mcp/run_permission.c waits for a person's permission, mcp/run_questions.c has its
 * questions.
 */
#ifndef MCP_RUN_PARTS_H
#define MCP_RUN_PARTS_H

#include <stdbool.h>
#include <sys/queue.h>

#include <jansson.h>

#include "mcp/question.h"
#include "mcp/revision.h"
#include "mcp/tool.h"

struct mcp_outcome;
struct client_tools;
struct permission;

struct mcp_run {
	LIST_ENTRY(mcp_run) link;
	struct mcp *mcp;
	struct tenant *tenant;
	const struct tool *tool;
	enum mcp_method method;
	size_t bytes;			/* of its request */
	struct tool_run *tool_run;	/* NULL: not started, or over */
	unsigned int holders;
	unsigned int depth;		/* of calls into the tool and from it */
	unsigned int abilities;
	enum cancel_reason reason;	/* for its end, when it has no holder any more */
	bool is_over, keeps, parked;
	LIST_HEAD(, mcp_audience) audience;	/* the youngest first */
	struct mcp_task *task;
	struct mcp_outcome *outcome;	/* NULL: not over, or not kept */
	struct mcp_ask ask;
	bool ask_is_new;		/* at least one question was not sent to a client yet */
	struct mcp_audience *asked;	/* the audience that was asked; NULL: none, or it left */
	json_t *early;			/* answers that came before a question; NULL: none */
	const struct config *config;	/* held since it started; NULL: not started */
	struct permission *permission;	/* the permission that it waits for; NULL: none */
	struct client_tools *client_tools;	/* held; NULL: none */
	struct mcp_audience *job;	/* the job that it has become; NULL: none */
	const char *job_handle;		/* borrowed from the job */
	char *waits;			/* what the job waits for; NULL: see the tool */
	bool stays;			/* it is not to become a job */
	struct event *soon;
	struct event *long_now;		/* the time when it becomes a task; NULL: it does not */
};

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
