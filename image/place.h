/* SPDX-License-Identifier: Apache-2.0 */
/* Places below a directory that is filled from archives. No name can lead out of the directory: the
 * kernel resolves each name as if the directory were "/", also through links that an archive has
 * made.
 */
#ifndef IMAGE_PLACE_H
#define IMAGE_PLACE_H

#include <limits.h>
#include <stdbool.h>

/* A name from an archive, without "/" at its start, without "." and without empty parts. */
struct place_name {
	char text[PATH_MAX];
	char *last;			/* points into text: the last part; "": the name is the top
					 */
};

/* Reads a name. 0; -EINVAL: it has ".."; -ENAMETOOLONG: it is too long. */
int place_name(const char *text, struct place_name *name_r);

/* Opens the directory for the last part of a name: top, or a directory below it. make: it is made
 * if it is missing, with the directories above it. An O_PATH descriptor, which the caller owns, or
 * -errno. */
int place_open(int top, const struct place_name *name, bool make);

#define PLACE_DEPTH_MAX 200		/* the deepest tree that is removed (base/remove.h) */

#endif
