/* SPDX-License-Identifier: Apache-2.0 */
/* The token file on disk, which is read, and replaced as a whole.
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
	unsigned int mode;	/* of the existing file, like its owners */
	unsigned int uid, gid;
	struct tokens tokens;
};

/* Reads the file; a missing file counts as empty. change: waits for the lock, so
 * that no other process changes it until token_file_close. 0 or -errno with why_r filled. */
int token_file_open(const char *path, bool change, struct token_file *file_r,
		    struct why *why_r);

/* Writes file->tokens. An existing file keeps its owner and mode. A new file is accessible only to
 * its maker; if root makes it, the service's group can read it, if that group exists. 0; or -errno
 * with why_r filled: then nothing has changed. */
int token_file_write(struct token_file *file, struct why *why_r);

void token_file_close(struct token_file *file);

#endif
