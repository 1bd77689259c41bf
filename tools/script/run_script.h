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
#define RUN_ANSWER_MAX (9 * 1024 * 1024)	/* bytes of an answer's line, about: some
						 * clients give up on 10 MiB */

#define RUN_KEY_ARGUMENT "idempotency_key"
#define RUN_KEY_MAX 128				/* characters */
#define RUN_SESSION_MAX 128			/* bytes of a handle */
#define RUN_PYTHON_MAX 32			/* bytes of a version or an interpreter's name */
#define RUN_NAME_MAX 64				/* bytes of a checkpoint's name */

extern const struct tool run_script_tool;

/* The tool that arguments or an answer belong to. */
enum run_for { RUN_FOR_SCRIPT, RUN_FOR_REPL };

struct run_script_arguments;

/* A tool that runs scripts: how it reads its arguments and gives its answers. run_script is one;
 * the others replace those of other servers. */
struct script_tool {
	/* As run_script_read. */
	int (*read)(const json_t *json, const struct config *config,
		    struct run_script_arguments *arguments_r, struct why *why_r);
	/* Calls on_answer once; flags: set by read. */
	void (*answer)(const struct outcome *outcome, unsigned int flags,
		       const struct tool_host *host);
	/* Calls on_answer once: nothing was run. reason, text: as run_script_refuse_as. */
	void (*refuse)(const char *reason, const char *text, const struct tool_host *host);
	/* Its name, if its scripts may ask for input; then the tool has a reply. NULL: they may
	 * not. */
	const char *asks;
};

/* Implement start, cancel and uses (tool.h) of such a tool. */
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
	const char *volume;				/* likewise */
	bool branch, inspect, reset, close;
	bool has_snapshot, snapshot;			/* whether it was given, and its value */
	struct import_list imports;			/* item NULL: any; the array is malloc'd */
	char requires_python[48];			/* in addition to the script's own; "": none
							 */
	bool tell_names;				/* as in an execution_request */
	bool dependencies_replace;			/* as in a requirements_probe */
	unsigned int flags;				/* set by the tool, for its answer */
};

/* Checks every field, except for the caps, which limits_merge checks. 0, or -EINVAL with why_r,
 * which names the field and the allowed values. On success run_script_arguments_done releases
 * *arguments_r. */
int run_script_read(enum run_for tool, const json_t *json, const struct config *config,
		    struct run_script_arguments *arguments_r, struct why *why_r);
void run_script_arguments_done(struct run_script_arguments *arguments);

/* Reads a script, which must be a string of at most SCRIPT_MAX bytes without NUL. 0, or -EINVAL
 * with why_r, which names field. */
int run_script_read_script(const char *field, const json_t *value,
			   struct run_script_arguments *arguments, struct why *why_r);

/* Can this value be an idempotency key? json: any value, or NULL. */
bool run_script_is_key(const json_t *value);
/* For the member once of a tool (tool.h). */
const char *run_script_once(const json_t *arguments);

/* The schemas as JSON texts, malloc'd, with the limits in force. */
char *run_script_input_schema(enum run_for tool, const struct config *config);
char *run_script_output_schema(enum run_for tool, const struct config *config);

/* Adds the members that run_calls_write() writes to the schema of another tool's answer, if there
 * are other servers. schema: of schema_load(). */
void run_script_add_calls(json_t *schema, const struct config *config);

/* A sentence for descriptions about the network of scripts; static. */
const char *run_script_network_text(const struct config *config);

/* Is text one JSON text on one line, within the bounds? */
bool run_script_is_json(const char *text, size_t len);

/* Further members of a tool's answer. */
struct run_supplement {
	void (*write)(const void *arg, struct jsonout *out);	/* members of an open object */
	void (*say)(const void *arg, FILE *to);			/* lines for readers */
	const void *arg;
};

/* Calls on_answer once with the outcome. tokens: the approximate length of its text; 0: as
 * configured. supplement may be NULL, as below. */
void run_script_answer(const struct outcome *outcome, uint32_t tokens,
		       const struct run_supplement *supplement, const struct tool_host *host);

/* Calls on_answer once: nothing was run. reason: a status as below; text: a sentence. */
void run_script_refuse_as(const char *reason, const char *text,
			  const struct run_supplement *supplement,
			  const struct tool_host *host);

/* Calls on_answer once: the script continues in the background, as the job of this handle. */
void run_script_answer_job(const char *job, const struct run_supplement *supplement,
			   const struct tool_host *host);

#endif
