/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMetrics text, version 1.0, or the older form of Prometheus, version 0.0.4: families of
 * samples with labels. Pure; writes to a stream of memory.
 *
 *   struct openmetrics to = { .out = out };
 *   openmetrics_family(&to, "x_seconds", "counter", "seconds", "What it counts.");
 *   openmetrics_real(&to, 1.5, "tenant", "uid:0", NULL);
 *   openmetrics_end(&to);
 */
#ifndef GOVERN_OPENMETRICS_H
#define GOVERN_OPENMETRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

#define OPENMETRICS_PLAIN "text/plain; version=0.0.4; charset=utf-8"

#define METRICS_PREFIX "mcp_python_"

struct openmetrics {
	FILE *out;
	bool plain;			/* the older form, which not all readers have left */
	const char *name, *suffix;	/* of the family that was begun last, and of its samples */
};

/* Begins a family. name: without METRICS_PREFIX; borrowed until the next family. type: "counter",
 * "gauge", "histogram", "info". unit: NULL, or the word that the name ends with. help: one
 * sentence. */
void openmetrics_family(struct openmetrics *to, const char *name, const char *type,
			const char *unit, const char *help);

/* Writes one sample of the family. After value come pairs of a label's name and value, and NULL. A
 * label's value may be any bytes without NUL. */
void openmetrics_uint(const struct openmetrics *to, uint64_t value, ...)
	__attribute__((sentinel));
void openmetrics_real(const struct openmetrics *to, double value, ...)
	__attribute__((sentinel));

/* Writes a family that has one sample without labels. */
void openmetrics_one(struct openmetrics *to, const char *name, const char *type, const char *unit,
		     const char *help, uint64_t value);

void openmetrics_end(const struct openmetrics *to);

/* ---- histograms of time ---- */

#define HISTOGRAM_BUCKETS 14	/* without +Inf */

struct histogram {
	uint64_t bucket[HISTOGRAM_BUCKETS + 1];	/* not cumulative; the last one: +Inf */
	uint64_t sum_us;
};

void histogram_add(struct histogram *histogram, uint64_t us);
uint64_t histogram_count(const struct histogram *histogram);

/* Writes all samples of a histogram. label NULL: none. */
void openmetrics_histogram(const struct openmetrics *to, const struct histogram *histogram,
			   const char *label, const char *value);

#endif
