/* SPDX-License-Identifier: Apache-2.0 */
/* A file that administrators may change while the service runs. It is checked at most once a
 * second, and read completely if it has changed. Such files are small and local, so reading them
 * does not hold up the loop; a FIFO at the path of a file does not block.
 */
#ifndef AUTH_FILE_H
#define AUTH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define AUTH_FILE_LOOK_MS 1000

struct auth_file {
	const char *path;	/* borrowed */
	size_t bytes_max;
	bool looked;		/* checked at least once; before that the other members are not set
				 */
	uint64_t looked_ms;
	int error;		/* of the last check; 0: none */
	struct stat stat;	/* of the file as it was last read */
};

/* Checks the file, at most once a second. now_ms: of CLOCK_MONOTONIC. 1: it has changed, and
 * *text_r is its content, malloc'd, with NUL after it. 0: it is unchanged, was not checked, or has
 * an error that was reported before. -errno; -EPERM: other users may write to it, so it is not
 * used. */
int auth_file_read(struct auth_file *file, uint64_t now_ms, char **text_r, size_t *len_r);

#endif
