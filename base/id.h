/* SPDX-License-Identifier: Apache-2.0 */
/* Random ids. A long one cannot be guessed, so it may be all that a client shows to get at
 * something. A short one costs a model that reads it few tokens. It gives no right: code that
 * accepts it must also check whose it is.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

#define ID_CHARACTERS 26	/* of 5 bits each: 130 bits */
#define ID_SHORT 10		/* 50 bits: among a million, two are the same once in 2,000 times */

/* Writes a new id: lower-case letters and digits without l, o, 0 and 1. It can be read aloud, and
 * needs no escapes in JSON, URLs and names of files. Aborts if the kernel gives no random bytes. */
void id_new(char id_r[ID_CHARACTERS + 1]);

/* As id_new, a short one, for executions, uploads, approvals, sessions, jobs and tasks. */
void id_new_short(char id_r[ID_SHORT + 1]);

/* Do the len bytes at text have the form of an id, or of a part of it? */
bool id_is_valid(const char *text, size_t len);

#endif
