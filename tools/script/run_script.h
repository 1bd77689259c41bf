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
#include "policy/imports.h"
#include "policy/limits.h"
#include "tools/script/run_script_files.h"
#include "tools/shared/reasons.h"

#define RUN_STDIN_MAX (8 * 1024 * 1024)		/* bytes */
#define RUN_ARGS_BYTES_MAX (512 * 1024)		/* of all args together */
#define RUN_ANSWER_MAX (9 * 1024 * 1024)	/* roughly, bytes of an answer's line: some clients
						 * do not accept 10 MiB */

#define RUN_KEY_ARGUMENT "idempotency_key"
#define RUN_KEY_MAX 128				/* characters */
#define RUN_SESSION_MAX 128			/* bytes of a handle */
#define RUN_PYTHON_MAX 32			/* bytes of a version or an interpreter's name */
#define RUN_NAME_MAX 64				/* bytes of a checkpoint's name */

extern const struct tool run_script_tool;

/* The tool that arguments or an answer belong to. */
enum run_for { RUN_FOR_SCRIPT, RUN_FOR_REPL };

struct run_script_arguments;

/* A tool that runs scripts: how it reads its arguments and gives its answers. One is run_script;
 * the others replace tools of other servers. */
struct script_tool {
	/* As run_script_read. */
	int (*read)(const json_t *json, const struct config *config,
		    struct run_script_arguments *arguments_r, struct why *why_r);
	/* Gives the outcome: calls host->on_answer once. flags: as read has set them. */
	void (*answer)(const struct outcome *outcome, unsigned int flags,
		       const struct tool_host *host);
	/* Answers that nothing was run: calls host->on_answer once. reason, text: as in
	 * run_script_refuse_as. */
	void (*refuse)(const char *reason, const char *text, const struct tool_host *host);
	/* The name of the tool, if its scripts may ask for input; such a tool has the member reply
	 * (mcp/tool.h). NULL: they may not. */
	const char *asks;
};

/* The start, cancel and uses (mcp/tool.h) of a tool that runs scripts. */
struct tool_run *run_script_start(const struct script_tool *kind,
				  const struct tool_host *host, const json_t *json);
void run_script_cancel(struct tool_run *run, enum cancel_reason reason);
bool run_script_uses(struct tool_run *run, struct execution_now *now_r);

/* The arguments of a call, borrowed from the JSON unless stated otherwise. */
struct run_script_arguments {
	const char *script, *script_name, *stdin_text, *profile;	/* NULL: not given */
	size_t script_len, stdin_len;
	const char **args;				/* malloc'd; NULL: none */
	size_t n_args;
	struct run_script_files files;
	struct limits_asked asked;
	json_t *dependencies;				/* held; NULL: not given */
	char *globals;					/* as in struct execution_request, malloc'd
							 */
	bool background, spill;
	uint32_t text_tokens;				/* 0: not given */
	const char *python;				/* version or interpreter; NULL: any */
	/* Only for run_repl, whose code is in script. */
	const char *session, *checkpoint, *restore;	/* NULL: not given */
	const char *volume;				/* of both tools; NULL: not given */
	bool branch, inspect, reset, close;
	bool has_snapshot, snapshot;			/* was snapshot given? its value */
	struct import_list imports;			/* item NULL: any; the array is malloc'd */
	char requires_python[48];			/* specifiers, beside those of the script;
							 * "": none */
	bool tell_names;				/* as in struct execution_request */
	bool dependencies_replace;			/* as in struct requirements_probe */
	unsigned int flags;				/* the tool's own, for its answer */
};

/* Reads the arguments of a call and checks every field, except for the caps of limits, which
 * limits_merge checks. 0, and run_script_arguments_done releases *arguments_r; or -EINVAL with
 * why_r, which names the field and the allowed values. */
int run_script_read(enum run_for tool, const json_t *json, const struct config *config,
		    struct run_script_arguments *arguments_r, struct why *why_r);
void run_script_arguments_done(struct run_script_arguments *arguments);

/* Reads a script, which must be a string of at most SCRIPT_MAX bytes without NUL. 0, or -EINVAL
 * with why_r, which names field. */
int run_script_read_script(const char *field, const json_t *value,
			   struct run_script_arguments *arguments, struct why *why_r);

/* Can this value be an idempotency key? value: any JSON value, or NULL. */
bool run_script_is_key(const json_t *value);

/* The member once of a tool (mcp/tool.h). */
const char *run_script_once(const json_t *arguments);

/* The schemas as JSON texts, malloc'd, with the limits in force. */
char *run_script_input_schema(enum run_for tool, const struct config *config);
char *run_script_output_schema(enum run_for tool, const struct config *config);

/* Adds the members that run_calls_write() writes to a schema of an answer, if other servers are
 * configured. schema: from schema_load(). */
void run_script_add_calls(json_t *schema, const struct config *config);

/* A sentence for descriptions about the network of scripts; static. */
const char *run_script_network_text(const struct config *config);

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
 * handle. supplement: may be NULL. */
void run_script_answer_job(const char *job, const struct run_supplement *supplement,
			   const struct tool_host *host);

#endif
