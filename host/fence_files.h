/* SPDX-License-Identifier: Apache-2.0 */
/* Restricts by Landlock which files the supervisor can open once it serves: only files below the
 * folders that it works in. So it cannot open other files of its user, or anything below /proc: the
 * memory of other processes, or their directories, which the kernel accepts as pidfds. Files that
 * are open stay open. Landlock does not cover connect(2) to the path of a socket, or reading the
 * names, sizes and times of files.
 */
#ifndef HOST_FENCE_FILES_H
#define HOST_FENCE_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct fence_files;

enum fence_access {
	FENCE_READ,
	FENCE_WRITE,	/* read, write, make, rename and remove */
	FENCE_SOCKETS,	/* only remove files, and give sockets names */
};

/* Begins a list of folders. Folders that do not exist are left out. NULL: this kernel has no
 * Landlock, or refuses its use; the reason is in errno. */
struct fence_files *fence_files_new(void);
void fence_files_free(struct fence_files *files);	/* NULL is fine */

/* Adds a folder; NULL is fine. 0 or -errno. */
int fence_files_add(struct fence_files *files, const char *folder, enum fence_access access);

/* Adds an open directory. 0 or -errno. */
int fence_files_add_fd(struct fence_files *files, int fd, enum fence_access access);

/* Adds the folder that a file is in, so that another file can take the file's place. If the file is
 * a link, the folder of its target is added, too. A file in "/" is added without its folder. NULL
 * is fine. 0 or -errno. */
int fence_files_add_around(struct fence_files *files, const char *file,
			   enum fence_access access);

/* Puts the process under the rules permanently, and tries to open a refused file as a proof. To be
 * called before fence_supervisor. 0 or -errno. */
int fence_files_enter(const struct fence_files *files);

/* Is this process under the rules? */
bool fence_files_entered(void);

#endif
