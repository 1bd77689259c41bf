/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: any process with a loop.   Owns: the timers of kept things. */
#include "base/kept.h"

#include <stdlib.h>

#include <event2/event.h>

#include "base/fair.h"
#include "base/xalloc.h"

#define KEPT_PART 16		/* of the machine's memory */

static size_t
kept_bucket_of(const void *owner)
{
	return (size_t)(((uintptr_t)owner >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
	       KEPT_BUCKETS;
}

static struct kept_owner *
kept_find_owner(const struct kept_store *store, const void *owner)
{
	struct kept_owner *one;

	LIST_FOREACH(one, &store->owners[kept_bucket_of(owner)], link)
		if (one->owner == owner)
			break;
	return one;
}

struct kept *
kept_first(const struct kept_store *store, const void *owner)
{
	const struct kept_owner *one = kept_find_owner(store, owner);

	return one ? TAILQ_FIRST(&one->list) : NULL;
}

void
kept_store_init(struct kept_store *store, void (*drop)(struct kept *kept))
{
	*store = (struct kept_store){ .drop = drop };
	TAILQ_INIT(&store->list);
}

static void
kept_on_late(evutil_socket_t, short, void *arg)
{
	struct kept *kept = arg;

	kept->store->drop(kept);
}

static void
kept_count_bytes(struct kept *kept, uint64_t added)
{
	kept->store->bytes += added;
	kept->place->bytes += added;
}

void
kept_charge(struct kept *kept, size_t bytes)
{
	kept_count_bytes(kept, (uint64_t)bytes - kept->charge);
	kept->charge = bytes;
}

void
kept_add(struct kept_store *store, struct kept *kept, const void *owner, struct event_base *base)
{
	struct kept_owner *one = kept_find_owner(store, owner);

	if (!one) {
		one = xcalloc(1, sizeof(*one));
		one->owner = owner;
		TAILQ_INIT(&one->list);
		LIST_INSERT_HEAD(&store->owners[kept_bucket_of(owner)], one, link);
	}
	kept->store = store;
	kept->owner = owner;
	kept->place = one;
	kept->late = xalloc_check(evtimer_new(base, kept_on_late, kept));
	one->n++;
	kept_count_bytes(kept, kept->charge);
	TAILQ_INSERT_TAIL(&store->list, kept, link);
	TAILQ_INSERT_TAIL(&one->list, kept, of_owner);
}

void
kept_remove(struct kept *kept)
{
	if (!kept->store)
		return;
	kept_count_bytes(kept, -(uint64_t)kept->charge);
	kept->place->n--;
	TAILQ_REMOVE(&kept->store->list, kept, link);
	TAILQ_REMOVE(&kept->place->list, kept, of_owner);
	if (TAILQ_EMPTY(&kept->place->list)) {
		LIST_REMOVE(kept->place, link);
		free(kept->place);
	}
	kept->place = NULL;
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

	KEPT_FOREACH(kept, store, owner) {
		if (kept->in_use || kept == latest)
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
	const struct kept_owner *one = kept_find_owner(store, owner);
	uint64_t sum = one ? one->bytes : 0, n = one ? one->n : 0;
	uint64_t share = fair_bytes(fair_memory(KEPT_PART), store->bytes, sum);
	struct kept *kept;

	if (bytes > share)
		bytes = share;
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
	if (owner) {
		KEPT_FOREACH(kept, store, owner)
			++*(kept->in_use ? in_use_r : others_r);
	} else {
		TAILQ_FOREACH(kept, &store->list, link)
			++*(kept->in_use ? in_use_r : others_r);
	}
}
