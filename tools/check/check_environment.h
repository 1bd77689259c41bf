/* SPDX-License-Identifier: Apache-2.0 */
/* The tool check_environment: lists the interpreter, packages and limits that scripts will have. */
#ifndef TOOLS_CHECK_CHECK_ENVIRONMENT_H
#define TOOLS_CHECK_CHECK_ENVIRONMENT_H

#include "mcp/tool.h"

extern const struct tool check_environment_tool;

/* Calls on_answer once. modules: the call asks for long lists too. environment: as in
 * environment_known, not NULL. */
typedef void check_environment_answer(const struct tool_host *host, const char *profile,
				      bool modules, const json_t *environment);

/* The start and cancel (tool.h) of a tool that finds out the same and gives another answer.
 * profile: as environment_profile gave it. requires_python (PEP 440, NULL: nothing): if the
 * profile's Python does not fit, that profile is meant in which a script with it would run. */
struct tool_run *check_environment_start(const struct tool_host *host, const char *profile,
					 bool modules, const char *requires_python,
					 check_environment_answer *answer);
void check_environment_cancel(struct tool_run *run, enum cancel_reason reason);

#endif
