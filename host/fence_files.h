/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the supervisor may still open once it serves: those below the folders that it works
 * in, by Landlock. It cannot open what else its user may, and nothing below /proc: no memory of
 * other processes, and no directory of one, which the kernel takes for a way to signal it.
 * What is open stays open. Sockets are not files here: connect(2) to a path goes on to work, and
 * so does looking at names, sizes and times.
 */
#ifndef HOST_FENCE_FILES_H
#define HOST_FENCE_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct fence_files;

enum fence_access {
	FENCE_READ,
	FENCE_WRITE,	/* that, and write, make, rename and remove */
	FENCE_REMOVE,	/* remove files, and no more */
};

/* Begins a list of folders. Folders that do not exist are left out. NULL: this kernel has no
 * Landlock, or does not let us use it; errno tells. */
struct fence_files *fence_files_new(void);
void fence_files_free(struct fence_files *files);	/* NULL is fine */

/* A folder; NULL is fine. 0 or -errno. */
int fence_files_add(struct fence_files *files, const char *folder, enum fence_access access);

/* An open directory. */
int fence_files_add_fd(struct fence_files *files, int fd, enum fence_access access);

/* The folder that a file is in, so that another file can take its place; and if the file is a link,
 * the folder to which it leads. A file in "/" is added alone. NULL is fine. 0 or -errno. */
int fence_files_add_around(struct fence_files *files, const char *file,
			   enum fence_access access);

/* For good, and proved by trying. Before fence_supervisor. 0 or -errno. */
int fence_files_enter(const struct fence_files *files);

/* Has this process entered? */
bool fence_files_entered(void);

#endif
