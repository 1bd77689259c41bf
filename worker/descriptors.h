/* SPDX-License-Identifier: Apache-2.0 */
/* The open descriptors of a process that holds a state, and of its copies.
 *
 * A fork shares what is open. A copy that is used restores the offsets of its files. A copy that
 * waits must not keep connections open: otherwise the other side would not see that the state's
 * process has closed its end, and a port that it has closed would stay in use. So the copy has
 * sockets and pipes in their place whose other side has closed, and listens again when it is used.
 * Pipes of which the process holds both ends are left as they are.
 */
#ifndef WORKER_DESCRIPTORS_H
#define WORKER_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* Before a copy is made. own: descriptors of the worker, -1 allowed, which copies share with all
 * that lead to the same. Whether there are connections, for descriptors_disconnect. */
bool descriptors_look(const int *own, size_t n_own);

/* In the copy, as its first step. Calls nothing that is not allowed after a fork among threads. */
void descriptors_disconnect(void);

/* In the process that was copied: it keeps all. */
void descriptors_keep(void);

/* In a copy that is the state now, because its process has ended: offsets are as they were. */
void descriptors_rewind(void);

/* In a copy that is used: where a socket listened, it listens again, if the address is free. */
void descriptors_listen(void);

#endif
