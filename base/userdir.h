/* SPDX-License-Identifier: Apache-2.0 */
/* The directories for a user's own files, by the XDG Base Directory Specification 0.8
 * (https://specifications.freedesktop.org/basedir-spec/0.8/).
 */
#ifndef BASE_USERDIR_H
#define BASE_USERDIR_H

#include <sys/types.h>

/* The directory of a program, malloc'd; it need not exist. It is below the directory that the
 * environment variable names; if the variable is unset or has no absolute path, it is below usual,
 * a path in HOME such as ".config". NULL: there is none, because HOME does not exist or is not set.
 */
char *userdir(const char *variable, const char *usual, const char *program);

/* Makes the directory and the missing ones above it. path: absolute; it is changed during the call
 * and restored. 0 or -errno. */
int userdir_make(char *path, mode_t mode);

#endif
