/* The tool install_package.
 */
#ifndef SUPERVISOR_TOOLS_PACKAGES_INSTALL_PACKAGE_H
#define SUPERVISOR_TOOLS_PACKAGES_INSTALL_PACKAGE_H

#include "supervisor/tools/tool.h"

extern const struct tool install_package_tool;

#endif
