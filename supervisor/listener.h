/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket: accepts connections, asks the kernel for the peer's uid, and opens streams.
 * When there are no more descriptors it waits for some time.
 */
#ifndef SUPERVISOR_LISTENER_H
#define SUPERVISOR_LISTENER_H

struct listener;
struct loop;
struct stream_set;

/* Takes fd, a listening unix stream socket, and serves it at once. 0, or -errno: then fd is
 * still the caller's. loop and set outlive the listener. */
int listener_new(struct loop *loop, int fd, struct stream_set *set,
		 struct listener **listener_r);

/* Stops accepting and closes its socket. NULL is fine. */
void listener_free(struct listener *listener);

#endif
