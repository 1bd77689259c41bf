/* Things that are kept for an owner: a number of them, of so many bytes, for so long.
 *
 * The keeper puts a struct kept into its own structure, as the first member, and says what it means
 * to drop one. Room is made by dropping what its owner has seen, then the rest; of these the oldest
 * first, and never what is in use.
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
	/* The keeper's to set. */
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

/* As the newest. owner: compared only. */
void kept_add(struct kept_store *store, struct kept *kept, const void *owner,
	      struct event_base *base);

/* Takes it out; nothing to do if it is in no store. */
void kept_remove(struct kept *kept);

/* Drops it after so many seconds from now, also while it is in use. */
void kept_expire(struct kept *kept, uint64_t seconds);

/* Drops things of owner, but not latest (NULL: any), until they are at most so many and take at
 * most so many bytes. False: what cannot be dropped is more than that. */
bool kept_make_room(struct kept_store *store, const void *owner, const struct kept *latest,
		    uint64_t number, uint64_t bytes);

/* Those of owner; NULL: of all. */
void kept_count(const struct kept_store *store, const void *owner, unsigned int *in_use_r,
		unsigned int *others_r);

#endif
