/* SPDX-License-Identifier: Apache-2.0 */
/* Declared dependencies of code. They are compared with the packages of its profile; missing ones
 * are found in the store or installed, if that is configured. Used by run_script, and by run_repl
 * when a session begins. Code without dependencies (requirements_any) does not need it.
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
	NEEDS_PYTHON,			/* this profile's Python does not fit */
	NEEDS_REFUSED,
	NEEDS_TROUBLE,			/* a worker of this check ended abnormally */
};

/* Valid during the call only; all borrowed. */
struct needs_result {
	enum needs_status status;
	const char *environment;	/* MET: its name in the store; NULL: none is needed */
	const json_t *packages;		/* the packages in it: a set (set.h) */
	const char *reason, *text;	/* PYTHON, REFUSED: as for run_script_refuse_as */
	const struct outcome *trouble;	/* TROUBLE */
};

typedef void needs_known(void *arg, const struct needs_result *result);

/* may_ask: the tool passes replies to needs_reply, so the session's user may be asked about
 * packages. known is called once: from within, and then *needs_r is NULL, or from a later turn of
 * the loop. 0, or an error of requirements_start, with why_r filled and without a call of known.
 * The probe is borrowed as by requirements_start; its member compile is not used. */
int needs_start(const struct tool_host *host, const struct requirements_probe *probe,
		bool may_ask, needs_known *known, void *arg, struct needs **needs_r,
		struct why *why_r);
void needs_reply(struct needs *needs, const struct tool_reply *reply);
void needs_cancel(struct needs *needs, enum cancel_reason reason);

#endif
