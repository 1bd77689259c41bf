/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets for other servers, such as tokens. The administrator keeps each in a file, as its only
 * line.
 */
#ifndef HOST_SECRET_H
#define HOST_SECRET_H

#include <stdint.h>

#define SECRET_MIN 8	/* bytes: a shorter text also occurs where it is not the secret */
#define SECRET_MAX 8192

/* Reads the file's only line into text (SECRET_MAX + 1 bytes), without the newline. 0; -EPERM:
 * other users may write to the file; -EBADMSG: the content is not one line of SECRET_MIN to
 * SECRET_MAX printable ASCII characters; or another -errno. */
int secret_read(const char *path, char *text);

/* A number that changes if the file is replaced or written to. One number can stand for several
 * files: before is the stamp of the files before this one, and 0 for the first. Needs no right to
 * read the file. path: NULL is fine. */
uint64_t secret_stamp(const char *path, uint64_t before);

#endif
