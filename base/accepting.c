/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: one timer for each listening socket. */
#include "base/accepting.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"

#define PAUSE_MS 250
#define RESERVE_MAX 256
#define RESERVE_PART 8		/* of the limit */

static const struct timeval pause_time = { .tv_usec = PAUSE_MS * 1000 };

/* A new descriptor has the lowest free number. */
static bool
is_short(const struct accepting *a)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return errno == EMFILE;
	close(fd);
	return accepting_is_reserved(a, fd);
}

static void
on_again(evutil_socket_t, short, void *arg)
{
	struct accepting *a = arg;

	if (is_short(a))
		evtimer_add(a->again, &pause_time);
	else
		a->resume(a->arg);
}

void
accepting_init(struct accepting *a, struct event_base *base, void (*resume)(void *arg), void *arg,
	       bool reserve)
{
	struct rlimit limit;
	rlim_t part;

	a->again = xalloc_check(evtimer_new(base, on_again, a));
	a->resume = resume;
	a->arg = arg;
	a->reserve_from = INT_MAX;
	if (!reserve || getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
		return;
	part = limit.rlim_cur / RESERVE_PART;
	a->reserve_from = (int)(limit.rlim_cur - (part < RESERVE_MAX ? part : RESERVE_MAX));
}

bool
accepting_is_reserved(const struct accepting *a, int fd)
{
	return fd >= a->reserve_from;
}

void
accepting_pause(struct accepting *a, int error)
{
	log_line(LOG_WARNING, "accept-waits", "err=%s", strerrorname_np(error));
	evtimer_add(a->again, &pause_time);
}

bool
accepting_is_paused(const struct accepting *a)
{
	return evtimer_pending(a->again, NULL);
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
