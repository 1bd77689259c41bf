/* SPDX-License-Identifier: Apache-2.0 */
/* Carries bytes between two standard streams and a socket, unread and unchanged. */
#ifndef CLIENT_BRIDGE_H
#define CLIENT_BRIDGE_H

#define BRIDGE_BUFFER (64 * 1024) /* held in each direction at most */

/* Copies in_fd to socket_fd (non-blocking) and socket_fd to out_fd until the socket
 * ends and all that came from it is written. The end of in_fd is passed on as a
 * half-close. A side that does not take its bytes stops the reading of the other,
 * nothing is dropped. in_fd and out_fd stay as they are, blocking or not: others may
 * share them. Returns 0; also when out_fd has no reader any more; or -errno of the
 * stream that broke, with *what_r naming it. */
int bridge(int in_fd, int out_fd, int socket_fd, const char **what_r);

#endif
