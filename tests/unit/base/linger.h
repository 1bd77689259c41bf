/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a descriptor whose last close(2) takes long. */
#ifndef TESTS_LINGER_H
#define TESTS_LINGER_H

#define LINGER_S 40		/* the length of that close(2) */
#define HANG_MS 20000		/* a process that takes longer has waited for it */

/* A TCP socket with data that is not read. *other_r, if not NULL, is its other end; otherwise the
 * other end stays open in this process. A guard of base/stall.h is paused. */
int linger_open(int *other_r);

/* Passes such a socket with one byte over a unix socket, and closes this process's copy. 0, or the
 * errno of sendmsg. */
int linger_pass(int socket, int fd);

#endif
