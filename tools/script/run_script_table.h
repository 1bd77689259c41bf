/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of run_script and run_repl: one table, which run_script_arguments.c uses to read
 * them. schema/run_input.json describes them to clients.
 */
#ifndef TOOLS_SCRIPT_RUN_SCRIPT_TABLE_H
#define TOOLS_SCRIPT_RUN_SCRIPT_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/script/run_script_arguments.h"

enum kind { KIND_TEXT, KIND_TEXTS, KIND_NUMBER, KIND_INTEGER, KIND_PROFILE, KIND_KEY,
	    KIND_FILES, KIND_SESSION, KIND_NAME, KIND_FLAG, KIND_IMPORTS, KIND_TIER,
	    KIND_PYTHON, KIND_FILE_NAME };

enum field {
	FIELD_SCRIPT,
	FIELD_CODE,
	FIELD_SCRIPT_NAME,
	FIELD_SESSION,
	FIELD_STDIN,
	FIELD_ARGS,
	FIELD_TIMEOUT,
	FIELD_MEMORY,
	FIELD_CPU,
	FIELD_PIDS,
	FIELD_PROFILE,
	FIELD_DEPENDENCIES,
	FIELD_KEY,
	FIELD_FILES,
	FIELD_VOLUME,
	FIELD_BACKGROUND,
	FIELD_SPILL,
	FIELD_TEXT_TOKENS,
	FIELD_IMPORTS,
	FIELD_TIER,
	FIELD_PYTHON,
	FIELD_CHECKPOINT,
	FIELD_RESTORE,
	FIELD_BRANCH,
	FIELD_INSPECT,
	FIELD_SNAPSHOT,
	FIELD_RESET,
	FIELD_CLOSE,
	FIELD_COUNT,
};

/* most: for a text its bytes, for texts their number. The cap of a limit comes from policy, not
 * from here. */
struct row {
	const char *name;
	unsigned int tools;
	enum kind kind;
	bool required;
	double least, most;
};

extern const struct row run_script_row[FIELD_COUNT];

#define MIB (1024.0 * 1024.0)

bool run_script_takes(enum run_for tool, size_t field);

/* The limit that a field asks for, in the unit of the field; 0: the client did not set it. */
double run_script_limit(const struct limits *limits, enum field field);

#endif
