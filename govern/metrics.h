/* SPDX-License-Identifier: Apache-2.0 */
/* What has happened since the start, counted: the owner of every counter. It sits in front of
 * the engine's observer and hears of every execution and connection.
 *
 * Numbers of tenants are kept for METRICS_TENANTS of them; those of others, and of one that has
 * to make room, are added to "other", so that sums stay true and labels bounded. The same holds for
 * other servers' tools, of which METRICS_TOOLS are named.
 */
#ifndef GOVERN_METRICS_H
#define GOVERN_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct engine_observer;
struct metrics;

#define METRICS_TENANTS 128
#define METRICS_TOOLS 128
#define METRICS_PREFIX "mcp_python_"

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);	/* NULL is fine */

/* For engine_options: counts, and passes everything on to next (borrowed; NULL: none). Once. */
const struct engine_observer *metrics_observer(struct metrics *metrics,
					       const struct engine_observer *next);

struct metrics_tenant {
	uint64_t executions;		/* that are over */
	uint64_t cpu_ms;		/* of them, and of sessions between cells */
	uint64_t limits_hit;
	uint64_t imports_refused;	/* executions of which an import was refused */
};

/* False: nothing of it was counted, or it is among the others; zeroed. */
bool metrics_tenant(const struct metrics *metrics, const char *principal,
		    struct metrics_tenant *tenant_r);

struct metrics_sum {
	uint64_t executions, refused, limits_hit;
};
void metrics_sum(const struct metrics *metrics, struct metrics_sum *sum_r);

/* Writes the families of all counters (govern/openmetrics.h), without the end. tenants:
 * those of tenants too. */
void metrics_write(const struct metrics *metrics, bool tenants, FILE *out);

#endif
