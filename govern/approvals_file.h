/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which approvals outlive the service: JSON lines, one for each thing that happened
 * to a request, appended and on the disk before it counts. Read at start, and written again
 * without what no longer matters.
 */
#ifndef GOVERN_APPROVALS_FILE_H
#define GOVERN_APPROVALS_FILE_H

#include <jansson.h>

struct why;

/* Calls on_line with each line, in order. A last line that a crash has torn is passed over. No
 * such file is an empty one. 0, or -errno and why_r. */
int approvals_file_read(const char *path, void (*on_line)(void *arg, const json_t *line),
			void *arg, struct why *why_r);

/* Puts a new file in its place, with what write_lines puts; its descriptor, for appending, or
 * -errno and why_r. */
int approvals_file_replace(const char *path, int (*write_lines)(void *arg, int fd), void *arg,
			   struct why *why_r);

/* One line, which is on the disk when it returns 0; else -errno. line is taken over. */
int approvals_file_append(int fd, json_t *line);

#endif
