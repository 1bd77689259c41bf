/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people, in columns. */
#ifndef CLIENT_TABLE_H
#define CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct table;

/* title: the titles of the columns, followed by NULL; borrowed. A column whose title begins with
 * '>', which is not printed, is aligned to the right. */
struct table *table_new(const char *const *title);
void table_free(struct table *table);	/* NULL is fine */

/* Adds the next cell, row by row. Characters that are not printable ASCII become '?'. */
void table_add(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the titles and at most rows rows. Each line has at most width bytes. before, after: the
 * terminal's codes around the titles; both may be "". */
void table_print(const struct table *table, FILE *to, size_t rows, size_t width,
		 const char *before, const char *after);

/* Short texts of numbers. Of bytes: "0", "12.3K", "4.0G"; of a time: "3.2s", "12m05s", "3h12m",
 * "4d06h"; of a count: "12345". A text is valid until the eighth call after it. */
const char *figure_bytes(uint64_t bytes);
const char *figure_time(double seconds);
const char *figure_count(int64_t count);

#endif
