/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: two timers of the loop. When the loop hangs, the keep-alive
 * messages stop, and systemd restarts the service. */
#include "base/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/xalloc.h"

#define STATUS_EVERY_S 5

struct notify {
	void (*describe)(void *arg, char *text, size_t size);
	void *arg;
	struct event *watchdog, *status;	/* NULL: not requested */
	char last[NOTIFY_STATUS_MAX];
};

int
notify_say(const char *state)
{
	int r;

	do
		r = sd_notify(0, state);
	while (r == -EINTR);
	return r;
}

static void
on_watchdog(evutil_socket_t, short, void *)
{
	notify_say("WATCHDOG=1");
}

static void
on_status(evutil_socket_t, short, void *arg)
{
	struct notify *n = arg;
	char now[NOTIFY_STATUS_MAX], state[sizeof("STATUS=") + NOTIFY_STATUS_MAX];

	n->describe(n->arg, now, sizeof(now));
	if (strcmp(now, n->last) == 0)
		return;
	strcpy(n->last, now);
	snprintf(state, sizeof(state), "STATUS=%s", now);
	notify_say(state);
}

static struct event *
notify_every(struct loop *loop, uint64_t usec, event_callback_fn on_time, struct notify *n)
{
	struct timeval wait = { .tv_sec = (time_t)(usec / 1000000),
				.tv_usec = (suseconds_t)(usec % 1000000) };
	struct event *event = event_new(loop_base(loop), -1, EV_PERSIST, on_time, n);

	xalloc_check(event);
	evtimer_add(event, &wait);
	return event;
}

struct notify *
notify_new(struct loop *loop, void (*describe)(void *arg, char *text, size_t size),
	   void *arg)
{
	struct notify *n = xcalloc(1, sizeof(*n));
	uint64_t usec;

	n->describe = describe;
	n->arg = arg;
	if (sd_watchdog_enabled(0, &usec) > 0)
		n->watchdog = notify_every(loop, usec / 3, on_watchdog, n);
	if (getenv("NOTIFY_SOCKET"))
		n->status = notify_every(loop, STATUS_EVERY_S * 1000000, on_status, n);
	return n;
}

void
notify_ready(struct notify *n)
{
	notify_say("READY=1");
	if (n->status)
		on_status(-1, 0, n);
}

void
notify_reloading(struct notify *)
{
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_us());
	notify_say(state);
}

void
notify_stopping(struct notify *n)
{
	if (n->status)
		event_del(n->status);
	notify_say("STOPPING=1\nSTATUS=Stopping: answering what is in flight.");
}

void
notify_free(struct notify *n)
{
	if (!n)
		return;
	if (n->watchdog)
		event_free(n->watchdog);
	if (n->status)
		event_free(n->status);
	free(n);
}
