/* SPDX-License-Identifier: Apache-2.0 */
/* A rota: a list of long pieces of work, which are done one at a time. A turn of the event loop
 * does at most one piece, and tenants alternate.
 *
 * A piece is an entry, and a tenant is its owner. Entries of one owner are called in the order in
 * which they began to wait. However long the queue of one owner is, it delays an entry of another
 * owner, or any other event, only by one piece. After a turn with a piece comes a turn without one.
 * A request that is read in the turn without a piece is answered at the beginning of the next turn,
 * before that turn's piece.
 */
#ifndef BASE_ROTA_H
#define BASE_ROTA_H

#include <stdbool.h>
#include <sys/queue.h>

struct event_base;
struct rota;
struct rota_owner;

/* An entry, embedded in the object that waits. The object sets on_turn and arg; all else begins as
 * zero. */
struct rota_entry {
	TAILQ_ENTRY(rota_entry) link;
	struct rota_owner *owner;	/* NULL: it does not wait */
	void (*on_turn)(void *arg);
	void *arg;
};

/* Makes a rota. base is borrowed, and must outlive it. Aborts when out of memory. */
struct rota *rota_new(struct event_base *base);

/* Frees a rota. No entry may wait. NULL is fine. */
void rota_free(struct rota *rota);

/* Calls entry->on_turn once, in a later turn of the loop. The entry must not wait already. owner
 * is a principal, and is copied. on_turn may let its entry wait again. */
void rota_wait(struct rota *rota, struct rota_entry *entry, const char *owner);

/* Makes an entry stop waiting: it is not called. Does nothing if the entry does not wait. */
void rota_forget(struct rota_entry *entry);

bool rota_waits(const struct rota_entry *entry);

#endif
