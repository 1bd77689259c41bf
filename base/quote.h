/* SPDX-License-Identifier: Apache-2.0 */
/* Makes text of strangers safe to show to people: in forms, on terminals, in the journal.
 *
 * Text of strangers is all text that neither the reader nor this program has written: text of a
 * model, a script or a package index, and names of files. If it is shown unchanged, such text
 * can imitate the service's own text, overwrite it, or look like other text. So where a person
 * reads it:
 *
 *   - a character that a reader would not see is shown as an escape (\x1b, \u202e): control
 *     characters, with C1 and DEL; characters that change the direction of text, join it or hide
 *     it, or have no width; bytes that are not UTF-8; and combining marks beyond a few on one
 *     letter;
 *   - the text is one line of bounded length; or each of its lines begins with a mark, long lines
 *     are folded, and the numbers of lines and bytes are bounded;
 *   - the service's own words come first, and the stranger's text comes last.
 *
 * The escapes are only for reading, and cannot be undone: a backslash in the text itself is not
 * escaped, except by quote_word.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define QUOTE_PIECE 10		/* the most bytes that one character is shown as */
#define QUOTE_COLUMNS 70	/* of a line, so that forms and terminals with 80 columns do not
				 * break it */

/* Gets the form in which the character at text is shown: *piece_len_r bytes in piece_r, without
 * NUL. Returns the number of bytes of the character in text, 1 to 4. len: at least 1. */
size_t quote_next(const char *text, size_t len, char piece_r[QUOTE_PIECE], size_t *piece_len_r);

/* Is text shown unchanged? */
bool quote_is_plain(const char *text, size_t len);

/* Writes text as one line, followed by NUL. size: the bytes of to, at least 4. If the text does not
 * fit, its end is replaced by "...". Returns the length of the line. */
size_t quote_line(char *to, size_t size, const char *text, size_t len);

/* As quote_line, but in double quotes, and with a backslash before each double quote and backslash
 * of the text. For text within a line of the service. size: at least 6. */
size_t quote_word(char *to, size_t size, const char *text, size_t len);

struct quote_block {
	const char *mark;	/* ">": lines begin with "> ", the rest of a folded line with ">+"
				 */
	size_t columns;		/* of a line, without its mark; at least 2 * QUOTE_PIECE */
	size_t lines, bytes;	/* the most that are written; SIZE_MAX: any number */
};

/* Writes text as lines that all begin with the mark, without a newline after the last one. A line
 * of text ("\n", "\r\n") gives one line; if it has more columns, it is folded, at a blank if there
 * is one near. A tab counts as eight blanks. True: the whole text was written. False: there was no
 * room for all of it, and a last line has "[...]" after its mark. */
bool quote_block(FILE *to, const struct quote_block *block, const char *text, size_t len);

#endif
