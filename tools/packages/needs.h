/* SPDX-License-Identifier: Apache-2.0 */
/* Declared dependencies of code. They are compared with the packages of the profile. Missing
 * packages are found in the store or installed, if that is configured. Used by run_script, and by
 * run_repl when a session begins. Not needed for code without dependencies (requirements_any).
 */
#ifndef TOOLS_PACKAGES_NEEDS_H
#define TOOLS_PACKAGES_NEEDS_H

#include <stdbool.h>

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/shared/requirements.h"

struct needs;

enum needs_status {
	NEEDS_MET,
	NEEDS_PYTHON,			/* the profile's Python does not fit */
	NEEDS_REFUSED,
	NEEDS_TROUBLE,			/* a worker that was used for this ended abnormally */
};

/* Valid during the call only; all borrowed. */
struct needs_result {
	enum needs_status status;
	const char *environment;	/* NEEDS_MET: the name of the environment that has the
					 * missing packages; NULL: none is needed */
	const json_t *packages;		/* the packages in environment: a set (set.h) */
	const char *reason, *text;	/* NEEDS_PYTHON, NEEDS_REFUSED: as for run_script_refuse_as
					 */
	const struct outcome *trouble;	/* NEEDS_TROUBLE: of that worker */
};

typedef void needs_known(void *arg, const struct needs_result *result);

/* Starts the check. The client's user may be asked about packages: the tool passes the replies to
 * needs_reply. known is called once: from within this function, and then *needs_r is
 * NULL; or from a later turn of the loop. 0; or an error of requirements_start with why_r, and
 * known is not called. The probe is borrowed as by requirements_start; its member compile is not
 * used. */
int needs_start(const struct tool_host *host, const struct requirements_probe *probe,
		needs_known *known, void *arg, struct needs **needs_r,
		struct why *why_r);
void needs_reply(struct needs *needs, const struct tool_reply *reply);
void needs_cancel(struct needs *needs, enum cancel_reason reason);

#endif
