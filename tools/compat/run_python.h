/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tools "run-python": that of the server mcp-run-python, with its name, arguments and
 * answers, so that its clients need no change.
 */
#ifndef TOOLS_COMPAT_RUN_PYTHON_H
#define TOOLS_COMPAT_RUN_PYTHON_H

#include <stdio.h>

#include "mcp/tool.h"

extern const struct tool run_python_code_tool;

/* Call on_answer once (run_python_answer.c): with the outcome, after its output was sent as log
 * lines; or with the reason why nothing was run, in the form of the replaced server if that has
 * such a reason. flags: not used. */
void run_python_answer(const struct outcome *outcome, unsigned int flags,
		       const struct tool_host *host);
void run_python_refuse(const char *reason, const char *text, const struct tool_host *host);

/* Writes a well-formed JSON text with line breaks and an indent of two, which stops growing at 16
 * levels. */
void run_python_indent(FILE *to, const char *json);

/* Writes a text so that the tag does not occur in it: the brackets of the tag become &lt; and &gt;.
 */
void run_python_escape(FILE *to, const char *text, size_t len, const char *tag);

#endif
