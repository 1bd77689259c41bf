/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the queue of owners. Entries are part of the objects that wait.
 * The event that calls an entry is a timer that is due at once, so that libevent looks for other
 * events before it calls the timer. An event that makes itself active would be called again in the
 * same turn. */
#include "base/rota.h"

#include <assert.h>

#include <event2/event.h>

#include "base/named.h"
#include "base/xalloc.h"

/* Exists while it has an entry. */
struct rota_owner {
	char *name;
	TAILQ_ENTRY(rota_owner) link;
	struct rota *rota;
	TAILQ_HEAD(, rota_entry) entries;
};

struct rota {
	TAILQ_HEAD(, rota_owner) owners;	/* the first one's turn is next */
	void *by_name;
	struct event *event;
	bool rests;				/* a piece was done in the turn before */
};

static void
call_again(struct rota *rota)
{
	static const struct timeval at_once = { 0 };

	if (!TAILQ_EMPTY(&rota->owners) && !evtimer_pending(rota->event, NULL))
		evtimer_add(rota->event, &at_once);
}

static void
rota_on_event(evutil_socket_t, short, void *arg)
{
	struct rota *rota = arg;

	rota->rests = !rota->rests;
	/* All entries may have been forgotten. */
	if (rota->rests && !TAILQ_EMPTY(&rota->owners)) {
		struct rota_owner *owner = TAILQ_FIRST(&rota->owners);
		struct rota_entry *entry = TAILQ_FIRST(&owner->entries);

		TAILQ_REMOVE(&rota->owners, owner, link);
		TAILQ_INSERT_TAIL(&rota->owners, owner, link);
		rota_forget(entry);
		entry->on_turn(entry->arg);
	}
	call_again(rota);
}

struct rota *
rota_new(struct event_base *base)
{
	struct rota *rota = xcalloc(1, sizeof(*rota));

	TAILQ_INIT(&rota->owners);
	rota->event = xalloc_check(evtimer_new(base, rota_on_event, rota));
	return rota;
}

void
rota_free(struct rota *rota)
{
	if (!rota)
		return;
	assert(TAILQ_EMPTY(&rota->owners));
	event_free(rota->event);
	free(rota);
}

static struct rota_owner *
find_owner(struct rota *rota, const char *name)
{
	struct rota_owner *owner = named_find(&rota->by_name, name);

	if (owner)
		return owner;
	owner = xcalloc(1, sizeof(*owner));
	owner->rota = rota;
	owner->name = xstrdup(name);
	TAILQ_INIT(&owner->entries);
	TAILQ_INSERT_TAIL(&rota->owners, owner, link);
	named_add(&rota->by_name, owner);
	return owner;
}

void
rota_wait(struct rota *rota, struct rota_entry *entry, const char *owner)
{
	assert(!entry->owner);
	entry->owner = find_owner(rota, owner);
	TAILQ_INSERT_TAIL(&entry->owner->entries, entry, link);
	call_again(rota);
}

void
rota_forget(struct rota_entry *entry)
{
	struct rota_owner *owner = entry->owner;

	if (!owner)
		return;
	TAILQ_REMOVE(&owner->entries, entry, link);
	entry->owner = NULL;
	if (!TAILQ_EMPTY(&owner->entries))
		return;
	TAILQ_REMOVE(&owner->rota->owners, owner, link);
	named_remove(&owner->rota->by_name, owner);
	free(owner->name);
	free(owner);
}

bool
rota_waits(const struct rota_entry *entry)
{
	return entry->owner != NULL;
}
