/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cell ends: as much of Python's lexical rules as tells whether what was typed so
 * far is whole. What is wrong Python is whole, too: the interpreter says what is wrong. */
#ifndef CLIENT_CELL_H
#define CLIENT_CELL_H

#include <stdbool.h>
#include <stddef.h>

enum cell_state {
	CELL_EMPTY, /* nothing but blanks and comments */
	CELL_OPEN,  /* within brackets, a string, or a line that is continued */
	CELL_BLOCK, /* a compound statement, which may go on with the next line */
	CELL_WHOLE,
};

/* Zero it for each cell. */
struct cell {
	unsigned int depth; /* of brackets */
	char quote;	    /* of the string that is open; 0: none */
	bool triple;	    /* its quotes are three */
	bool continued;	    /* the last line ended with a backslash */
	bool block, decorated, any;
};

/* One more line, without its end. */
void cell_feed(struct cell *cell, const char *line, size_t len);

enum cell_state cell_state(const struct cell *cell);

/* Does this line begin another statement than the one in cell? For input that nobody
 * types, where an empty line ends nothing. */
bool cell_ends_before(const struct cell *cell, const char *line, size_t len);

#endif
