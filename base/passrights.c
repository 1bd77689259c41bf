/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every process that has sockets.   Owns: nothing. */
#include "base/passrights.h"

#include <errno.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83	/* not in the oldest supported kernel headers */
#endif

int
passrights_set(int socket, bool may)
{
	const int value = may;

	return setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value)) < 0 ? -errno
										       : 0;
}
