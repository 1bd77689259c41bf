/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of the egress proxy: a listening socket on the worker's loopback device. The
 * supervisor passes it on to the proxy.
 *
 * The worker and the proxy share the open socket, with its flags and options. So no script may get
 * a descriptor of it. A script's process makes the socket before the script's first line. For a
 * cell, init makes it, because earlier cells could have changed the cell's process.
 */
#ifndef WORKER_LISTENER_H
#define WORKER_LISTENER_H

#include <stdint.h>

/* Makes the socket, and sends it in LISTENER for the execution of this id. Returns the socket,
 * which the caller owns. *port_r: its port, which is always the same unless a script uses that port
 * already. Or -EPIPE: the supervisor is gone; or another -errno. */
int listener_offer(uint64_t id, uint16_t *port_r);

/* Shuts the socket down for all processes that share it, and closes it. -1 is fine. */
void listener_end(int fd);

#endif
