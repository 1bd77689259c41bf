/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a cell: decides by a part of Python's lexical rules whether the typed lines are
 * complete. Invalid Python counts as complete, because the interpreter will report the mistake. */
#ifndef CLIENT_CELL_H
#define CLIENT_CELL_H

#include <stdbool.h>
#include <stddef.h>

enum cell_state {
	CELL_EMPTY, /* only blanks and comments */
	CELL_OPEN,  /* a bracket, a string, or a line with a backslash at its end is open */
	CELL_BLOCK, /* a compound statement, which may continue in the next line */
	CELL_WHOLE,
};

/* Zero it for each cell. */
struct cell {
	unsigned int depth; /* of brackets */
	char quote;	    /* of the open string; 0: none is open */
	bool triple;	    /* the open string has three quotes */
	bool continued;	    /* the last line ended with a backslash */
	bool block, decorated, any;
};

/* Adds a line, without its end. */
void cell_feed(struct cell *cell, const char *line, size_t len);

enum cell_state cell_state(const struct cell *cell);

/* Does this line begin a new statement, so that the cell ends before it? For input that is not
 * typed: in such input an empty line does not end a cell. */
bool cell_ends_before(const struct cell *cell, const char *line, size_t len);

#endif
