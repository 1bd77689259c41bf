/* SPDX-License-Identifier: Apache-2.0 */
/* Which tools of other MCP servers a tenant's scripts may call. Pure decisions.
 */
#ifndef POLICY_TOOLS_H
#define POLICY_TOOLS_H

#include <stdbool.h>

#include "policy/rules.h"

struct config;

/* The name under which scripts see the tools of the client that started them. It owns them: what no
 * list of [tool-calls] names is allowed. */
#define TOOLS_CLIENT "client"

/* Is the server there for the tenant? config: the tenant's. */
bool tools_allows_server(const struct config *config, const char *server);

/* What holds for a tool of a server: the strictest list of [tool-calls] that names it; else what is
 * said of read-only tools, or of all others; else the preset. read_only: so the server says. A tool
 * of a server that is not there for the tenant is denied. */
enum policy_verdict tools_verdict(const struct config *config, const char *server,
				  const char *tool, bool read_only);

#endif
