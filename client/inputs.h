/* SPDX-License-Identifier: Apache-2.0 */
/* Files of this machine that a script or a session gets into its /workspace. */
#ifndef CLIENT_INPUTS_H
#define CLIENT_INPUTS_H

#include <stdbool.h>

#include <jansson.h>

struct options;

#define INPUTS_FILES_MAX 256			  /* as many as the service can be set to take */
#define INPUTS_BYTES_MAX ((size_t)32 << 20) /* of all of them together, likewise */

/* Reads the files of --file and --dir, and puts them into the arguments of a call as "files". A
 * relative path stays as it is, so that a script opens it as it would here; of any other the last
 * name is taken. Of a directory the names below it are taken; links, special files, and names that
 * begin with "." are left out. 0, or the exit code after the reason was printed. */
int inputs_add(json_t *arguments, const struct options *options);

/* The first of a path's names for which --dir leaves it out, within path; NULL: none. */
const char *inputs_left_out(const char *path);

/* The path and the SHA-256 (hexadecimal) of each file in arguments, for inputs_forget. The
 * caller's. */
json_t *inputs_hashes(const json_t *arguments);

/* Does this open file still have the content that was handed in under this path? */
bool inputs_are_as_handed_in(const json_t *hashes, const char *path, int fd);

/* Takes files that have not changed since out of those that an answer lists. */
void inputs_forget(const json_t *hashes, json_t *outcome);

#endif
