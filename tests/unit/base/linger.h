/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a descriptor that keeps the one who closes it last. */
#ifndef TESTS_LINGER_H
#define TESTS_LINGER_H

#define LINGER_S 40		/* for so long */
#define HANG_MS 20000		/* what takes longer did wait for it */

/* A TCP socket with data that nobody reads. *other_r, if not NULL, is its other end; else that
 * stays open in this process. The guard of base/stall.h, where there is one, is paused. */
int linger_open(int *other_r);

/* Passes it with one byte over a unix socket, and gives up our copy. 0, or the errno of
 * sendmsg. */
int linger_pass(int socket, int fd);

#endif
