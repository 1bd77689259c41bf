/* The way out, as far as a worker is concerned: a listening socket on its loopback device, which
 * the supervisor passes on to the egress proxy. Who answers on it is not known here.
 *
 * The open file is shared with the proxy, and so are its flags and options. Therefore it is made
 * where no script has been yet, and no script gets a copy: by the script's own process before it
 * runs a line of a client, and for the cells of a session, whose processes are copies of a state
 * that earlier cells have had in their hands, by init.
 */
#ifndef WORKER_LISTENER_H
#define WORKER_LISTENER_H

#include <stdint.h>

/* Makes the socket, the caller's, and passes it on in LISTENER, for the execution with this id.
 * *port_r: where it listens, always the same if a script has not taken that. -EPIPE when the
 * supervisor is gone, or another -errno. */
int listener_offer(uint64_t id, uint16_t *port_r);

/* Nothing can be connected to it any more, whatever copies of it there are; and closes it. -1 is
 * fine. */
void listener_end(int fd);

#endif
