/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of all events since the start of the service. This module is the engine's observer:
 * it sees every execution and connection, and passes each event on to another observer.
 *
 * METRICS_TENANTS tenants have numbers of their own. The numbers of further tenants, and of a
 * tenant that makes room for another one, are added to "other", so sums stay right and the number
 * of labels is bounded. In the same way METRICS_TOOLS tools of other servers are named.
 */
#ifndef GOVERN_METRICS_H
#define GOVERN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

struct engine_observer;
struct metrics;
struct openmetrics;

#define METRICS_TENANTS 128
#define METRICS_TOOLS 128

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);	/* NULL is fine */

/* The observer for engine_options: it counts, and passes everything on to next (borrowed; NULL:
 * none). To be called once. */
const struct engine_observer *metrics_observer(struct metrics *metrics,
					       const struct engine_observer *next);

struct metrics_tenant {
	uint64_t executions;		/* that have ended */
	uint64_t cpu_ms;		/* of all that runs for it */
	uint64_t limits_hit;
	uint64_t imports_refused;	/* executions of which an import was refused */
};

/* The numbers of a tenant. False: the tenant has none of its own, and *tenant_r is zeroed. */
bool metrics_tenant(const struct metrics *metrics, const char *principal,
		    struct metrics_tenant *tenant_r);

struct metrics_sum {
	uint64_t executions, refused, limits_hit;
};
void metrics_sum(const struct metrics *metrics, struct metrics_sum *sum_r);

/* Writes the families of all counters (govern/openmetrics.h); openmetrics_end is left to the
 * caller. tenants: with the numbers of tenants. */
void metrics_write(const struct metrics *metrics, bool tenants, struct openmetrics *to);

#endif
