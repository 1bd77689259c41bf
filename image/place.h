/* SPDX-License-Identifier: Apache-2.0 */
/* Places below a directory that is filled from archives. A name leads nowhere else: the kernel
 * resolves each one as if the directory were "/", also through links that an archive made.
 */
#ifndef IMAGE_PLACE_H
#define IMAGE_PLACE_H

#include <limits.h>
#include <stdbool.h>

/* A name of an archive, without "/" at its start, "." and empty parts. */
struct place_name {
	char text[PATH_MAX];
	char *last;			/* its last part, in text; "" if it is the top */
};

/* Reads a name. -EINVAL: it has "..", -ENAMETOOLONG: it is too long. */
int place_name(const char *text, struct place_name *name_r);

/* Opens the directory of a name's last part, below top. It is made if make is true and it is
 * missing. An O_PATH descriptor of the caller's, or -errno. */
int place_open(int top, const struct place_name *name, bool make);

#define PLACE_DEPTH_MAX 200		/* of a tree that is removed (base/remove.h) */

#endif
