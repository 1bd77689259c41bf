/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, the egress proxy and the client of other servers, whose loops are
 *          libevent's.
 * Owns:    epoll_wait(2) and poll(2) of these programs. */
#undef _FORTIFY_SOURCE		/* otherwise poll() is an inline function already */
#include "base/turns.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/stall.h"

static _Thread_local unsigned long turns;

static void
begin_turn(void)
{
	turns++;
	stall_turn();
}

int
epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
	int n;

	stall_rest();
	n = (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, NULL, 0);
	begin_turn();
	return n;
}

/* A poll with time-out 0 does not wait, so it does not end the current turn. */
int
poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms)
{
	struct timespec timeout = { .tv_sec = timeout_ms / 1000,
				    .tv_nsec = timeout_ms % 1000 * 1000000L };
	int n;

	if (timeout_ms == 0) {
		turns++;
		do
			n = (int)syscall(SYS_ppoll, fds, n_fds, &timeout, NULL, 0);
		while (n < 0 && errno == EINTR);
		return n;
	}
	stall_rest();
	n = (int)syscall(SYS_ppoll, fds, n_fds, timeout_ms < 0 ? NULL : &timeout, NULL, 0);
	begin_turn();
	return n;
}

int
turns_guard(struct event_base *base, void (*slow)(unsigned int milliseconds))
{
	const unsigned long before = turns;
	int r;

	event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_NO_EXIT_ON_EMPTY);
	r = turns == before ? -ENOTSUP : stall_guard(slow);
	if (r == 0)
		stall_excuse_stops();
	return r;
}
