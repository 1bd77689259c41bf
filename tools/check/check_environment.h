/* SPDX-License-Identifier: Apache-2.0 */
/* The tool check_environment: lists the interpreter, packages and limits that scripts will have. */
#ifndef TOOLS_CHECK_CHECK_ENVIRONMENT_H
#define TOOLS_CHECK_CHECK_ENVIRONMENT_H

#include "mcp/tool.h"

extern const struct tool check_environment_tool;

/* Gives the answer of a call: calls host->on_answer once. modules: the answer has the preloaded
 * modules of each profile, and its text the version of each package. environment: as in
 * environment_known, not NULL. */
typedef void check_environment_answer(const struct tool_host *host, const char *profile,
				      bool modules, const json_t *environment);

/* The start and cancel (mcp/tool.h) of a tool that reports the same facts in an answer of its own.
 * profile: as environment_profile gave it. requires_python: specifiers (PEP 440); NULL: none. If
 * the Python of the profile does not fit them, the report is about the profile in which a script
 * with these specifiers would run. */
struct tool_run *check_environment_start(const struct tool_host *host, const char *profile,
					 bool modules, const char *requires_python,
					 check_environment_answer *answer);
void check_environment_cancel(struct tool_run *run, enum cancel_reason reason);

#endif
