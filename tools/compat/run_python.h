/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tools "run-python", with one tool. It replaces the server mcp-run-python: the tool has
 * the same name, arguments and answers, so that clients need no change.
 */
#ifndef TOOLS_COMPAT_RUN_PYTHON_H
#define TOOLS_COMPAT_RUN_PYTHON_H

#include <stdio.h>

#include "mcp/tool.h"

extern const struct tool run_python_code_tool;

/* Give the answer of a call (run_python_answer.c): each calls host->on_answer once. The first gives
 * the outcome, after its output was sent as log lines. The second gives the reason why nothing was
 * run, in the form of the replaced server if that server knows such a reason. flags: not used. */
void run_python_answer(const struct outcome *outcome, unsigned int flags,
		       const struct tool_host *host);
void run_python_refuse(const char *reason, const char *text, const struct tool_host *host);

/* Writes a well-formed JSON text with line breaks and an indent of two, which stops growing at 16
 * levels. */
void run_python_indent(FILE *to, const char *json);

/* Writes a text so that the tag does not occur in the output: the brackets of each such tag in the
 * text become &lt; and &gt;. */
void run_python_escape(FILE *to, const char *text, size_t len, const char *tag);

#endif
