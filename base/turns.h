/* SPDX-License-Identifier: Apache-2.0 */
/* Guards a loop of libevent: tells stall.h when it rests and when its turns begin.
 *
 * Version 2.1 has no callback around its wait for events (2.2 has: evwatch). So this file has an
 * epoll_wait() and a poll() of its own, which the linker uses instead of the C library's,
 * for libevent too, in programs that use turns.h. They do the same, and say so. Whether libevent
 * really calls them is tried before the loop begins.
 */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H

struct event_base;

/* Guards the calling thread, which will run this loop; it has no event yet. slow is stall_guard's.
 * 0 or -errno;
 * -ENOTSUP: libevent waits by a function that is not seen from here. */
int turns_guard(struct event_base *base, void (*slow)(unsigned int milliseconds));

#endif
