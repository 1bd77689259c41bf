/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, the egress proxy and the client of other servers, whose loops are
 *          libevent's.
 * Owns:    epoll_ctl(2), epoll_wait(2), poll(2) and close(2) of these programs; registrations that
 *          wait. */
#undef _FORTIFY_SOURCE		/* otherwise poll() is an inline function already */
#include "base/turns.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/stall.h"

#define WAITING_MAX 256
#define AGAIN_MS 10

static _Thread_local unsigned long turns;

/* Registrations that the kernel had no memory for. There is one loop, in one thread. */
static struct waiting {
	int epoll, fd;
	struct epoll_event event;
} waiting[WAITING_MAX];
static size_t n_waiting;

/* ---- registrations ---- */

static int
control(int epoll, int op, int fd, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, epoll, op, fd, event);
}

static struct waiting *
find_waiting(int epoll, int fd)
{
	for (size_t i = 0; i < n_waiting; i++)
		if (waiting[i].epoll == epoll && waiting[i].fd == fd)
			return &waiting[i];
	return NULL;
}

static void
drop_waiting(struct waiting *w)
{
	*w = waiting[--n_waiting];
}

/* libevent does not repeat a registration that has failed, and not all of its own callers look at
 * the result. The events would never come, so the registration is repeated here. */
int
epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	struct waiting *w = find_waiting(epoll, fd);

	if (w && op == EPOLL_CTL_DEL) {
		drop_waiting(w);
		control(epoll, op, fd, event);	/* an earlier one, which was to be changed */
		return 0;
	}
	if (w) {
		w->event = *event;
		return 0;
	}
	if (control(epoll, op, fd, event) == 0)
		return 0;
	if (op == EPOLL_CTL_DEL || (errno != ENOMEM && errno != ENOSPC) ||
	    n_waiting == WAITING_MAX)
		return -1;
	log_line(LOG_WARNING, "events-wait", "err=%s", strerrorname_np(errno));
	waiting[n_waiting++] = (struct waiting){ epoll, fd, *event };
	return 0;
}

/* Repeats the registrations that wait. Those of a descriptor that was closed are dropped. */
static void
repeat_waiting(void)
{
	for (size_t i = n_waiting; i-- > 0;) {
		struct waiting *w = &waiting[i];
		int r = control(w->epoll, EPOLL_CTL_ADD, w->fd, &w->event);

		if (r < 0 && errno == EEXIST)
			r = control(w->epoll, EPOLL_CTL_MOD, w->fd, &w->event);
		if (r == 0 || (errno != ENOMEM && errno != ENOSPC))
			drop_waiting(w);
	}
}

/* ---- turns ---- */

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

	if (n_waiting > 0)
		repeat_waiting();
	if (n_waiting > 0 && (timeout_ms < 0 || timeout_ms > AGAIN_MS))
		timeout_ms = AGAIN_MS;
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

/* Unread descriptors of strangers are closed with their socket, mostly by libevent. */
int
close(int fd)
{
	int r;

	stall_close(true);
	r = (int)syscall(SYS_close, fd);
	stall_close(false);
	return r;
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
