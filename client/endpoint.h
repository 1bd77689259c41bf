/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the service's socket and connects to it. */
#ifndef CLIENT_ENDPOINT_H
#define CLIENT_ENDPOINT_H

#include <stddef.h>

#define ENDPOINT_SYSTEM "/run/mcp-pythond/mcp.sock"
#define ENDPOINTS_MAX 2

struct endpoints {
	char path[ENDPOINTS_MAX][4096];
	size_t n;
	const char *named_by; /* "--socket", "MCP_PYTHON_SOCKET"; NULL: a default path */
};

/* Fills *list_r with the paths to try, in order: asked (NULL: none was named), else the one in
 * $MCP_PYTHON_SOCKET, else $XDG_RUNTIME_DIR/mcp-pythond.sock and that of the system. 0, or
 * -ENAMETOOLONG: a path does not fit into a socket address. */
int endpoints_find(const char *asked, struct endpoints *list_r);

/* Connects to the first one of a list that has a listener, and prints nothing. A non-blocking
 * descriptor, or -errno: that of the last path that exists; -ENOENT: none exists. error_r: the
 * error of each path; may be NULL. */
int endpoints_connect(const struct endpoints *list, int error_r[ENDPOINTS_MAX]);

/* Connects to the first one that has a listener. A non-blocking descriptor, or -errno; then the
 * path, the reason and a remedy were printed on standard error. */
int endpoint_connect(const char *asked);

#endif
