/* SPDX-License-Identifier: Apache-2.0 */
/* The tools that a client declares as its own, for scripts to call: in the settings of the
 * extension EXTENSION_CLIENT_TOOLS, {"tools": [...]} with tools as in an answer of tools/list.
 */
#ifndef MCP_CLIENT_TOOLS_H
#define MCP_CLIENT_TOOLS_H

#include <jansson.h>

struct client_tools;
struct upstream_server;

#define CLIENT_TOOLS_MAX 128			/* of one client */
#define CLIENT_TOOLS_ABOUT_MAX (256 * 1024)	/* bytes of all their descriptions together */

/* Reads the tools that a client declares. declared: the extensions of the client's capabilities, of
 * any shape. Returns NULL and *tools_r, which has one holder, or is NULL if there are no tools.
 * Otherwise returns the mistake in the declaration, static. */
const char *client_tools_read(const json_t *declared, struct client_tools **tools_r);

struct client_tools *client_tools_hold(struct client_tools *tools);	/* NULL is fine */
void client_tools_release(struct client_tools *tools);			/* NULL is fine */

/* The tools as those of another server. NULL for NULL. */
const struct upstream_server *client_tools_server(const struct client_tools *tools);

#endif
