/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bytes completely to a descriptor that blocks. */
#ifndef BASE_WRITEALL_H
#define BASE_WRITEALL_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* Writes len bytes, in several calls of write(2) if necessary. 0 or -errno; after an error, a part
 * may have been written. */
static inline int
write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

#endif
