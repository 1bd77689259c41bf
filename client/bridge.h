/* SPDX-License-Identifier: Apache-2.0 */
/* Carries bytes between two standard streams and a socket, without parsing or changing them. */
#ifndef CLIENT_BRIDGE_H
#define CLIENT_BRIDGE_H

#define BRIDGE_BUFFER (64 * 1024) /* the most bytes that are held in each direction */

/* Copies in_fd to socket_fd (non-blocking) and socket_fd to out_fd, until the socket ends and all
 * its bytes were written. The end of in_fd is passed on as a half-close. If one side does not take
 * its bytes, the other side is not read; nothing is dropped. The blocking mode of in_fd and out_fd
 * is not changed, because other processes may share them. Returns 0, also if out_fd has no reader
 * any more; or -errno of the stream that failed, with its name in *what_r. */
int bridge(int in_fd, int out_fd, int socket_fd, const char **what_r);

#endif
