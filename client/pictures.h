/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the pictures of a cell: in the terminal, if it can show them, or as files. */
#ifndef CLIENT_PICTURES_H
#define CLIENT_PICTURES_H

#include <stddef.h>

#include <jansson.h>

/* Zero it. */
struct pictures {
	char directory[256]; /* the directory of the files; "": not made yet */
	unsigned int n;
};

/* Shows a block of type image: in the terminal's own window by kitty's protocol, which kitty,
 * Ghostty and WezTerm have; otherwise it is saved in a directory below $TMPDIR, and its path is
 * printed. */
void pictures_show(struct pictures *pictures, const json_t *block);

#endif
