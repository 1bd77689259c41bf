/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: any process with a loop.   Owns: the timers of kept things. */
#include "base/kept.h"

#include <event2/event.h>

#include "base/xalloc.h"

void
kept_store_init(struct kept_store *store, void (*drop)(struct kept *kept))
{
	TAILQ_INIT(&store->list);
	store->drop = drop;
}

static void
kept_on_late(evutil_socket_t fd, short what, void *arg)
{
	struct kept *kept = arg;

	(void)fd;
	(void)what;
	kept->store->drop(kept);
}

void
kept_add(struct kept_store *store, struct kept *kept, const void *owner, struct event_base *base)
{
	kept->store = store;
	kept->owner = owner;
	kept->late = xalloc_check(evtimer_new(base, kept_on_late, kept));
	TAILQ_INSERT_TAIL(&store->list, kept, link);
}

void
kept_remove(struct kept *kept)
{
	if (!kept->store)
		return;
	TAILQ_REMOVE(&kept->store->list, kept, link);
	event_free(kept->late);
	kept->store = NULL;
}

void
kept_expire(struct kept *kept, uint64_t seconds)
{
	const struct timeval wait = { .tv_sec = (time_t)seconds };

	evtimer_add(kept->late, &wait);
}

static struct kept *
kept_dispensable(const struct kept_store *store, const void *owner, const struct kept *latest)
{
	struct kept *kept, *oldest = NULL;

	TAILQ_FOREACH(kept, &store->list, link) {
		if (kept->owner != owner || kept->in_use || kept == latest)
			continue;
		if (kept->seen)
			return kept;
		if (!oldest)
			oldest = kept;
	}
	return oldest;
}

bool
kept_make_room(struct kept_store *store, const void *owner, const struct kept *latest,
	       uint64_t number, uint64_t bytes)
{
	struct kept *kept;
	uint64_t sum = 0, n = 0;

	TAILQ_FOREACH(kept, &store->list, link)
		if (kept->owner == owner) {
			n++;
			sum += kept->charge;
		}
	while (n > number || sum > bytes) {
		kept = kept_dispensable(store, owner, latest);
		if (!kept)
			return false;
		n--;
		sum -= kept->charge;
		store->drop(kept);
	}
	return true;
}

void
kept_count(const struct kept_store *store, const void *owner, unsigned int *in_use_r,
	   unsigned int *others_r)
{
	const struct kept *kept;

	*in_use_r = *others_r = 0;
	TAILQ_FOREACH(kept, &store->list, link)
		if (!owner || kept->owner == owner)
			++*(kept->in_use ? in_use_r : others_r);
}
