/* SPDX-License-Identifier: Apache-2.0 */
/* Files of this machine that are put into /workspace of a script or a session. */
#ifndef CLIENT_INPUTS_H
#define CLIENT_INPUTS_H

#include <stdbool.h>

#include <jansson.h>

struct options;

#define INPUTS_FILES_MAX 256			  /* the largest number that a service can allow */
#define INPUTS_BYTES_MAX ((size_t)32 << 20) /* of all of them together; the same */

/* Reads the files of --file and --dir, and puts them into the arguments of a call as "files". A
 * relative path stays the same, so that a script can open it by the same name; of any other path
 * only the last part is used. Files below a directory have their paths relative to it; links,
 * special files, and names that begin with "." are left out. 0, or the exit code after the reason
 * was printed. */
int inputs_add(json_t *arguments, const struct options *options);

/* The first part of a path because of which --dir leaves the file out, within path; NULL: none. */
const char *inputs_left_out(const char *path);

/* The path and the SHA-256 (hexadecimal) of each file in arguments, for inputs_forget. It belongs
 * to the caller. */
json_t *inputs_hashes(const json_t *arguments);

/* Does this open file still have the content that was handed in under this path? */
bool inputs_are_as_handed_in(const json_t *hashes, const char *path, int fd);

/* Removes unchanged files from the list in an answer. */
void inputs_forget(const json_t *hashes, json_t *outcome);

#endif
