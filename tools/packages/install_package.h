/* SPDX-License-Identifier: Apache-2.0 */
/* The tool install_package: installs packages for scripts or for a session.
 */
#ifndef TOOLS_PACKAGES_INSTALL_PACKAGE_H
#define TOOLS_PACKAGES_INSTALL_PACKAGE_H

#include "mcp/tool.h"

extern const struct tool install_package_tool;

#endif
