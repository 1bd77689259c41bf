/* SPDX-License-Identifier: Apache-2.0 */
/* The token file on disk. It is read as a whole, and a change replaces the whole file.
 */
#ifndef CLIENT_TOKEN_FILE_H
#define CLIENT_TOKEN_FILE_H

#include <stdbool.h>

#include "policy/tokens.h"

struct why;

/* An open token file; locked against other commands if it will be changed. */
struct token_file {
	const char *path;	/* borrowed */
	const char *name;	/* its name in the directory; points into path */
	int dir;		/* the directory, and the lock */
	bool exists;
	unsigned int mode;	/* mode, uid and gid: of the existing file */
	unsigned int uid, gid;
	struct tokens tokens;
};

/* Reads the file; a missing file counts as empty. change: the file will be changed, so this waits
 * for the lock, and no other command changes the file until token_file_close. 0 or -errno with
 * why_r. */
int token_file_open(const char *path, bool change, struct token_file *file_r,
		    struct why *why_r);

/* Writes file->tokens. An existing file keeps its owner and mode. A new file is accessible only to
 * the user who makes it; if root makes it, the service's group, if it exists, can read it, too. 0;
 * or -errno with why_r, and nothing has changed. */
int token_file_write(struct token_file *file, struct why *why_r);

void token_file_close(struct token_file *file);

#endif
