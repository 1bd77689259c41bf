/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements of a script: its block of inline metadata (PEP 723) and the client's list. They are
 * read, merged, and compared with the environment of a profile. Used by run_script and
 * validate_script.
 *
 * Not needed if the call has no list and its script has no block (requirements_any).
 */
#ifndef TOOLS_SHARED_REQUIREMENTS_H
#define TOOLS_SHARED_REQUIREMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "mcp/tool.h"
#include "policy/requirement.h"
#include "proto/message.h"

#define FINDING_ERRORS_MAX 64	/* reported for one script; all others are counted as one */
#define FINDING_IMPORTS_MAX 32	/* modules that are missing, of one script */

struct requirements_check;

struct requirements_probe {
	const char *script;		/* UTF-8; NUL allowed */
	size_t script_len;
	const json_t *dependencies;	/* the client's list, an array of strings; NULL: none */
	const char *requires_python;	/* specifiers (PEP 440), beside those of the block; NULL:
					 * none */
	const char *profile;		/* as environment_profile gave it */
	bool compile;			/* look for syntax errors, too */
	/* A requirement in dependencies replaces the block's requirement of the same name;
	 * otherwise both count. */
	bool dependencies_replace;
};

struct finding_error {
	unsigned int line;		/* of the script; 0: it belongs to no line */
	char *message;			/* UTF-8 */
};

/* Valid during the call only. */
struct findings {
	bool found;			/* the script has a block */
	struct requirements list;	/* each name once */
	char *requires_python;		/* NULL: none is given */
	struct finding_error error[FINDING_ERRORS_MAX];
	size_t n_errors;
	/* With compile: the modules that the script imports, and the profile's Python does not
	 * have. Names of the top level, of letters, digits and '_'. */
	struct finding_import {
		unsigned int line;
		char module[MODULE_NAME_MAX + 1];
	} import[FINDING_IMPORTS_MAX];
	size_t n_imports;
	/* The environment, if there are requirements and no errors; otherwise NULL. */
	json_t *environment;
	bool python_fits;		/* true also if there is no requires_python */
	bool *missing;			/* missing[i]: list.item[i] is not met */
	size_t n_missing;
	/* Not NULL: the check failed, and the other members are not valid. */
	const struct outcome *trouble;
};

typedef void requirements_found(void *arg, const struct findings *findings);

/* Is there anything to check? dependencies may be NULL. */
bool requirements_any(const char *script, size_t len, const json_t *dependencies);

/* Starts a check. found is called once: from within this function, and then *check_r is NULL; or
 * from a later turn of the loop. 0; or an error of execution_start with why_r, and found is not
 * called. script, dependencies and profile of the probe are borrowed until found is called, the
 * other members only during this call. */
int requirements_start(const struct tool_host *host,
		       const struct requirements_probe *probe,
		       requirements_found *found, void *arg,
		       struct requirements_check **check_r, struct why *why_r);
void requirements_cancel(struct requirements_check *check, enum cancel_reason reason);

/* One sentence with the names of missing packages, malloc'd. */
char *requirements_missing_text(const struct findings *findings, const char *profile);

/* One sentence about a Python that does not fit, malloc'd. */
char *requirements_python_text(const struct findings *findings, const char *profile);

/* Checks a client's list: an array of at most REQUIREMENTS_MAX strings, each of at most
 * REQUIREMENT_MAX bytes. 0, or -EINVAL with why_r filled. */
int requirements_check_list(const json_t *value, struct why *why_r);

#endif
