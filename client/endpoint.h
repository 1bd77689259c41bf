/* SPDX-License-Identifier: Apache-2.0 */
/* Where the service listens, and why it cannot be reached. */
#ifndef CLIENT_ENDPOINT_H
#define CLIENT_ENDPOINT_H

#include <stddef.h>

#define ENDPOINT_SYSTEM "/run/mcp-pythond/mcp.sock"
#define ENDPOINTS_MAX 2

struct endpoints {
	char path[ENDPOINTS_MAX][4096];
	size_t n;
	const char *named_by; /* "--socket", "MCP_PYTHON_SOCKET"; NULL: looked for */
};

/* Fills *list_r with the paths to try, in order: asked (NULL: none was), else the one
 * in $MCP_PYTHON_SOCKET, else $XDG_RUNTIME_DIR/mcp-pythond.sock and the system's. 0, or
 * -ENAMETOOLONG when a path does not fit into a socket address. */
int endpoints_find(const char *asked, struct endpoints *list_r);

/* Connects to the first one of a list that has a listener, and says nothing. A non-blocking
 * descriptor, or -errno: of the last path that is not merely missing; -ENOENT: all are.
 * error_r: of each path; NULL is fine. */
int endpoints_connect(const struct endpoints *list, int error_r[ENDPOINTS_MAX]);

/* Connects to the first one that has a listener. A non-blocking descriptor, or
 * -errno after saying on standard error which path, why, and what to do. */
int endpoint_connect(const char *asked);

#endif
