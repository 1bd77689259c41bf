/* The tool validate_script: a script's metadata and syntax, looked at without running it. */
#ifndef SUPERVISOR_TOOLS_VALIDATE_SCRIPT_H
#define SUPERVISOR_TOOLS_VALIDATE_SCRIPT_H

#include "supervisor/tools/tool.h"

extern const struct tool validate_script_tool;

#endif
