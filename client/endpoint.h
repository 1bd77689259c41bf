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

/* Fills *list_r with the paths to try, in order: only asked, if it is not NULL; otherwise only
 * $MCP_PYTHON_SOCKET, if it is set; otherwise $XDG_RUNTIME_DIR/mcp-pythond.sock and
 * ENDPOINT_SYSTEM. 0, or -ENAMETOOLONG: a path does not fit into a socket address. */
int endpoints_find(const char *asked, struct endpoints *list_r);

/* Connects to the first path of a list that has a listener, and prints nothing. A non-blocking
 * descriptor, or -errno of the last path that exists; -ENOENT: none exists. error_r: gets the error
 * of each path; may be NULL. */
int endpoints_connect(const struct endpoints *list, int error_r[ENDPOINTS_MAX]);

/* Does both: connects to the first path that has a listener. A non-blocking descriptor, or -errno;
 * after an error the path, the reason and a remedy were printed on standard error. */
int endpoint_connect(const char *asked);

#endif
