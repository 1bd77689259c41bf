/* SPDX-License-Identifier: Apache-2.0 */
/* A small file that is always written as a whole, by a thread of its own, so that the loop waits
 * for no disk. It is made again if somebody else has removed or replaced it.
 */
#ifndef GOVERN_WHOLE_FILE_H
#define GOVERN_WHOLE_FILE_H

#include <stdio.h>

struct event_base;
struct whole_file;

/* Opens the file at path, or makes it. what: it is, for the log, which also says why it cannot be
 * opened or written. NULL: path is NULL. */
struct whole_file *whole_file_new(const char *path, const char *what);

/* Starts the thread (govern/writer.h). Without one, whole_file_write writes at once. Does nothing
 * if file is NULL. 0 or -errno. */
int whole_file_start(struct whole_file *file, struct event_base *base);

/* Its bytes at the start, to be read before the first whole_file_write, and closed by the caller.
 * NULL: file is NULL, or there are none. */
FILE *whole_file_read(const struct whole_file *file);

/* Writes text and nothing else. Takes text over: it is freed later. file: a struct whole_file. */
void whole_file_write(void *file, char *text);

/* Writes what waits to be written. NULL is fine. */
void whole_file_free(struct whole_file *file);

#endif
