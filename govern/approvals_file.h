/* SPDX-License-Identifier: Apache-2.0 */
/* The file that keeps approvals over a restart. It has JSON lines, one for each event of a request.
 * The file is read at the start of the service. It is rewritten without obsolete lines then, and
 * when there are many of them. After the start the functions that write are a thread's
 * (govern/writer.h).
 */
#ifndef GOVERN_APPROVALS_FILE_H
#define GOVERN_APPROVALS_FILE_H

#include <stdbool.h>

#include <jansson.h>

struct why;

struct approvals_file {
	char *path;			/* NULL: there is no file, and nothing is written */
	int fd;				/* -1: it is not open */
	bool behind;			/* a write has failed: only a replacement is taken */
};

/* Calls on_line with each line, in order. An incomplete last line, after a crash, is skipped. A
 * missing file counts as empty. 0, or -errno and why_r. */
int approvals_file_read(const char *path, void (*on_line)(void *arg, const json_t *line),
			void *arg, struct why *why_r);

/* Replaces the file by one with this text. 0; or -errno: another replacement has to follow. */
int approvals_file_replace(struct approvals_file *file, const char *text, size_t len);

/* Appends a text of whole lines, which is on the disk when this returns 0; otherwise -errno. */
int approvals_file_append(struct approvals_file *file, const char *text, size_t len);

/* If somebody else has removed or replaced the file, makes it again, with what it had. */
void approvals_file_look(struct approvals_file *file);

#endif
