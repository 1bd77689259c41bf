/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python's operators' commands.   Owns: the cells of a table. */
#include "client/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "base/xalloc.h"

#define COLUMNS_MAX 16
#define CELL_MAX 256	/* bytes */
#define FIGURES 8
#define FIGURE_MAX 32

struct table {
	const char *const *title;
	size_t columns, width[COLUMNS_MAX];
	char **cell;
	size_t n, room;
};

static bool
is_right(const char *title)
{
	return *title == '>';
}

static const char *
title_text(const char *title)
{
	return title + is_right(title);
}

struct table *
table_new(const char *const *title)
{
	struct table *table = xcalloc(1, sizeof(*table));

	table->title = title;
	while (table->columns < COLUMNS_MAX && title[table->columns]) {
		table->width[table->columns] = strlen(title_text(title[table->columns]));
		table->columns++;
	}
	return table;
}

void
table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n; i++)
		free(table->cell[i]);
	free(table->cell);
	free(table);
}

void
table_add(struct table *table, const char *format, ...)
{
	size_t column = table->n % table->columns, len;
	char text[CELL_MAX], shown[CELL_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	len = quote_line(shown, sizeof(shown), text, strlen(text));
	if (len > table->width[column])
		table->width[column] = len;
	if (table->n == table->room) {
		table->room = table->room ? table->room * 2 : 64;
		table->cell = xrealloc(table->cell, table->room * sizeof(*table->cell));
	}
	table->cell[table->n++] = xstrdup(shown);
}

/* The number of bytes that fit into width, cut between characters. */
static size_t
table_fit(const char *text, size_t width)
{
	size_t len = strlen(text);

	return len <= width ? len : width - utf8_begun(text, width);
}

/* One line, cut at width. */
static void
print_line(const struct table *table, FILE *to, const char *const *cell, size_t width)
{
	size_t at = 0;

	for (size_t i = 0; i < table->columns && at < width; i++) {
		const char *text = cell == table->title ? title_text(cell[i]) : cell[i];
		size_t pad = table->width[i] - strlen(text);
		bool right = is_right(table->title[i]), last = i + 1 == table->columns;

		if (right)
			at += (size_t)fprintf(to, "%*s", (int)(pad < width - at ? pad : width - at),
					      "");
		at += (size_t)fprintf(to, "%.*s", (int)table_fit(text, width - at), text);
		if (last)
			break;
		pad = (right ? 0 : pad) + 2;
		at += (size_t)fprintf(to, "%*s", (int)(pad < width - at ? pad : width - at), "");
	}
}

void
table_print(const struct table *table, FILE *to, size_t rows, size_t width,
	    const char *before, const char *after)
{
	size_t n = table->n / table->columns;

	fputs(before, to);
	print_line(table, to, table->title, width);
	fprintf(to, "%s\n", after);
	for (size_t i = 0; i < n && i < rows; i++) {
		print_line(table, to, (const char *const *)&table->cell[i * table->columns],
			   width);
		fputc('\n', to);
	}
}

/* ---- figures ---- */

static char *
next_figure(void)
{
	static char text[FIGURES][FIGURE_MAX];
	static size_t i;

	return text[i++ % FIGURES];
}

const char *
figure_bytes(uint64_t bytes)
{
	static const char units[] = "KMGTP";
	char *text = next_figure();
	double value = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(text, FIGURE_MAX, "%" PRIu64, bytes);
		return text;
	}
	for (value /= 1024; value >= 1000 && units[i + 1]; i++)
		value /= 1024;
	snprintf(text, FIGURE_MAX, "%.1f%c", value, units[i]);
	return text;
}

const char *
figure_count(int64_t count)
{
	char *text = next_figure();

	snprintf(text, FIGURE_MAX, "%" PRId64, count);
	return text;
}

const char *
figure_time(double seconds)
{
	unsigned long s = (unsigned long)seconds;
	char *text = next_figure();

	if (seconds < 60)
		snprintf(text, FIGURE_MAX, "%.1fs", seconds);
	else if (s < 3600)
		snprintf(text, FIGURE_MAX, "%lum%02lus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, FIGURE_MAX, "%luh%02lum", s / 3600, s / 60 % 60);
	else
		snprintf(text, FIGURE_MAX, "%lud%02luh", s / 86400, s / 3600 % 24);
	return text;
}
