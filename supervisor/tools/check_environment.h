/* The tool check_environment: what scripts will find, and within which limits. */
#ifndef SUPERVISOR_TOOLS_CHECK_ENVIRONMENT_H
#define SUPERVISOR_TOOLS_CHECK_ENVIRONMENT_H

#include "supervisor/tools/tool.h"

extern const struct tool check_environment_tool;

#endif
