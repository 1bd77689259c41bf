/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces of workers. Making and closing one costs more time than any other part of a
 * worker. So the zygote keeps used networks and uses them again, but only for the same owner, and
 * only if they are empty.
 *
 * The networks belong to the outer user namespace, not to a worker's own. So no process of a worker
 * has a capability over its network, and none can change an address, a route or a sysctl of it. A
 * script can leave only sockets, and the state of their protocols. When all processes of a worker
 * have ended, the kernel's counters must show that the network has no socket of any family, no
 * connection in TIME_WAIT, and no fragment of a packet. Otherwise the network is closed, which
 * frees all of this. Nothing can enter an empty network that has no process. Only statistics and
 * TCP's metrics of the loopback device stay; the next script of the same owner can see these.
 *
 *   made ──> used by a worker ──its end, is empty──> rests ──> used ...
 *                  │                                   └── too many, or no owner ──> closed
 *                  └── its end, something is left ──> closed
 *
 * The zygote itself is in the network that it entered last, so that network stays open.
 */
#ifndef WORKER_NETWORKS_H
#define WORKER_NETWORKS_H

#include <stdbool.h>
#include <stdint.h>

/* Once, before the others. 0 or -errno. */
int networks_prepare(void);

/* Moves the calling process, which must have one thread, into a network for the owner's worker: a
 * kept one that is free, or a new one, whose connections may keep little memory of the kernel's.
 * 0, or -errno and the step that failed. */
int networks_enter(uint64_t owner, uint64_t worker, const char **what_r);

/* To be called when no process of the worker exists any more. keep: the network is kept for its
 * owner if it is empty; otherwise it is closed. Does nothing if the worker has none. */
void networks_free(uint64_t worker, bool keep);

/* Closes the kept networks of an owner. */
void networks_drop(uint64_t owner);

#endif
