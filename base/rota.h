/* SPDX-License-Identifier: Apache-2.0 */
/* A rota does long pieces of work one at a time. A turn of the loop has at most one piece, and
 * tenants alternate.
 *
 * A piece is an entry, and a tenant is its owner. Entries of one owner are called in the order in
 * which they began to wait. A long queue of one owner delays the entries of another owner by one
 * piece, and all other events by one piece. After a turn with a piece comes one without: a request
 * that is read there is answered at the beginning of the next turn, before the next piece.
 */
#ifndef BASE_ROTA_H
#define BASE_ROTA_H

#include <stdbool.h>
#include <sys/queue.h>

struct event_base;
struct rota;
struct rota_owner;

/* Part of the object that waits. The object sets on_turn and arg; the rest starts as zero. */
struct rota_entry {
	TAILQ_ENTRY(rota_entry) link;
	struct rota_owner *owner;	/* NULL: it does not wait */
	void (*on_turn)(void *arg);
	void *arg;
};

/* The base is borrowed, and outlives the rota. Aborts when out of memory. */
struct rota *rota_new(struct event_base *base);

/* No entry may wait any more. NULL is fine. */
void rota_free(struct rota *rota);

/* Calls entry->on_turn once, in a later turn of the loop. The entry must not wait already. owner
 * is a principal, and is copied. on_turn may let its entry wait again. */
void rota_wait(struct rota *rota, struct rota_entry *entry, const char *owner);

/* The entry stops waiting, and is not called. Does nothing if the entry does not wait. */
void rota_forget(struct rota_entry *entry);

bool rota_waits(const struct rota_entry *entry);

#endif
