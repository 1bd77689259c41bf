/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "govern/openmetrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

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
openmetrics_family(struct openmetrics *to, const char *name, const char *type, const char *unit,
		   const char *help)
{
	const char *suffix;

	to->name = name;
	to->suffix = strcmp(type, "counter") == 0 ? "_total" : strcmp(type, "info") == 0 ? "_info" : "";
	/* The older form has no units and no type "info", and names samples. */
	suffix = to->plain ? to->suffix : "";
	if (to->plain && strcmp(type, "info") == 0)
		type = "gauge";
	fprintf(to->out, "# TYPE " METRICS_PREFIX "%s%s %s\n", name, suffix, type);
	if (unit && !to->plain)
		fprintf(to->out, "# UNIT " METRICS_PREFIX "%s %s\n", name, unit);
	fprintf(to->out, "# HELP " METRICS_PREFIX "%s%s %s\n", name, suffix, help);
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
write_name(const struct openmetrics *to, va_list pairs)
{
	const char *label;
	bool any = false;

	fprintf(to->out, METRICS_PREFIX "%s%s", to->name, to->suffix);
	while ((label = va_arg(pairs, const char *))) {
		write_label(to->out, !any, label, va_arg(pairs, const char *));
		any = true;
	}
	if (any)
		fputc('}', to->out);
}

void
openmetrics_uint(const struct openmetrics *to, uint64_t value, ...)
{
	va_list pairs;

	va_start(pairs, value);
	write_name(to, pairs);
	va_end(pairs);
	fprintf(to->out, " %" PRIu64 "\n", value);
}

void
openmetrics_real(const struct openmetrics *to, double value, ...)
{
	va_list pairs;

	va_start(pairs, value);
	write_name(to, pairs);
	va_end(pairs);
	fprintf(to->out, " %.6f\n", value);
}

void
openmetrics_one(struct openmetrics *to, const char *name, const char *type, const char *unit,
		const char *help, uint64_t value)
{
	openmetrics_family(to, name, type, unit, help);
	openmetrics_uint(to, value, NULL);
}

void
openmetrics_end(const struct openmetrics *to)
{
	if (!to->plain)
		fputs("# EOF\n", to->out);
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
openmetrics_begin(const struct openmetrics *to, const char *suffix, const char *label,
		  const char *value)
{
	fprintf(to->out, METRICS_PREFIX "%s%s", to->name, suffix);
	if (label) {
		write_label(to->out, true, label, value);
		fputc('}', to->out);
	}
}

void
openmetrics_histogram(const struct openmetrics *to, const struct histogram *histogram,
		      const char *label, const char *value)
{
	uint64_t count = 0;

	for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++) {
		count += histogram->bucket[i];
		fprintf(to->out, METRICS_PREFIX "%s_bucket", to->name);
		if (label)
			write_label(to->out, true, label, value);
		write_label(to->out, !label, "le", i < HISTOGRAM_BUCKETS ? ends[i].text : "+Inf");
		fprintf(to->out, "} %" PRIu64 "\n", count);
	}
	openmetrics_begin(to, "_count", label, value);
	fprintf(to->out, " %" PRIu64 "\n", count);
	openmetrics_begin(to, "_sum", label, value);
	fprintf(to->out, " %" PRIu64 ".%06" PRIu64 "\n", histogram->sum_us / 1000000,
		histogram->sum_us % 1000000);
}
