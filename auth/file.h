/* SPDX-License-Identifier: Apache-2.0 */
/* A file that administrators change while we run: looked at once a second at most, read
 * whole when it is another one than before. Files are small and local, and opened so that
 * a FIFO in their place holds nothing up.
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
	bool looked;		/* at least once; the rest is unset before */
	uint64_t looked_ms;
	int error;		/* of the last look; 0: none */
	struct stat stat;	/* what was read last */
};

/* Once a second: is the file new? now_ms: of CLOCK_MONOTONIC. 1: *text_r, malloc'd with NUL
 * after it, is what it holds; 0: as before, or not looked at, or an error that was told
 * before; -errno. -EPERM: others may write to it, so that it says nothing. */
int auth_file_read(struct auth_file *file, uint64_t now_ms, char **text_r, size_t *len_r);

#endif
