/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which tools of other MCP servers a tenant's scripts may call. Pure decisions.
 */
#ifndef POLICY_TOOLS_H
#define POLICY_TOOLS_H

#include <stdbool.h>

#include "policy/rules.h"

struct config;

/* The name of the server that stands for the client which has started a script. Its tools belong to
 * the client itself, so they are allowed if no list of [tool-calls] names them. */
#define TOOLS_CLIENT "client"

/* May the tenant use the server? config: the tenant's. */
bool tools_allows_server(const struct config *config, const char *server);

/* The verdict about a tool of a server. If lists of [tool-calls] name the tool, it is that of the
 * strictest of them; otherwise that of [tool-calls] for read-only tools or for other tools; if that
 * is not set, that of the preset. read_only: the server says that the tool changes nothing. A tool
 * of a server that the tenant may not use is denied. */
enum policy_verdict tools_verdict(const struct config *config, const char *server,
				  const char *tool, bool read_only);

#endif
