/* SPDX-License-Identifier: Apache-2.0 */
/* Guards a loop of libevent by stall.h: calls stall_rest() and stall_turn() around each wait for
 * events.
 *
 * Version 2.1 of libevent has no callback around its wait (2.2 has one: evwatch). So turns.c
 * defines epoll_wait() and poll(). In programs that use turns.h, the linker uses them in place of
 * the C library's functions, also for libevent. They do the same, and call stall.h. Before the loop
 * begins, turns_guard() tests whether libevent really calls them.
 *
 * It also defines epoll_ctl(): if the kernel has no memory for a registration, or the user has as
 * many as fs.epoll.max_user_watches allows, the registration is repeated until it succeeds. So
 * event_add() of a descriptor does not fail for a cause that passes; up to 256 of them wait.
 */
#ifndef BASE_TURNS_H
#define BASE_TURNS_H

struct event_base;

/* Guards the calling thread, which will run this loop. The loop must have no event yet. slow: as of
 * stall_guard. 0 or -errno; -ENOTSUP: libevent waits in some other function. */
int turns_guard(struct event_base *base, void (*slow)(unsigned int milliseconds));

#endif
