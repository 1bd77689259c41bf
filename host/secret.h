/* SPDX-License-Identifier: Apache-2.0 */
/* A secret of the administrator for another program: the only line of a file.
 */
#ifndef HOST_SECRET_H
#define HOST_SECRET_H

#include <stdint.h>

#define SECRET_MIN 8	/* bytes: what is shorter would also be found where it is none */
#define SECRET_MAX 8192

/* Reads the file's only line into text (SECRET_MAX + 1 bytes), without its end. 0; -EPERM: other
 * users may write to the file; -EBADMSG: it is not one line of SECRET_MIN to SECRET_MAX printable
 * ASCII characters; or -errno. */
int secret_read(const char *path, char *text);

/* Another number than before if the file is another one, or has been written to since. before: of
 * the files that were looked at earlier; 0 at first. Needs no right to read it. path: NULL is
 * fine. */
uint64_t secret_stamp(const char *path, uint64_t before);

#endif
