/* SPDX-License-Identifier: Apache-2.0 */
/* What people are shown of a call before they agree to it: its arguments, all of them, which are
 * a stranger's words (base/quote.h).
 *
 *   text 1, 10 bytes, SHA-256                                  our own: a list of the texts
 *     2f6e...
 *
 *   arguments:
 *   > files[0].path: "x.py"                                    theirs: each argument by name,
 *   > files[0].text: text 1                                    with its value, or the number of
 *   > script: "exec(open('x.py').read())"                      the text that it is
 *
 *   text 1:
 *   > import os                                                theirs: the texts
 *   >
 *
 * A line without the mark is one of these four, and holds nothing of a stranger's but a number, a
 * size and a hash.
 */
#ifndef POLICY_SHOWN_H
#define POLICY_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#define SHOWN_MARK ">"	/* before each of their lines */

struct shown_bounds {
	size_t texts;		/* how many there may be */
	size_t lines, bytes;	/* of the list of arguments */
	size_t text_lines, text_bytes;	/* of each text; of all of them */
};

/* For a form: it has room in 16 KiB, whatever the arguments. */
extern const struct shown_bounds shown_in_form;

/* All of it, however much. */
extern const struct shown_bounds shown_whole;

/* Writes what value is, without a newline behind it. Texts that have no room are cut, and said to
 * be; false: the list of arguments has no room or there are too many texts, and nothing is
 * written. */
bool shown_write(FILE *to, const json_t *value, const struct shown_bounds *bounds);

/* JSON text in printable ASCII alone, where a person may see it. flags: of json_dumps. Malloc'd;
 * aborts when out of memory. */
char *shown_json(const json_t *value, size_t flags);

#endif
