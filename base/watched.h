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
 * each read is watched: in the callbacks of the bufferevent and of its input, stall_waited() says
 * whether this read had to wait. */
void watched_buffers(struct bufferevent *bev);

/* Logs which peer has caused a wait. To be called after stall_waited() was true. who: the kind of
 * peer, one word; of: a tenant. */
void watched_log(const char *who, const char *of);

#endif
