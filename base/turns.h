/* SPDX-License-Identifier: Apache-2.0 */
/* Guards a loop of libevent: tells stall.h when it rests and when its turns begin.
 *
 * Version 2.1 has no callback around its wait for events (2.2 has: evwatch). So turns.c defines
 * epoll_wait() and poll(), which the linker uses in place of the C library's functions, for
 * libevent too, in programs that use turns.h. They do the same and call stall.h. Before the loop
 * begins, turns_guard() tests whether libevent really calls them.
 */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H

struct event_base;

/* Guards the calling thread, which will run this loop; it has no event yet. slow is stall_guard's.
 * 0 or -errno; -ENOTSUP: libevent waits in some other function. */
int turns_guard(struct event_base *base, void (*slow)(unsigned int milliseconds));

#endif
