/* The set of tools "run-python": that of the server mcp-run-python, with its name, arguments and
 * answers, so that its clients need no change.
 */
#ifndef TOOLS_COMPAT_RUN_PYTHON_H
#define TOOLS_COMPAT_RUN_PYTHON_H

#include <stdio.h>

#include "mcp/tool.h"

extern const struct tool run_python_code_tool;

/* Calls on_answer once (run_python_answer.c): with what the outcome says, after its output went out
 * as log lines; and with why nothing was run, which is an answer like others for reasons that the
 * replaced server has too. flags: nothing. */
void run_python_answer(const struct outcome *outcome, unsigned int flags,
		       const struct tool_host *host);
void run_python_refuse(const char *reason, const char *text, const struct tool_host *host);

/* Writes a JSON text, which is well-formed, with line breaks and an indent of two; what is nested
 * deeper than 16 levels is not indented further. */
void run_python_indent(FILE *to, const char *json);

/* Writes a text in which the tag does not occur: its brackets become &lt; and &gt;. */
void run_python_escape(FILE *to, const char *text, size_t len, const char *tag);

#endif
