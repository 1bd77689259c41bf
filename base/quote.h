/* SPDX-License-Identifier: Apache-2.0 */
/* Makes text of strangers safe to show to people: in forms, on terminals, in the journal.
 *
 * Text of strangers is all text that neither the reader nor this program wrote: that of a model, a
 * script, a file's name, a package index. Shown unchanged, such text can imitate the service's own
 * text, overwrite it, or look like other text. So where a person reads it:
 *
 *   - a character that is not seen as itself is shown as an escape (\x1b, \u202e): control
 *     characters, with C1 and DEL; characters that turn, join or hide text, or have no width; bytes
 *     that are not UTF-8; and combining marks beyond a few on one letter;
 *   - it is one line of bounded length; or each of its lines begins with a mark, long lines are
 *     folded, and lines and bytes are bounded;
 *   - the service's own words come first, and the stranger's text comes last.
 *
 * The escapes are only for reading: text that contains a backslash itself looks the same, except
 * with quote_word.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define QUOTE_PIECE 10		/* the most bytes that one character is shown as */
#define QUOTE_COLUMNS 70	/* of a line, so that forms and terminals of 80 do not break it */

/* How the character at text is shown: *piece_len_r bytes, at most QUOTE_PIECE, without NUL.
 * Returns how many bytes of text that is, 1 to 4. len: at least 1. */
size_t quote_next(const char *text, size_t len, char piece_r[QUOTE_PIECE], size_t *piece_len_r);

/* Is text shown unchanged? */
bool quote_is_plain(const char *text, size_t len);

/* One line in to, which has room for size bytes, at least 4, and ends with NUL. Text that has no
 * room is left out, with "..." in its place. Returns the length of the line. */
size_t quote_line(char *to, size_t size, const char *text, size_t len);

/* The same between double quotes, with a backslash before each double quote and backslash in the
 * text: for text within a line of the service. size: at least 6. */
size_t quote_word(char *to, size_t size, const char *text, size_t len);

struct quote_block {
	const char *mark;	/* ">": a line begins with "> ", what a fold continues with ">+" */
	size_t columns;		/* of a line, without its mark; at least 2 * QUOTE_PIECE */
	size_t lines, bytes;	/* at most, of what is written; SIZE_MAX: any number */
};

/* Writes text as lines that all begin with the mark, without a newline after the last. A line ends
 * where a line of text ends ("\n", "\r\n"), and after so many columns, at a blank if there is one
 * near; a tab is eight blanks. True: the whole text was written. False: there was no room for all
 * of it, and a last line has "[...]" after its mark. */
bool quote_block(FILE *to, const struct quote_block *block, const char *text, size_t len);

#endif
