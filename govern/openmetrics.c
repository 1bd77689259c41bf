/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "govern/openmetrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>

/* The upper ends of the buckets: from a warm start to the longest script for which a client
 * waits. */
static const struct {
	uint64_t us;
	const char *text;		/* the number as the format writes it in a label */
} ends[HISTOGRAM_BUCKETS] = {
	{ 1000, "0.001" }, { 2500, "0.0025" }, { 5000, "0.005" }, { 10000, "0.01" },
	{ 25000, "0.025" }, { 50000, "0.05" }, { 100000, "0.1" }, { 250000, "0.25" },
	{ 1000000, "1.0" }, { 5000000, "5.0" }, { 15000000, "15.0" }, { 60000000, "60.0" },
	{ 300000000, "300.0" }, { 3600000000, "3600.0" },
};

void
openmetrics_family(FILE *out, const char *name, const char *type, const char *unit,
		   const char *help)
{
	fprintf(out, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(out, "# UNIT %s %s\n", name, unit);
	fprintf(out, "# HELP %s %s\n", name, help);
}

/* A byte that is not printable ASCII is shown as '?': the text must be UTF-8, on one line. */
static void
write_value(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', out);
		fputc(*value >= ' ' && *value < 0x7f ? *value : '?', out);
	}
}

static void
write_label(FILE *out, bool first, const char *label, const char *value)
{
	fprintf(out, "%c%s=\"", first ? '{' : ',', label);
	write_value(out, value);
	fputc('"', out);
}

static void
write_labels(FILE *out, va_list pairs)
{
	const char *label;
	bool any = false;

	while ((label = va_arg(pairs, const char *))) {
		write_label(out, !any, label, va_arg(pairs, const char *));
		any = true;
	}
	if (any)
		fputc('}', out);
}

void
openmetrics_uint(FILE *out, const char *name, uint64_t value, ...)
{
	va_list pairs;

	fputs(name, out);
	va_start(pairs, value);
	write_labels(out, pairs);
	va_end(pairs);
	fprintf(out, " %" PRIu64 "\n", value);
}

void
openmetrics_real(FILE *out, const char *name, double value, ...)
{
	va_list pairs;

	fputs(name, out);
	va_start(pairs, value);
	write_labels(out, pairs);
	va_end(pairs);
	fprintf(out, " %.6f\n", value);
}

void
openmetrics_end(FILE *out)
{
	fputs("# EOF\n", out);
}

/* ---- histograms ---- */

void
histogram_add(struct histogram *histogram, uint64_t us)
{
	size_t i = 0;

	while (i < HISTOGRAM_BUCKETS && us > ends[i].us)
		i++;
	histogram->bucket[i]++;
	histogram->sum_us += us;
}

uint64_t
histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++)
		count += histogram->bucket[i];
	return count;
}

static void
openmetrics_begin(FILE *out, const char *name, const char *suffix, const char *label,
		  const char *value)
{
	fprintf(out, "%s%s", name, suffix);
	if (label) {
		write_label(out, true, label, value);
		fputc('}', out);
	}
}

void
openmetrics_histogram(FILE *out, const char *name, const struct histogram *histogram,
		      const char *label, const char *value)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++) {
		count += histogram->bucket[i];
		fprintf(out, "%s_bucket", name);
		if (label)
			write_label(out, true, label, value);
		write_label(out, !label, "le", i < HISTOGRAM_BUCKETS ? ends[i].text : "+Inf");
		fprintf(out, "} %" PRIu64 "\n", count);
	}
	openmetrics_begin(out, name, "_count", label, value);
	fprintf(out, " %" PRIu64 "\n", count);
	openmetrics_begin(out, name, "_sum", label, value);
	fprintf(out, " %" PRIu64 ".%06" PRIu64 "\n", histogram->sum_us / 1000000,
		histogram->sum_us % 1000000);
}
