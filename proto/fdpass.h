/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes with descriptors over a unix stream socket (SCM_RIGHTS, unix(7)).
 *
 * Never more descriptors than the largest message declares are taken in; whatever is
 * received is CLOEXEC from birth, and closed when the peer oversteps.
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

/* Sends up to len bytes (at least 1), with n descriptors (borrowed; at most MSG_FDS_MAX)
 * on the first of them. Never raises SIGPIPE. flags as for sendmsg(2). The number of
 * bytes sent, or -errno; interrupted calls are repeated. */
ssize_t fdpass_send(int socket, const void *bytes, size_t len,
		    const int *fd, size_t n, int flags);

/* The same. One user may have no more descriptors on their way in sockets than the sender may
 * have open (ETOOMANYREFS, unix(7)). Where all workers have one uid, a script can use that up
 * for a while: then this waits for FDPASS_PATIENCE_MS at most. */
ssize_t fdpass_send_patiently(int socket, const void *bytes, size_t len,
			      const int *fd, size_t n, int flags);

/* Receives up to len bytes (at least 1) and adds descriptors that came with them to set.
 * The number of bytes, 0 when the peer has closed its end, or -errno; interrupted calls
 * are repeated. -EBADMSG: more descriptors than fit, or ancillary data that was cut or
 * is no descriptors; then all are closed, those in set before included. */
ssize_t fdpass_recv(int socket, void *bytes, size_t len, struct fdpass_set *set);

#endif
