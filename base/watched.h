/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of strangers: they refuse descriptors, and a wait that a peer causes is noticed
 * (base/stall.h).
 */
#ifndef BASE_WATCHED_H
#define BASE_WATCHED_H

#include <stdbool.h>

struct bufferevent;

/* Makes a stranger's socket refuse descriptors. True: the kernel cannot do this, or has failed to,
 * so reads of the socket have to be watched. False: the socket refuses descriptors, or is not a
 * unix socket and cannot carry any.
 */
bool watched_refuse(int socket);

/* As watched_refuse, for the socket that a bufferevent has and keeps. If the kernel cannot refuse,
 * each read is watched: in the callbacks of the bufferevent and of its input, watched_stalled()
 * says whether this read had to wait. tenant: whose socket it is. */
void watched_buffers(struct bufferevent *bev, const char *tenant);

/* Begins to watch one read of a tenant's socket. */
void watched_begin(const char *tenant);

/* Ends the watch. True: the tenant's reads make the service wait again and again, and this one did;
 * the peer is to be ended, and is logged. A first wait is excused, and logged as well. For some
 * seconds after it, this tenant's reads are interrupted much sooner, and no other's. who: the kind
 * of peer, one word. */
bool watched_stalled(const char *who, const char *tenant);

#endif
