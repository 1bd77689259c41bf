/* The audit log's file: appended to, mended after a crash, rotated. It is PATH; those that
 * it was before are PATH.1, PATH.2 and so on, oldest first, and the chain goes on from each
 * one to the next. Nobody but one service writes it: it is locked.
 */
#ifndef SUPERVISOR_AUDIT_FILE_H
#define SUPERVISOR_AUDIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "policy/chain.h"

struct why;

struct audit_file {
	char *path;
	int fd;
	off_t size;			/* up to the end of the last good line */
	struct chain_link last;
	unsigned int rotated;		/* number of the youngest PATH.N; 0: none */
	bool sync;			/* wait for the disk at each line */
	bool dirty;			/* written to since audit_file_flush */
	/* Of what was found when it was opened. */
	uint64_t torn;			/* bytes of a line that a crash had torn, taken off */
	bool broken;			/* no chain: it was put aside as PATH.rotated */
};

/* Opens it, or makes it. 0, or -errno with why_r. */
int audit_file_open(const char *path, bool sync, struct audit_file *file_r, struct why *why_r);
void audit_file_close(struct audit_file *file);

/* Appends one line with one write. members: as in chain_append. 0, or -errno: then there is
 * nothing of it in the file. */
int audit_file_append(struct audit_file *file, const char *members, size_t len);

/* Puts it aside and makes a new one that goes on with the chain. 0 or -errno; after an error
 * the old one is still written to. */
int audit_file_rotate(struct audit_file *file);

/* Tells the kernel to write what is dirty; does not wait. */
void audit_file_flush(struct audit_file *file);

#endif
