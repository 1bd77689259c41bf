/* SPDX-License-Identifier: Apache-2.0 */
/* The Model Context Protocol: everything that does not belong to one client. A process has one
 * struct mcp; conversations and calls borrow it, and use its parts by mcp/context.h.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include "mcp/context.h"

struct mcp *mcp_new(const struct mcp_options *options);
void mcp_free(struct mcp *mcp);		/* NULL is fine; after all conversations */

/* To be called when another configuration is in force: clients for which tools/list has changed are
 * told, if they listen. */
void mcp_tools_changed(struct mcp *mcp);

/* To be called when a resource of this tenant has changed: clients that subscribed to it are told.
 */
void mcp_resource_changed(struct mcp *mcp, struct tenant *tenant, const char *uri);

#endif
