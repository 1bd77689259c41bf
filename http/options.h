/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the bounds of an HTTP server.
 */
#ifndef HTTP_OPTIONS_H
#define HTTP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct auth;
struct config;
struct engine;
struct gate;
struct loop;
struct mcp;
struct rota;

#define HTTP_ENDPOINTS_MAX 8
#define HTTP_METRICS_PATH "/metrics"
#define HTTP_HEALTH_PATH "/healthz"
#define HTTP_READY_PATH "/readyz"
#define HTTP_HEAD_MAX (32 * 1024)		/* bytes of request line and headers */
#define HTTP_OUTPUT_HIGH (1024 * 1024)		/* if more bytes are unsent, news are left out */
#define HTTP_OUTPUT_MAX (64 * 1024 * 1024)	/* if more bytes are unsent, the connection is
						 * closed */
#define HTTP_STALL_S 30				/* if no byte could be sent for this time, the
						 * connection is closed */
#define HTTP_PRIME_S 1				/* if an answer takes longer, its stream begins */
#define HTTP_RETRY_MS 1000			/* the time that clients have to wait before they
						 * ask for the rest of a stream */

/* All are borrowed, and must outlive the server. */
struct http_server_options {
	struct loop *loop;
	struct mcp *mcp;
	struct engine *engine;
	const struct config *config;
	struct gate *gate;		/* NULL: no quotas */
	struct rota *rota;		/* for long bodies */
	struct auth *auth;		/* NULL: clients need not authenticate */
	uid_t own_uid;			/* the tenant of clients on TCP without tokens */
	/* malloc'd text, and its bytes; plain: in Prometheus' older form */
	char *(*write_metrics)(void *arg, bool plain, size_t *len_r);
	void *write_metrics_arg;
};

#endif
