/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMetrics text, version 1.0: families of samples with labels. Pure; writes to a stream of
 * memory.
 *
 *   openmetrics_family(out, "x_seconds", "counter", "seconds", "What it counts.");
 *   openmetrics_real(out, "x_seconds_total", 1.5, "tenant", "uid:0", NULL);
 *   openmetrics_end(out);
 */
#ifndef GOVERN_OPENMETRICS_H
#define GOVERN_OPENMETRICS_H

#include <stdint.h>
#include <stdio.h>

#define OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Begins a family. type: "counter", "gauge", "histogram", "info". unit: NULL, or the word that the
 * name ends with. help: one sentence. */
void openmetrics_family(FILE *out, const char *name, const char *type, const char *unit,
			const char *help);

/* Writes one sample. name has the suffix of its type (_total, _info). After value come pairs of a
 * label's name and value, and NULL. A label's value may be any bytes without NUL. */
void openmetrics_uint(FILE *out, const char *name, uint64_t value, ...)
	__attribute__((sentinel));
void openmetrics_real(FILE *out, const char *name, double value, ...)
	__attribute__((sentinel));

void openmetrics_end(FILE *out);

/* ---- histograms of time ---- */

#define HISTOGRAM_BUCKETS 14	/* without +Inf */

struct histogram {
	uint64_t bucket[HISTOGRAM_BUCKETS + 1];	/* not cumulative; the last one: +Inf */
	uint64_t sum_us;
};

void histogram_add(struct histogram *histogram, uint64_t us);
uint64_t histogram_count(const struct histogram *histogram);

/* Writes all samples of a histogram. label NULL: none. */
void openmetrics_histogram(FILE *out, const char *name, const struct histogram *histogram,
			   const char *label, const char *value);

#endif
