/* SPDX-License-Identifier: Apache-2.0 */
/* Text of strangers in the form for people: in forms, on terminals, in the journal.
 *
 * A stranger is everybody but the reader and this program: a model, a script, a file's name, a
 * package index. Shown unchanged, such text can imitate our own, overwrite it, or look like other
 * text. So wherever a person reads it:
 *
 *   - a character that is not seen as itself is shown as an escape (\x1b, \u202e): control
 *     characters, C1 and DEL among them; what turns, joins or hides text; what has no width; bytes
 *     that are no UTF-8; and combining marks beyond a few on one letter;
 *   - it is one line, cut at a length; or each of its lines begins with a mark, long ones are
 *     folded, and lines and bytes are bounded;
 *   - our own words come first, and its come last.
 *
 * The escapes are for the eye: text that has a backslash itself is shown alike, but by quote_word.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define QUOTE_PIECE 10		/* bytes of what one character is shown as, at most */
#define QUOTE_COLUMNS 70	/* of a line, so that forms and terminals of 80 do not break it */

/* How the character at text is shown: *piece_len_r bytes, at most QUOTE_PIECE, without NUL.
 * Returns how many bytes of text that is, 1 to 4. len: at least 1. */
size_t quote_next(const char *text, size_t len, char piece_r[QUOTE_PIECE], size_t *piece_len_r);

/* Is all of text shown as it is? */
bool quote_is_plain(const char *text, size_t len);

/* One line in to, which has room for size bytes, at least 4, and ends with NUL. What has no room
 * is left out, and "..." says so. Returns its length. */
size_t quote_line(char *to, size_t size, const char *text, size_t len);

/* The same between double quotes, in which they and backslashes have a backslash before them: where
 * text is shown within one of our lines. size: at least 6. */
size_t quote_word(char *to, size_t size, const char *text, size_t len);

struct quote_block {
	const char *mark;	/* ">": a line begins with "> ", what a fold continues with ">+" */
	size_t columns;		/* of a line, without its mark; at least 2 * QUOTE_PIECE */
	size_t lines, bytes;	/* at most, of what is written; SIZE_MAX: any number */
};

/* Writes text as lines that all begin with the mark, without a newline after the last. They end
 * where those of text do ("\n", "\r\n") and where columns are over, behind a blank if there is one
 * in time; a tab is eight blanks. True: that is all of it; false: more had no room, and one more
 * line says "[...]" behind its mark. */
bool quote_block(FILE *to, const struct quote_block *block, const char *text, size_t len);

#endif
