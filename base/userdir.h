/* SPDX-License-Identifier: Apache-2.0 */
/* The directories for a user's own files, by the XDG Base Directory Specification 0.8
 * (https://specifications.freedesktop.org/basedir-spec/0.8/).
 */
#ifndef BASE_USERDIR_H
#define BASE_USERDIR_H

#include <sys/types.h>

/* The directory that a program has below the one that a variable names, or below its usual place in
 * HOME if the variable is unset or holds no absolute path. usual: such as ".config". Returns a
 * path, malloc'd; it need not exist. NULL: there is none, because HOME does not exist or is not
 * set. */
char *userdir(const char *variable, const char *usual, const char *program);

/* Makes the directory and the missing ones above it. path: absolute; it is changed during the call
 * and restored. 0 or -errno. */
int userdir_make(char *path, mode_t mode);

#endif
