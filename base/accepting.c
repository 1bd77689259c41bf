/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: one timer for each listening socket. */
#include "base/accepting.h"

#include <string.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"

#define PAUSE_MS 250

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct accepting *a = arg;

	(void)fd;
	(void)what;
	a->resume(a->arg);
}

void
accepting_init(struct accepting *a, struct event_base *base, void (*resume)(void *arg), void *arg)
{
	a->again = xalloc_check(evtimer_new(base, on_again, a));
	a->resume = resume;
	a->arg = arg;
}

void
accepting_pause(struct accepting *a, int error)
{
	static const struct timeval wait = { .tv_usec = PAUSE_MS * 1000 };

	log_line(LOG_WARNING, "accept-waits", "err=%s", strerrorname_np(error));
	evtimer_add(a->again, &wait);
}

void
accepting_stop(struct accepting *a)
{
	event_del(a->again);
}

void
accepting_free(struct accepting *a)
{
	event_free(a->again);
}
