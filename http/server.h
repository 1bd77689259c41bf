/* SPDX-License-Identifier: Apache-2.0 */
/* MCP over HTTP: the path /mcp, on up to HTTP_ENDPOINTS_MAX listening sockets. Modern requests are
 * independent of each other; legacy requests belong to sessions (http/session.h).
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "http/options.h"

struct http_server;
struct why;

/* Opens a TCP socket. text: ADDRESS:PORT in numbers; port 0: any. open: addresses other than those
 * of the loopback device are allowed, because clients authenticate or the operator has set
 * insecure. 0 and *fd_r, which the caller owns; or -errno with why_r. */
int http_open_address(const char *text, bool open, int *fd_r, struct why *why_r);

/* May a socket that was passed to the service be served? It must be a unix socket or have a
 * loopback address, unless open is set. 0 or -errno with why_r. */
int http_check_socket(int fd, bool open, struct why *why_r);

struct http_server *http_server_new(const struct http_server_options *options);

/* Closes all connections at once, and cancels their calls. NULL is fine. */
void http_server_free(struct http_server *server);

/* Takes fd, a listening stream socket, and serves it at once. only_metrics: serves
 * HTTP_METRICS_PATH alone, to every client that can connect. 0; or -errno, and fd still belongs to
 * the caller. */
int http_server_listen(struct http_server *server, int fd, bool only_metrics);

/* Accepts no more connections. Closes idle ones now, and the others after their answer. */
void http_server_drain(struct http_server *server);

/* The number of connections, and of sessions. */
size_t http_server_count(const struct http_server *server);
size_t http_server_sessions(const struct http_server *server);

/* From now on on_empty is called from the loop each time the last connection has closed. */
void http_server_on_empty(struct http_server *server, void (*on_empty)(void *arg), void *arg);

#endif
