/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of text for people: right-aligned where they are numbers. */
#ifndef CLIENT_TABLE_H
#define CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct table;

/* title: the columns' titles, ending with NULL; borrowed. A column whose title begins with '>'
 * (which is not shown) is aligned to the right. */
struct table *table_new(const char *const *title);
void table_free(struct table *table);	/* NULL is fine */

/* Adds the next cell, row by row. Characters that are not printable ASCII become '?'. */
void table_add(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints titles and at most rows rows, each line with at most width bytes. head: the terminal's
 * codes before and after the titles; both may be "". */
void table_print(const struct table *table, FILE *to, size_t rows, size_t width,
		 const char *before, const char *after);

/* "0", "12.3K", "4.0G"; "3.2s", "12m05s", "3h12m", "4d06h"; "12345". The text of a call is valid
 * until the eighth call after it. */
const char *figure_bytes(uint64_t bytes);
const char *figure_time(double seconds);
const char *figure_count(int64_t count);

#endif
