/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of the egress proxy: a listening socket on its loopback device, which the
 * supervisor passes on to the proxy.
 *
 * The open file is shared with the proxy, and so are its flags and options. So no script may get a
 * copy of it. A script's process makes it before the script's first line. For a cell init makes it,
 * because the cell's process is a copy of one that earlier cells could change.
 */
#ifndef WORKER_LISTENER_H
#define WORKER_LISTENER_H

#include <stdint.h>

/* Makes the socket, which the caller owns, and sends it in LISTENER for the execution of this id.
 * *port_r: its port, always the same unless a script has taken that. -EPIPE: the supervisor is
 * gone; or another -errno. */
int listener_offer(uint64_t id, uint16_t *port_r);

/* Shuts the socket down, for all copies of it, and closes it. -1 is fine. */
void listener_end(int fd);

#endif
