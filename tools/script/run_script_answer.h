/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an outcome, for run_script and the tools that run scripts in its manner.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_ANSWER_H
#define TOOLS_SCRIPT_RUN_SCRIPT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "tools/script/run_script_arguments.h"

struct config;
struct jsonout;
struct outcome;
struct tool_host;

/* The schema of answers as a JSON text, malloc'd. */
char *run_script_output_schema(enum run_for tool, const struct config *config);

/* Adds the members that run_calls_write() writes to a schema of an answer, if other servers are
 * configured. schema: from schema_load(). */
void run_script_add_calls(json_t *schema, const struct config *config);

/* Is text one JSON text on one line, within the bounds? */
bool run_script_is_json(const char *text, size_t len);

/* Further members of a tool's answer. */
struct run_supplement {
	void (*write)(const void *arg, struct jsonout *out);	/* members of an open object */
	void (*say)(const void *arg, FILE *to);			/* lines of the text */
	const void *arg;
};

/* Gives the outcome: calls host->on_answer once. tokens: the length of the text, roughly; 0: as
 * configured. supplement: may be NULL. */
void run_script_answer(const struct outcome *outcome, uint32_t tokens,
		       const struct run_supplement *supplement, const struct tool_host *host);

/* Answers that nothing was run: calls host->on_answer once. reason: a status of
 * tools/shared/reasons.h or mcp/tool.h; text: a sentence. supplement: may be NULL. */
void run_script_refuse_as(const char *reason, const char *text,
			  const struct run_supplement *supplement,
			  const struct tool_host *host);

/* Answers that the script continues in the background: calls host->on_answer once. job: the job's
 * handle. waits: what it waits for, for people; NULL: for nothing. begun: the script runs already.
 * supplement: may be NULL. */
void run_script_answer_job(const char *job, const char *waits, bool begun,
			   const struct run_supplement *supplement, const struct tool_host *host);

#endif
