/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the supervisor may still open once it serves: those below the folders that it works
 * in, by Landlock. It cannot open other files of its user, and nothing below /proc: neither the
 * memory of other processes nor their directories, which the kernel accepts as a pidfd. Open files
 * stay open. Landlock does not cover connect(2) to the path of a socket, or reading names, sizes
 * and times of files.
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
 * Landlock, or refuses its use; the reason is in errno. */
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

/* Enters permanently, and tries a refused file as a proof. Before fence_supervisor. 0 or -errno. */
int fence_files_enter(const struct fence_files *files);

/* Has this process entered? */
bool fence_files_entered(void);

#endif
