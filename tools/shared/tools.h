/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of which the other folders know nothing but that they are there. Each is in the file of its
 * name.
 */
#ifndef TOOLS_SHARED_TOOLS_H
#define TOOLS_SHARED_TOOLS_H

#include "mcp/tool.h"

/* Follows runs that were started in the background (tools/job/background.h). */
extern const struct tool job_tool;

/* Installs packages for scripts or for a session. */
extern const struct tool install_package_tool;

/* Finds the tools of other servers that scripts can call. The search is the same as tools.search()
 * in scripts, and runs in a jailed worker. */
extern const struct tool search_tools_tool;

/* A file of the user's machine, below a root that the client offers, becomes a kept file of the
 * tenant, whose uri scripts can name. Only in a service of one client, where the user of the client
 * is the user of the service, and only with the option --roots. The user is asked each time. */
extern const struct tool local_file_tool;
extern const struct tool save_file_tool;	/* a kept file becomes a new one there */

/* The set of tools "exec-sandbox". It replaces the server mcp-python-exec-sandbox: it has the same
 * names, arguments, defaults and texts, so that clients need no change. Answers are texts; the
 * structured content of an answer is {"result": text}. */
extern const struct tool execute_python_tool;
extern const struct tool exec_sandbox_environment_tool;	/* check_environment */
extern const struct tool exec_sandbox_validate_tool;	/* validate_script */

#endif
