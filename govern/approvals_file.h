/* SPDX-License-Identifier: Apache-2.0 */
/* The file that keeps approvals over a restart. It has JSON lines, one for each event of a request.
 * A line is on the disk before the event takes effect. The file is read at the start of the
 * service. It is rewritten without obsolete lines then, and when there are many of them.
 */
#ifndef GOVERN_APPROVALS_FILE_H
#define GOVERN_APPROVALS_FILE_H

#include <jansson.h>

struct why;

/* Calls on_line with each line, in order. An incomplete last line, after a crash, is skipped. A
 * missing file counts as empty. 0, or -errno and why_r. */
int approvals_file_read(const char *path, void (*on_line)(void *arg, const json_t *line),
			void *arg, struct why *why_r);

/* Replaces the file by one with the lines that write_lines writes. Returns its descriptor, for
 * appending, or -errno and why_r. */
int approvals_file_replace(const char *path, int (*write_lines)(void *arg, int fd), void *arg,
			   struct why *why_r);

/* Writes one line of a file that is being replaced. 0 or -errno. line is freed. */
int approvals_file_write(int fd, json_t *line);

/* Appends one line, which is on the disk when this returns 0; otherwise -errno. line is freed. */
int approvals_file_append(int fd, json_t *line);

#endif
