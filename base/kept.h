/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that are kept for an owner, with bounds for their number, their bytes and their time.
 *
 * The user of this module puts a struct kept into its own structure, as the first member, and
 * provides a function that drops an object. To make room, objects that their owner has seen are
 * dropped first, then others; among these the oldest first. An object that is in use is never
 * dropped for that.
 */
#ifndef BASE_KEPT_H
#define BASE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct event;
struct event_base;

struct kept {
	TAILQ_ENTRY(kept) link;		/* in the store's list */
	TAILQ_ENTRY(kept) of_owner;	/* in the owner's list */
	struct kept_store *store;	/* NULL: it is in no store */
	const void *owner;
	struct kept_owner *place;	/* the owner's list */
	struct event *late;
	size_t charge;			/* bytes; changed by kept_charge once it is in a store */
	/* Set by the user of this module. */
	bool in_use;			/* it is not dropped to make room */
	bool seen;			/* it is dropped before objects that were not seen */
};

TAILQ_HEAD(kept_list, kept);

#define KEPT_BUCKETS 256

/* An owner with objects in a store: what one owner keeps costs others no time. */
struct kept_owner {
	LIST_ENTRY(kept_owner) link;
	const void *owner;
	struct kept_list list;		/* the oldest first; not empty */
	uint64_t n, bytes;		/* of its objects */
};

struct kept_store {
	struct kept_list list;		/* of all owners, the oldest first */
	LIST_HEAD(, kept_owner) owners[KEPT_BUCKETS];
	uint64_t bytes;			/* of all owners; each has a share (base/fair.h) */
	void (*drop)(struct kept *kept);	/* calls kept_remove */
};

#define KEPT_STORE(name, drop_it) \
	{ .list = TAILQ_HEAD_INITIALIZER((name).list), .drop = (drop_it) }

void kept_store_init(struct kept_store *store, void (*drop)(struct kept *kept));

/* Adds an object as the newest. owner: an address, which is only compared. */
void kept_add(struct kept_store *store, struct kept *kept, const void *owner,
	      struct event_base *base);

/* The oldest object of owner; NULL: there is none. */
struct kept *kept_first(const struct kept_store *store, const void *owner);

/* Visits the objects of owner, the oldest first. None may be removed meanwhile. */
#define KEPT_FOREACH(kept, store, owner) \
	for ((kept) = kept_first(store, owner); (kept); (kept) = TAILQ_NEXT(kept, of_owner))

/* Sets how many bytes an object in a store has. */
void kept_charge(struct kept *kept, size_t bytes);

/* Removes an object. Does nothing if it is in no store. */
void kept_remove(struct kept *kept);

/* Drops an object after this number of seconds, even if it is in use. */
void kept_expire(struct kept *kept, uint64_t seconds);

/* Drops objects of owner until it has at most number objects, with charges of at most bytes in
 * total, and at most its share of what the store may have: a 16th of the machine's memory. latest
 * is not dropped; NULL: there is none. False: the objects that cannot be dropped exceed these
 * bounds.
 */
bool kept_make_room(struct kept_store *store, const void *owner, const struct kept *latest,
		    uint64_t number, uint64_t bytes);

/* Counts the objects of owner; NULL: of all owners. */
void kept_count(const struct kept_store *store, const void *owner, unsigned int *in_use_r,
		unsigned int *others_r);

#endif
