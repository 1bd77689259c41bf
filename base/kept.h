/* SPDX-License-Identifier: Apache-2.0 */
/* Things that are kept for an owner, with bounds for their number, their bytes and their time.
 *
 * The user of this module puts a struct kept into its own structure, as the first member, and
 * gives a function that drops one. To make room, things that their owner has seen are dropped
 * first, then others; the oldest first, and never a thing that is in use.
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
	TAILQ_ENTRY(kept) link;
	struct kept_store *store;	/* NULL: it is in none */
	const void *owner;
	struct event *late;
	/* Set by the user of this module. */
	size_t charge;			/* bytes */
	bool in_use;			/* it is not dropped to make room */
	bool seen;			/* it is dropped before those that are not */
};

TAILQ_HEAD(kept_list, kept);

struct kept_store {
	struct kept_list list;		/* the oldest first */
	void (*drop)(struct kept *kept);	/* calls kept_remove */
};

#define KEPT_STORE(name, drop_it) \
	{ .list = TAILQ_HEAD_INITIALIZER((name).list), .drop = (drop_it) }

void kept_store_init(struct kept_store *store, void (*drop)(struct kept *kept));

/* Adds it as the newest. owner: compared only. */
void kept_add(struct kept_store *store, struct kept *kept, const void *owner,
	      struct event_base *base);

/* Removes it; fine if it is in no store. */
void kept_remove(struct kept *kept);

/* Drops it after this many seconds from now, even if it is in use. */
void kept_expire(struct kept *kept, uint64_t seconds);

/* Drops things of owner, but not latest (NULL: any), until they are at most number and take at most
 * bytes. False: the things that cannot be dropped exceed these bounds. */
bool kept_make_room(struct kept_store *store, const void *owner, const struct kept *latest,
		    uint64_t number, uint64_t bytes);

/* Counts the things of owner; NULL: of all owners. */
void kept_count(const struct kept_store *store, const void *owner, unsigned int *in_use_r,
		unsigned int *others_r);

#endif
