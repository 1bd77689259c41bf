/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of a fork server: forker.c in the supervisor, forker_process.c in the fork server.
 */
#ifndef HOST_FORKER_PARTS_H
#define HOST_FORKER_PARTS_H

#include <stddef.h>
#include <sys/types.h>

#include "host/forker.h"

/* The descriptors that a fork server keeps. */
struct forker_keeps {
	size_t n;
	int fd[];
};

/* A fork server: a helper_live_fn. keeps: struct forker_keeps. Serves orders on socket, until the
 * supervisor closes its end. */
_Noreturn void forker_live(const void *keeps, int socket, pid_t supervisor);

#endif
