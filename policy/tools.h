/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools of other MCP servers a tenant's scripts may call. Pure decisions.
 */
#ifndef POLICY_TOOLS_H
#define POLICY_TOOLS_H

#include <stdbool.h>

#include "policy/rules.h"

struct config;

/* The server name of the tools of the client that started a script. The client owns them, so those
 * that no list of [tool-calls] names are allowed. */
#define TOOLS_CLIENT "client"

/* May the tenant use the server? config: that of the tenant. */
bool tools_allows_server(const struct config *config, const char *server);

/* The verdict about a tool of a server: that of the strictest list of [tool-calls] that names it;
 * else the rule for read-only tools, or for all others; else the preset. read_only: by the server's
 * own word. A tool of a server that the tenant may not use is denied. */
enum policy_verdict tools_verdict(const struct config *config, const char *server,
				  const char *tool, bool read_only);

#endif
