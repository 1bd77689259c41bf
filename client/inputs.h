/* SPDX-License-Identifier: Apache-2.0 */
/* Files of this machine that are put into /workspace of a script or a session. */
#ifndef CLIENT_INPUTS_H
#define CLIENT_INPUTS_H

#include <stdbool.h>

#include <jansson.h>

struct options;

#define INPUTS_FILES_MAX 256			  /* the most files that a service can allow */
#define INPUTS_BYTES_MAX ((size_t)32 << 20) /* the most bytes in total that a service can allow */

/* Reads the files of --file and --dir, and puts them into the arguments of a call as "files". A
 * file of --file with a relative path keeps this path, so that the script can open it by the same
 * name; of any other path only the last part is used. Files of --dir have paths relative to the
 * directory; links, special files, and names that begin with "." are left out. 0; or the exit code,
 * after the reason was printed. */
int inputs_add(json_t *arguments, const struct options *options);

/* Finds out whether --dir leaves a file out. Returns the first part of its path that is a reason
 * for that, as a pointer into path. NULL: the file is not left out. */
const char *inputs_left_out(const char *path);

/* The path and the SHA-256 (hexadecimal) of each file in arguments, for inputs_forget. The object
 * belongs to the caller. */
json_t *inputs_hashes(const json_t *arguments);

/* Does this open file still have the content that was sent under this path? */
bool inputs_are_as_handed_in(const json_t *hashes, const char *path, int fd);

/* Shortens the list of files in an outcome: removes the files that the script has not changed. */
void inputs_forget(const json_t *hashes, json_t *outcome);

#endif
