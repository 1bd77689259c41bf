/* SPDX-License-Identifier: Apache-2.0 */
/* Shows the pictures of a cell: in the terminal, if it can show them, or as files. */
#ifndef CLIENT_PICTURES_H
#define CLIENT_PICTURES_H

#include <stddef.h>

#include <jansson.h>

/* The state of the module. Zeroed at the start. */
struct pictures {
	char directory[256]; /* the directory of the files; "": not made yet */
	unsigned int n;
};

/* Runs Python code in the jail of the session that made a picture. Returns what it printed,
 * malloc'd, or NULL. */
typedef char *pictures_run(void *arg, const char *code);

/* Shows a block of type image. A terminal with kitty's protocol (kitty, Ghostty, WezTerm) or with
 * sixel (foot, mlterm, mintty, iTerm2) shows the picture itself; for sixel, run converts it.
 * Otherwise it is saved in a directory below $TMPDIR, and its path is printed. */
void pictures_show(struct pictures *pictures, const json_t *block, pictures_run *run, void *arg);

#endif
