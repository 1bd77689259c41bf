/* SPDX-License-Identifier: Apache-2.0 */
/* The tool search_tools: finds the tools of other servers that scripts can call. The search is the
 * same as tools.search() in scripts, and runs in a jailed worker.
 */
#ifndef TOOLS_CHECK_SEARCH_TOOLS_H
#define TOOLS_CHECK_SEARCH_TOOLS_H

#include "mcp/tool.h"

extern const struct tool search_tools_tool;

#endif
