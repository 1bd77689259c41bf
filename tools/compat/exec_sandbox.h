/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tools "exec-sandbox". It replaces the server mcp-python-exec-sandbox: it has the same
 * names, arguments, defaults and texts, so that clients need no change. Answers are texts; the
 * structured content of an answer is {"result": text}.
 */
#ifndef TOOLS_COMPAT_EXEC_SANDBOX_H
#define TOOLS_COMPAT_EXEC_SANDBOX_H

#include "mcp/tool.h"

extern const struct tool execute_python_tool;
extern const struct tool exec_sandbox_environment_tool;	/* check_environment */
extern const struct tool exec_sandbox_validate_tool;	/* validate_script */

#endif
