/* SPDX-License-Identifier: Apache-2.0 */
/* The token file on disk: read, and replaced whole or not at all.
 */
#ifndef CLIENT_TOKEN_FILE_H
#define CLIENT_TOKEN_FILE_H

#include <stdbool.h>

#include "policy/tokens.h"

struct why;

/* Open, and locked against other commands while it is to be changed. */
struct token_file {
	const char *path;	/* borrowed */
	const char *name;	/* in the directory; within path */
	int dir;		/* the directory, and the lock */
	bool exists;
	unsigned int mode;	/* of the file as it is, like its owners */
	unsigned int uid, gid;
	struct tokens tokens;
};

/* Reads the file; a missing file counts as empty. change: waits for the lock, so
 * that no other process changes it until token_file_close. 0 or -errno with why_r filled. */
int token_file_open(const char *path, bool change, struct token_file *file_r,
		    struct why *why_r);

/* Writes file->tokens. What was there has its owner and mode again; a new file is its
 * maker's alone, and made by root, readable for the group of the service, if there is one.
 * 0 or -errno with why_r filled: then nothing has changed. */
int token_file_write(struct token_file *file, struct why *why_r);

void token_file_close(struct token_file *file);

#endif
