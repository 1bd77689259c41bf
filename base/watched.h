/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of strangers: what they may pass, and what they make us wait for (base/stall.h).
 */
#ifndef BASE_WATCHED_H
#define BASE_WATCHED_H

#include <stdbool.h>

struct bufferevent;

/* Has a stranger's socket refuse descriptors. True where the kernel cannot do so: then what is
 * read of it is to be watched. Sockets of other kinds than unix cannot pass any. */
bool watched_refuse(int socket);

/* The same for the socket of a bufferevent, which has it already and keeps it. Where it must be,
 * each read is watched: stall_waited(), in the callbacks of the bufferevent and of its input,
 * tells whether this read made us wait. */
void watched_buffers(struct bufferevent *bev);

/* Says whose doing it was; stall_waited() was true. who: one word; of: a tenant. */
void watched_log(const char *who, const char *of);

#endif
