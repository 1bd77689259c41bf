/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of text for people: right-aligned where they are numbers. */
#ifndef CLIENT_TABLE_H
#define CLIENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct table;

/* title: the columns' titles, of which those that begin with '>' are aligned to the right (and
 * shown without it); ends with NULL; borrowed. */
struct table *table_new(const char *const *title);
void table_free(struct table *table);	/* NULL is fine */

/* The next cell, row by row. What is no printable ASCII becomes '?'. */
void table_add(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints titles and at most rows rows, each line at most width bytes. head: what stands before
 * and after the titles (a terminal's codes); both may be "". */
void table_print(const struct table *table, FILE *to, size_t rows, size_t width,
		 const char *before, const char *after);

/* "0", "12.3K", "4.0G"; "3.2s", "12m05s", "3h12m", "4d06h"; "12345". Each call's text lives until the
 * eighth one after it. */
const char *figure_bytes(uint64_t bytes);
const char *figure_time(double seconds);
const char *figure_count(int64_t count);

#endif
