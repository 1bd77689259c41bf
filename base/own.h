/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that own a descriptor or memory, which is closed or freed on every way out of their
 * block.
 *
 *   own_fd int fd = open(...);
 *   ...
 *   leaf->fd = give_fd(fd);		fd is now the leaf's
 */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define own_fd __attribute__((cleanup(own_fd_close)))
#define own_mem __attribute__((cleanup(own_mem_free)))

/* The value of fd, which is -1 afterwards. */
#define give_fd(fd) own_fd_take(&(fd))

/* The value of pointer, which is NULL afterwards. */
#define give_ptr(pointer) ({ \
	__auto_type own_given = (pointer); \
	(pointer) = NULL; \
	own_given; })

static inline void
own_fd_close(int *fd)
{
	int before = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = before;
}

static inline int
own_fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* pointer: the address of a variable with a pointer from malloc, or NULL. */
static inline void
own_mem_free(void *pointer)
{
	int before = errno;
	void *mem;

	memcpy(&mem, pointer, sizeof(mem));
	free(mem);
	errno = before;
}

#endif
