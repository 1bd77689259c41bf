/* SPDX-License-Identifier: Apache-2.0 */
/* The status and the metrics of a running service, for operators. They are collected from all
 * modules; nothing is stored here.
 */
#ifndef SUPERVISOR_OPERATE_OPERATION_H
#define SUPERVISOR_OPERATE_OPERATION_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct config;
struct engine;
struct governance;
struct http_server;
struct metrics;
struct operation;
struct stream_set;

/* All borrowed; they must outlive the last call. */
struct operation_sources {
	const struct config *config;	/* of the start */
	const struct engine *engine;
	const struct stream_set *streams;
	const struct http_server *http;
	struct governance *governance;
	const struct metrics *metrics;
};

struct operation *operation_new(const struct operation_sources *sources);
void operation_free(struct operation *operation);	/* NULL is fine */

/* The whole status, as members of an answer for operators. The caller releases it. */
json_t *operation_status(const struct operation *operation);

/* The status with only the principal's own data. The caller releases it. */
json_t *operation_status_of(const struct operation *operation, const char *principal);

/* The metrics as OpenMetrics text, malloc'd; *len_r: its length without the NUL. tenants: with the
 * numbers of each tenant. plain: in Prometheus' older form. */
char *operation_metrics(const struct operation *operation, bool tenants, bool plain,
			size_t *len_r);

#endif
