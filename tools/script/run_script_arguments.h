/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of run_script and run_repl.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_ARGUMENTS_H
#define TOOLS_SCRIPT_RUN_SCRIPT_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "policy/imports.h"
#include "policy/limits.h"
#include "tools/script/run_script_files.h"
#include "tools/shared/argument_map.h"

struct config;
struct why;

#define RUN_STDIN_MAX (8 * 1024 * 1024)		/* bytes */
#define RUN_ARGS_BYTES_MAX (512 * 1024)		/* of all args together */
#define RUN_ANSWER_MAX (9 * 1024 * 1024)	/* roughly, bytes of an answer's line: some clients
						 * do not accept 10 MiB */

#define RUN_KEY_ARGUMENT "idempotency_key"
#define RUN_KEY_MAX 128				/* characters */
#define RUN_SESSION_MAX 128			/* bytes of a handle */
#define RUN_PYTHON_MAX 32			/* bytes of a version or an interpreter's name */
#define RUN_NAME_MAX 64				/* bytes of a checkpoint's name */

/* The tool that arguments or an answer belong to. */
enum run_for { RUN_FOR_SCRIPT, RUN_FOR_REPL };

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
 * why_r, which names the field and the allowed values, and *arguments_r is empty. */
int run_script_read(enum run_for tool, const json_t *json, const struct config *config,
		    struct run_script_arguments *arguments_r, struct why *why_r);
void run_script_arguments_done(struct run_script_arguments *arguments);

/* The map of both tools, which ends with a row without a name. schema/run_input.json describes it
 * to clients. */
extern const struct argument run_script_argument[];

/* The value of the limit that an argument sets, in the argument's unit; 0: it sets none. */
double run_script_limit(const struct limits *limits, const char *name);

/* For the maps of other tools that run scripts: code, a string of at most a->most bytes without
 * NUL, into a struct run_script_arguments; and requirements, into a json_t * that is held. */
int run_script_read_code(const struct argument *a, const json_t *value, struct reading *in);
int run_script_read_dependencies(const struct argument *a, const json_t *value,
				 struct reading *in);

/* Can this value be an idempotency key? value: any JSON value, or NULL. */
bool run_script_is_key(const json_t *value);

#endif
