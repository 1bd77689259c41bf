/* Takes a tree of files from a stream that a worker writes: hostile to the last byte.
 *
 * The stream is a sequence of files and one end, numbers most significant byte first:
 *   'F' or 'X'   path length (2 bytes), size (8 bytes), path, that many bytes; 'X' is
 *                executable
 *   'E'          the number of files before it (4 bytes)
 * Paths are relative, without empty parts, "." and "..", and name each file once. There are
 * no links, no devices, no modes and no owners in it, so none can come of it.
 */
#ifndef WORKER_INTAKE_H
#define WORKER_INTAKE_H

#include <stdint.h>
#include <stdio.h>

#define INTAKE_PATH_MAX 1024	/* bytes */
#define INTAKE_DEPTH_MAX 40	/* directories above a file */

struct intake {
	int stream;		/* readable, blocking */
	int tree;		/* an empty directory */
	FILE *list;		/* gets "SHA256  tree/PATH" of each file, in lines; borrowed */
	uint64_t bytes_max;	/* of all files as whole pages, and a page for each directory */
	uint32_t files_max;
	uint64_t bytes;		/* so far, counted so */
	uint32_t files;
};

/* Reads the stream to its end mark and writes the files. 0; -EBADMSG when it is not such a
 * stream, -EFBIG when it is more than it may be, -EPIPE when it ends before its end, or
 * another -errno (-ENOSPC). *what_r says what it was about, static. */
int intake_read(struct intake *intake, const char **what_r);

#endif
