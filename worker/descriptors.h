/* SPDX-License-Identifier: Apache-2.0 */
/* The open descriptors of a process that holds a state, and of its copies.
 *
 * After a fork, both processes share the open files. A copy that becomes the state restores the
 * offsets of its files. A copy that waits must not keep connections open: otherwise the other side
 * would not see that the state's process has closed its end, and a port that the process has closed
 * would stay in use. So the copy replaces connections by sockets and pipes whose other end is
 * closed. It listens on its ports again when it is used. A pipe of which the process has both ends
 * is replaced by a pipe of the copy's own with the same unread bytes.
 */
#ifndef WORKER_DESCRIPTORS_H
#define WORKER_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

#define DESCRIPTORS_MAX 1024	/* RLIMIT_NOFILE */

/* Called before a copy is made. own: descriptors of the worker itself (-1: none); copies share
 * these and all duplicates of them. Returns whether there are connections. */
bool descriptors_look(const int *own, size_t n_own);

/* In the copy, as its first step: replaces its connections. own: as in descriptors_look. It looks
 * at the descriptors again: before the fork, threads may have opened pipes of which the copy would
 * hold both ends for ever. Calls only functions that are safe after a fork of a process with
 * threads. */
void descriptors_disconnect(const int *own, size_t n_own);

/* In the process that was copied: it keeps all its descriptors, and the result of descriptors_look
 * is dropped. */
void descriptors_keep(void);

/* In a copy that has become the state, because its process has ended: restores the offsets. */
void descriptors_rewind(void);

/* In a copy that is used: listens again on the addresses that are free. */
void descriptors_listen(void);

#endif
