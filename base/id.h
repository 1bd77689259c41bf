/* SPDX-License-Identifier: Apache-2.0 */
/* Ids that cannot be guessed, for executions, approvals, sessions, jobs and sealed states.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

#define ID_CHARACTERS 26	/* of 5 bits each: 130 bits */

/* Writes a new id: lower-case letters and digits without l, o, 0 and 1. It can be read aloud, and
 * needs no escapes in JSON, URLs and names of files. Aborts if the kernel gives no random bytes. */
void id_new(char id_r[ID_CHARACTERS + 1]);

/* Do the ID_CHARACTERS bytes at text have the form of an id? */
bool id_is_valid(const char *text);

#endif
