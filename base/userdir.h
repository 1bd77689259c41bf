/* SPDX-License-Identifier: Apache-2.0 */
/* Where a user's own files lie, by the XDG Base Directory Specification 0.8
 * (https://specifications.freedesktop.org/basedir-spec/0.8/).
 */
#ifndef BASE_USERDIR_H
#define BASE_USERDIR_H

#include <sys/types.h>

/* The directory that a program has below the one that a variable names, or below its usual place
 * in HOME if the variable is unset or holds no absolute path. usual: such as ".config". Returns a
 * path, malloc'd, of which nothing need exist but HOME, which no program makes; NULL: there is
 * none. */
char *userdir(const char *variable, const char *usual, const char *program);

/* Makes the directory and those above it, where they do not exist. path: absolute; the same
 * afterwards. 0 or -errno. */
int userdir_make(char *path, mode_t mode);

#endif
