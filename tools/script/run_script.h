/* SPDX-License-Identifier: Apache-2.0 */
/* The tool run_script, and the parts that run_repl (tools/repl/run_repl.h) shares with it.
 *
 * run_script.c has the runs; run_script_arguments.c checks the arguments by a table;
 * run_script_schema.c completes the schema, which is a file; run_script_answer.c makes the answer
 * of an outcome.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_H
#define TOOLS_SCRIPT_RUN_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "base/why.h"
#include "mcp/tool.h"
#include "tools/script/run_script_answer.h"
#include "tools/script/run_script_arguments.h"
#include "tools/shared/reasons.h"

extern const struct tool run_script_tool;

/* A tool that runs scripts: how it reads its arguments and gives its answers. One is run_script;
 * the others replace tools of other servers. */
struct script_tool {
	/* Reads the arguments into *to, which is empty. 0, or -EINVAL with why_r; what *to then has
	 * is released. */
	int (*read)(const json_t *json, const struct config *config,
		    struct run_script_arguments *to, struct why *why_r);
	/* Gives the outcome: calls host->on_answer once. flags: as read has set them. */
	void (*answer)(const struct outcome *outcome, unsigned int flags,
		       const struct tool_host *host);
	/* Answers that nothing was run: calls host->on_answer once. reason, text: as in
	 * run_script_refuse_as. */
	void (*refuse)(const char *reason, const char *text, const struct tool_host *host);
	/* The name of the tool, if its scripts may ask for input. NULL: they may not. */
	const char *asks;
};

/* The start, cancel, uses and reply (mcp/tool.h) of a tool that runs scripts. */
struct tool_run *run_script_start(const struct script_tool *kind,
				  const struct tool_host *host, const json_t *json);
void run_script_cancel(struct tool_run *run, enum cancel_reason reason);
bool run_script_uses(struct tool_run *run, struct execution_now *now_r);
void run_script_reply(struct tool_run *run, const struct tool_reply *replies, size_t n,
		      const char *state);

/* The member once of a tool (mcp/tool.h). */
const char *run_script_once(const json_t *arguments);

/* The schema of the arguments as a JSON text, malloc'd, with the limits in force. */
char *run_script_input_schema(enum run_for tool, const struct config *config);

/* A sentence for descriptions about the network of scripts; static. */
const char *run_script_network_text(const struct config *config);

/* The part of a sentence of descriptions that names the user's folder, malloc'd; "": there is none. */
char *run_script_folder_text(const struct config *config);

/* ---- a copy of an outcome, which itself is valid only during its callback ---- */

struct outcome_copy;

struct outcome_copy *outcome_copy_new(const struct outcome *outcome);
const struct outcome *outcome_copy_get(const struct outcome_copy *copy);
void outcome_copy_free(struct outcome_copy *copy);	/* NULL is fine */

#endif
