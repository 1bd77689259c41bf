/* SPDX-License-Identifier: Apache-2.0 */
/* The tool local_file: a file of the user's machine, below a root that the client offers, becomes a
 * kept file of the tenant, whose uri scripts can name. Only in a service of one client, where the
 * user of the client is the user of the service, and only with the option --roots. The user is
 * asked each time.
 */
#ifndef TOOLS_FILES_LOCAL_FILE_H
#define TOOLS_FILES_LOCAL_FILE_H

#include "mcp/tool.h"

extern const struct tool local_file_tool;

#endif
