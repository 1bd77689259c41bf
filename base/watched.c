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

#include "base/hash.h"
#include "base/log.h"
#include "base/passrights.h"
#include "base/stall.h"
#include "base/xalloc.h"

#define SUSPECTS 8		/* tenants that are excused at a time */

static event_callback_fn read_of_libevent;	/* the same for all bufferevents of sockets */

/* The tenants whose reads have waited in the last seconds, by the hashes of their names. */
static struct suspect {
	uint64_t tenant;
	struct stall_debt debt;
} suspects[SUSPECTS], no_excuse;
static struct suspect *watched;		/* whose read is watched */

static uint64_t *tenant_of;		/* of the sockets of bufferevents, by descriptor */
static size_t n_tenants;

bool
watched_refuse(int socket)
{
	int r = passrights_set(socket, false);

	if (r == -ENOPROTOOPT)
		stall_hurry();
	return r < 0 && r != -EOPNOTSUPP;
}

/* Many tenants together would have many excuses. If there are too many suspects, the next ones have
 * none. */
static struct suspect *
suspect_of(uint64_t tenant)
{
	struct suspect *empty = NULL;

	for (struct suspect *s = suspects; s < suspects + SUSPECTS; s++) {
		if (!stall_is_in_debt(&s->debt))
			empty = s;
		else if (s->tenant == tenant)
			return s;
	}
	if (!empty) {
		stall_owe(&no_excuse.debt);
		return &no_excuse;
	}
	*empty = (struct suspect){ .tenant = tenant };
	return empty;
}

static void
watch(uint64_t tenant)
{
	watched = suspect_of(tenant);
	stall_watch(&watched->debt);
}

void
watched_begin(const char *tenant)
{
	watch(hash_text(HASH_BEGIN, tenant));
}

static void
on_watched_read(evutil_socket_t fd, short what, void *bev)
{
	watch(tenant_of[fd]);
	read_of_libevent(fd, what, bev);
	stall_waited(&watched->debt);	/* nobody has asked */
}

static void
tenant_note(size_t fd, const char *tenant)
{
	if (fd >= n_tenants) {
		tenant_of = xrealloc(tenant_of, (fd + 1) * sizeof(*tenant_of));
		n_tenants = fd + 1;
	}
	tenant_of[fd] = hash_text(HASH_BEGIN, tenant);
}

void
watched_buffers(struct bufferevent *bev, const char *tenant)
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
	tenant_note((size_t)fd, tenant);
	listens = event_pending(event, EV_READ, NULL);
	event_del(event);
	read_of_libevent = callback;
	event_assign(event, base, fd, events, on_watched_read, arg);
	if (listens)
		event_add(event, NULL);
}

bool
watched_stalled(const char *who, const char *tenant)
{
	bool is_suspect = watched && stall_is_in_debt(&watched->debt);
	enum stall waited = watched ? stall_waited(&watched->debt) : STALL_NONE;
	struct log_quoted quoted;

	if (waited == STALL_PROVEN || (waited == STALL_EXCUSED && !is_suspect))
		log_line(LOG_WARNING, waited == STALL_PROVEN ? "peer-stalled" : "peer-suspected",
			 "who=%s tenant=%s", who, log_quote(&quoted, tenant, strlen(tenant)));
	return waited == STALL_PROVEN;
}
