/* SPDX-License-Identifier: Apache-2.0 */
/* A secret of the administrator for another program: the only line of a file.
 */
#ifndef HOST_SECRET_H
#define HOST_SECRET_H

#define SECRET_MIN 8	/* bytes: a shorter text would be masked where it is not the secret */
#define SECRET_MAX 8192

/* Reads the file's only line into text (SECRET_MAX + 1 bytes), without its end. 0; -EPERM: other
 * users may write to the file; -EBADMSG: it is not one line of SECRET_MIN to SECRET_MAX printable
 * ASCII characters; or -errno. */
int secret_read(const char *path, char *text);

#endif
