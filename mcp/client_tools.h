/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that live in the client, for scripts to call. The client declares them in its capabilities,
 * in the settings of the extension EXTENSION_CLIENT_TOOLS: {"tools": [...]}. Each tool has the same
 * form as in an answer of tools/list.
 */
#ifndef MCP_CLIENT_TOOLS_H
#define MCP_CLIENT_TOOLS_H

#include <jansson.h>

struct client_tools;
struct upstream_server;

#define CLIENT_TOOLS_MAX 128			/* of one client */
#define CLIENT_TOOLS_ABOUT_MAX (256 * 1024)	/* bytes of all their descriptions together */

/* Reads the tools that a client declares. declared: the extensions of the client's capabilities, of
 * any shape. NULL: the declaration is valid; *tools_r has one holder, or is NULL if the extension
 * is not declared. Otherwise returns the mistake in the declaration, static. */
const char *client_tools_read(const json_t *declared, struct client_tools **tools_r);

struct client_tools *client_tools_hold(struct client_tools *tools);	/* NULL is fine */
void client_tools_release(struct client_tools *tools);			/* NULL is fine */

/* A server that has these tools, for functions that call tools of other servers. Valid as long as
 * tools is held. tools NULL: NULL. */
const struct upstream_server *client_tools_server(const struct client_tools *tools);

#endif
