/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * A bufferevent reads before it calls its user. To watch the read, this file replaces the
 * callback of the read event. */
#include "base/watched.h"

#include <errno.h>
#include <string.h>

#include <event2/bufferevent.h>
#include <event2/bufferevent_struct.h>
#include <event2/event.h>

#include "base/log.h"
#include "base/passrights.h"
#include "base/stall.h"

static event_callback_fn read_of_libevent;	/* the same for all bufferevents of sockets */

bool
watched_refuse(int socket)
{
	int r = passrights_set(socket, false);

	return r < 0 && r != -EOPNOTSUPP;
}

static void
on_watched_read(evutil_socket_t fd, short what, void *bev)
{
	stall_watch();
	read_of_libevent(fd, what, bev);
	stall_waited();		/* a delay before this read is not the next peer's fault */
}

void
watched_buffers(struct bufferevent *bev)
{
	struct event *event = &bev->ev_read;
	struct event_base *base;
	event_callback_fn callback;
	evutil_socket_t fd;
	short events;
	bool listens;
	void *arg;

	if (!watched_refuse((int)bufferevent_getfd(bev)))
		return;
	event_get_assignment(event, &base, &fd, &events, &callback, &arg);
	/* The libevent in use has another bufferevent layout: reads are not watched. */
	if (arg != bev || fd != bufferevent_getfd(bev))
		return;
	listens = event_pending(event, EV_READ, NULL);
	event_del(event);
	read_of_libevent = callback;
	event_assign(event, base, fd, events, on_watched_read, arg);
	if (listens)
		event_add(event, NULL);
}

void
watched_log(const char *who, const char *of)
{
	struct log_quoted quoted;

	log_line(LOG_WARNING, "peer-stalled", "who=%s tenant=%s", who,
		 log_quote(&quoted, of, strlen(of)));
}
