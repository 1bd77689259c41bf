/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that a cell shows: on a terminal that can, or as files. */
#ifndef CLIENT_PICTURES_H
#define CLIENT_PICTURES_H

#include <stddef.h>

#include <jansson.h>

/* Zero it. */
struct pictures {
	char directory[256]; /* of the files; "": there is none yet */
	unsigned int n;
};

/* Shows a block of type image: in the terminal's own window by kitty's protocol, which kitty,
 * Ghostty and WezTerm have; otherwise it is saved in a directory below $TMPDIR, and its path is
 * printed. */
void pictures_show(struct pictures *pictures, const json_t *block);

#endif
