/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces of workers. To make one and to end it is the most expensive part of a worker's
 * life, so the zygote keeps them and uses them again: for the same owner only, and only those in
 * which nothing is left.
 *
 * They belong to the outer user namespace, not to a worker's own. So no process of a worker has a
 * capability over its network, and none can change an address, a route or a sysctl of it. What a
 * script can leave is sockets and what their protocols remember. When all processes of a worker
 * have ended, the kernel's counters must show that its network has no socket of any family, no
 * connection in TIME_WAIT, and no fragment of a packet; else it is closed, so that the kernel keeps
 * none of this for a script that has ended. Nothing can come into an empty network that no process
 * is in. What stays are statistics and TCP's memory of its own loopback: the next script of the
 * same owner may see these.
 *
 *   made ──> used by a worker ──its end, is empty──> rests ──> used ...
 *                 └── its end, something is left ──> closed <──┴── too many, or no owner
 *
 * The zygote itself is in the network that it used last, which exists for that long.
 */
#ifndef WORKER_NETWORKS_H
#define WORKER_NETWORKS_H

#include <stdbool.h>
#include <stdint.h>

/* Moves the calling process, which has one thread, into a network for the owner's worker: one that
 * rests, or a new one. small_buffers: those of TCP are bounded as other sockets' are. 0, or -errno
 * and the step that failed. */
int networks_enter(uint64_t owner, uint64_t worker, bool small_buffers, const char **what_r);

/* No process of the worker exists any more. keep: its owner will need the network again, if it is
 * empty. A worker that has none is ignored. */
void networks_free(uint64_t worker, bool keep);

/* The owner needs none for the time being, or is gone. */
void networks_drop(uint64_t owner);

#endif
