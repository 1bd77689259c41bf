/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes with descriptors over a unix stream socket (SCM_RIGHTS, unix(7)).
 *
 * At most as many descriptors are received as the largest message declares. All are CLOEXEC, and
 * are closed if the peer sends more.
 */
#ifndef PROTO_FDPASS_H
#define PROTO_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

#include "proto/message.h"

#define FDPASS_PATIENCE_MS 2000

/* Descriptors that belong to the holder of the set. Zeroed is empty; an entry of -1 was
 * given away. */
struct fdpass_set {
	int fd[MSG_FDS_MAX];
	size_t n;
};

/* Closes what is in it and empties it. */
void fdpass_close(struct fdpass_set *set);

/* Sends up to len bytes (at least 1), and n descriptors (borrowed; at most MSG_FDS_MAX) with the
 * first byte. Never raises SIGPIPE. flags as for sendmsg(2). The number of bytes sent, or -errno;
 * interrupted calls are repeated. */
ssize_t fdpass_send(int socket, const void *bytes, size_t len,
		    const int *fd, size_t n, int flags);

/* The same, but waits for at most FDPASS_PATIENCE_MS if the user has too many descriptors in flight
 * in sockets: as many as the sender may have open (ETOOMANYREFS, unix(7)). If all workers have one
 * uid, a script can cause that for a while. */
ssize_t fdpass_send_patiently(int socket, const void *bytes, size_t len,
			      const int *fd, size_t n, int flags);

/* Receives up to len bytes (at least 1) and adds descriptors that came with them to set. The number
 * of bytes, 0 when the peer has closed its end, or -errno; interrupted calls are repeated.
 * -EBADMSG: more descriptors than fit, or ancillary data that was cut or has no descriptors; then
 * all are closed, including those that were in set before. */
ssize_t fdpass_recv(int socket, void *bytes, size_t len, struct fdpass_set *set);

#endif
