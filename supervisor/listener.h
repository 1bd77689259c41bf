/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket: accepts connections, asks the kernel for the peer's uid and the gate whose it
 * is, and opens streams. If the process has no more descriptors, it stops accepting for some time.
 */
#ifndef SUPERVISOR_LISTENER_H
#define SUPERVISOR_LISTENER_H

struct gate;
struct listener;
struct loop;
struct stream_set;

/* Takes fd, a listening unix stream socket, and serves it at once. 0; or -errno, and fd still
 * belongs to the caller. loop, set and gate (NULL: each uid is its own) must outlive the
 * listener. */
int listener_new(struct loop *loop, int fd, struct stream_set *set, struct gate *gate,
		 struct listener **listener_r);

/* Stops accepting connections, and closes the socket. NULL is fine. */
void listener_free(struct listener *listener);

#endif
