/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the text about a call that people see before they agree to it. It has all arguments of the
 * call, which are a stranger's words (base/quote.h). A value that is long, or not plain, is a text:
 * it has a number, and is shown below the list of arguments.
 *
 *   text 1, 10 bytes, SHA-256                                  the service's: a list of the texts
 *     2f6e...
 *
 *   arguments:
 *   > files[0].path: "x.py"                                    the caller's: the name of each
 *   > files[0].text: text 1                                    argument, and its value or the
 *   > script: "exec(open('x.py').read())"                      number of its text
 *
 *   text 1:
 *   > import os                                                the caller's: the texts
 *   >
 *
 * Lines without the mark are the service's. There are only the four kinds that are shown here, and
 * empty lines. Only the numbers, sizes and hashes in them depend on the caller.
 */
#ifndef POLICY_SHOWN_H
#define POLICY_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#define SHOWN_MARK ">"	/* before each of the caller's lines */

struct shown_bounds {
	size_t texts;		/* the largest number of texts */
	size_t lines, bytes;	/* of the list of arguments */
	size_t text_lines, text_bytes;	/* lines of each text; bytes of all texts */
};

/* The bounds for a form: 16 KiB, for any arguments. */
extern const struct shown_bounds shown_in_form;

/* Without bounds. */
extern const struct shown_bounds shown_whole;

/* Writes value, an object with the arguments, without a newline at the end. Texts that do not fit
 * are cut, with a note. False: the list of arguments does not fit, or there are too many texts;
 * nothing is written. */
bool shown_write(FILE *to, const json_t *value, const struct shown_bounds *bounds);

/* JSON text with only printable ASCII, for people. flags: of json_dumps. Malloc'd; aborts when out
 * of memory. */
char *shown_json(const json_t *value, size_t flags);

#endif
