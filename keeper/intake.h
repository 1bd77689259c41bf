/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tree of files from a stream. The whole stream is hostile.
 *
 * The stream is a sequence of files, and an end mark. Numbers have the most significant byte first:
 *   'F' or 'X'   path length (2 bytes), size (8 bytes), path, content; 'X': the file is executable
 *   'R'          length (2 bytes), and the reason why the sender ends the stream early
 *   'E'          the number of files before it (4 bytes)
 * The stream has no links, devices, modes or owners, so it cannot make any.
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
	FILE *list;		/* gets a line "SHA256  tree/PATH" for each file; borrowed */
	uint64_t bytes_max;	/* all files, each as whole pages, and a page for each directory */
	uint32_t files_max;
	uint64_t bytes;		/* so far, counted in the same way */
	uint32_t files;
};

/* Reads one stream, a blocking descriptor, to its end mark and writes the files. If a file exists
 * already, from another stream, the new one must have the same content. 0. Or, with why_r,
 * -EBADMSG: the form of the stream is not valid; -EFBIG: it exceeds the bounds; -EEXIST: there is a
 * different file with this path; -EPIPE: it is incomplete; or another -errno, such as -ENOSPC. */
int intake_read(struct intake *intake, int stream, struct why *why_r);

/* Writes one new file with size bytes, which are read from a descriptor. Returns the
 * same errors as intake_read. */
int intake_file(struct intake *intake, int from, const char *path, bool executable,
		uint64_t size, struct why *why_r);

/* Reads exactly len bytes. 0; -EPIPE: there are fewer; or another -errno. */
int intake_bytes(int from, void *to, size_t len);

#endif
