/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tree of files from a stream, all of which is hostile.
 *
 * The stream is a sequence of files and one end, numbers most significant byte first:
 *   'F' or 'X'   path length (2 bytes), size (8 bytes), path, that many bytes; 'X' is
 *                executable
 *   'R'          length (2 bytes), and the reason why the sender ends the stream early
 *   'E'          the number of files before it (4 bytes)
 * The stream has no links, devices, modes and owners, so it cannot make any.
 */
#ifndef KEEPER_INTAKE_H
#define KEEPER_INTAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct why;

#define INTAKE_REASON_MAX 480	/* bytes */

struct intake {
	int tree;		/* a directory */
	FILE *list;		/* gets "SHA256  tree/PATH" of each file, in lines; borrowed */
	uint64_t bytes_max;	/* of all files as whole pages, and a page for each directory */
	uint32_t files_max;
	uint64_t bytes;		/* so far, counted so */
	uint32_t files;
};

/* Reads one stream (readable, blocking) to its end mark and writes the files. If a file exists
 * already, from another stream, the new one must be equal. 0; or with why_r filled -EBADMSG: it is
 * not such a stream; -EFBIG: it exceeds the bounds; -EEXIST: there is a different file of this
 * path; -EPIPE: it is incomplete; or another -errno (-ENOSPC). */
int intake_read(struct intake *intake, int stream, struct why *why_r);

/* Writes one new file, with size bytes that it reads. Errors as above. */
int intake_file(struct intake *intake, int from, const char *path, bool executable,
		uint64_t size, struct why *why_r);

/* Reads exactly this many bytes. 0; -EPIPE: there are fewer; or another -errno. */
int intake_bytes(int from, void *to, size_t len);

#endif
