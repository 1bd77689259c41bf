/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the audit log. Lines are appended to it; it is repaired after a crash, and rotated.
 * The current file is PATH; earlier files are PATH.1, PATH.2 and so on, oldest first. The chain
 * continues from each file to the next. A lock allows only one service to write the file.
 */
#ifndef GOVERN_AUDIT_FILE_H
#define GOVERN_AUDIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/chain.h"

struct why;

struct audit_file {
	char *path;
	int fd;
	off_t size;			/* up to the end of the last complete line */
	struct chain_link last;
	uint64_t noted;			/* the number of the record in PATH.last */
	unsigned int rotated;		/* number of the youngest PATH.N; 0: none */
	unsigned int oldest;		/* number of the oldest PATH.N that exists; 0: none */
	uint64_t rotated_bytes;		/* of all PATH.N that exist */
	bool sync;			/* each line waits for the disk */
	bool dirty;			/* written to since audit_file_flush */
	/* The state of the file when it was opened. */
	uint64_t torn;			/* bytes of an incomplete last line, after a crash; removed
					 */
	bool missing;			/* there was no file, but PATH.last, from which the chain
					 * goes on */
	bool broken;			/* it was not a valid chain, and was renamed to PATH.rotated
					 */
};

/* Opens the file, or makes it. 0, or -errno with why_r. */
int audit_file_open(const char *path, bool sync, struct audit_file *file_r, struct why *why_r);
void audit_file_close(struct audit_file *file);

/* Appends one line with one write. members: as in chain_append. 0, or -errno: then no part of the
 * line is in the file. */
int audit_file_append(struct audit_file *file, const char *members, size_t len);

/* Renames the file, and makes a new one that continues the chain. 0 or -errno; after an error the
 * old file is still in use. */
int audit_file_rotate(struct audit_file *file);

/* Is the file still at its path? False: it was removed, renamed or replaced by another process. */
bool audit_file_is_there(const struct audit_file *file);

/* Makes a new file at the path, which continues the chain from the last line in memory. Another
 * file at the path is renamed to PATH.N. 0 or -errno; after an error the old file is still open. */
int audit_file_replace(struct audit_file *file);

/* Finds the existing PATH.N, because an operator may have removed some. 0 or -errno. */
int audit_file_find_rotated(struct audit_file *file);

/* The last link of the chain in the oldest PATH.N; n 0: the file does not end with one. */
void audit_file_oldest_end(const struct audit_file *file, struct chain_link *last_r);

/* Removes the oldest PATH.N. 0 or -errno. */
int audit_file_drop_oldest(struct audit_file *file);

/* The bytes that are free for this process on the file's disk. 0 or -errno. */
int audit_file_free_bytes(const struct audit_file *file, uint64_t *bytes_r);

/* Tells the kernel to write the file to the disk; does not wait. Notes the last link of the chain
 * in PATH.last, so that the next start sees if the file is missing. */
void audit_file_flush(struct audit_file *file);

#endif
