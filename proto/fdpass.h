/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes with descriptors over a unix stream socket (SCM_RIGHTS, unix(7)).
 *
 * A set holds at most MSG_FDS_MAX descriptors: the largest number that any message declares.
 * Received descriptors are CLOEXEC. If the peer sends more than fit, all are closed.
 */
#ifndef PROTO_FDPASS_H
#define PROTO_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

#include "proto/message.h"

#define FDPASS_PATIENCE_MS 2000

/* A set of descriptors, which belong to the owner of the set. Zeroed: empty. An entry of -1: it was
 * given away. */
struct fdpass_set {
	int fd[MSG_FDS_MAX];
	size_t n;
};

/* Closes the descriptors of a set, and empties it. */
void fdpass_close(struct fdpass_set *set);

/* Sends up to len bytes (at least 1), and n descriptors (borrowed; at most MSG_FDS_MAX) with the
 * first byte. Never raises SIGPIPE. flags: of sendmsg(2). Interrupted calls are repeated. Returns
 * the number of bytes sent, or -errno. */
ssize_t fdpass_send(int socket, const void *bytes, size_t len,
		    const int *fd, size_t n, int flags);

/* As fdpass_send, but waits for at most FDPASS_PATIENCE_MS if the kernel has no memory for the
 * message (ENOBUFS, ENOMEM), or if the user has too many descriptors in flight in sockets
 * (ETOOMANYREFS, unix(7)). The limit of these is the number that the sender may have
 * open. If all workers share one uid, a script can cause this error for a while. */
ssize_t fdpass_send_patiently(int socket, const void *bytes, size_t len,
			      const int *fd, size_t n, int flags);

/* Receives up to len bytes (at least 1), and adds descriptors that came with them to set.
 * Interrupted calls are repeated. Returns the number of bytes; 0: the peer has closed its end;
 * or -errno. -EBADMSG: more descriptors came than fit into set, or the ancillary data is of another
 * kind; -EMFILE: this process could not open all that came. Then all descriptors are closed,
 * including those that were in set before. */
ssize_t fdpass_recv(int socket, void *bytes, size_t len, struct fdpass_set *set);

#endif
