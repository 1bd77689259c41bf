/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of sessions of run_repl, for their modules: repl_sessions.c has handles, turns and
 * lifetimes; repl_checkpoints.c has the snapshots.
 */
#ifndef TOOLS_SESSION_REPL_SESSIONS_PARTS_H
#define TOOLS_SESSION_REPL_SESSIONS_PARTS_H

#include "engine/repl.h"
#include "tools/session/repl_sessions.h"

struct event;

/* The sessions and origins of a tenant: its calls walk over no other tenant's. It is freed with the
 * last of both. */
struct repl_account {
	char *principal;		/* its name in a tree (base/named.h) */
	size_t n_sessions, n_origins;
	uint64_t memory_bytes;		/* the sum of its origins' limits */
	TAILQ_HEAD(, repl_session) sessions;	/* oldest first */
	TAILQ_HEAD(, ended) ended;		/* sessions that have ended, oldest first */
	size_t n_ended;
};

/* A session of the engine, which the sessions of run_repl with this origin share, and its snapshots
 * in use. */
struct origin {
	LIST_ENTRY(origin) link;
	struct repl *repl;
	struct tenant *tenant;		/* held by repl */
	struct repl_account *account;
	struct limits limits;
	char *profile;			/* NULL: the default one */
	struct repl_packages packages;	/* environment NULL: none */
	bool alone;			/* as in repl_options */
	unsigned int heads;		/* how many sessions of run_repl have this origin */
	uint32_t snapshots;		/* bit n: snapshot n is in use */
	bool kept;			/* it has outlived a restart: an earlier supervisor made it
					 */
};

struct checkpoint {
	char name[REPL_NAME_MAX + 1];
	unsigned int snapshot;
};

struct repl_session {
	char *handle;			/* its name in a tree (base/named.h) */
	TAILQ_ENTRY(repl_session) link;	/* in its account */
	struct origin *origin;		/* NULL: a reset failed, and the session will be closed */
	struct tenant *tenant;
	struct repl_account *account;
	unsigned int snapshot, cells;
	struct checkpoint checkpoint[REPL_SNAPSHOTS_MAX];
	size_t n_checkpoints;
	uint32_t reserved;		/* bit n: snapshot n is for a checkpoint that is being made
					 */
	uint64_t age_ms, idle_ms;	/* how old, and how long idle, it may become */
	uint64_t born_ms, used_ms;
	char *note;
	bool watched;			/* somebody wanted to see it while a call had the turn */
	struct repl_turn *holder;	/* NULL: the turn is free */
	uint64_t held_ms;		/* since when a call has the turn */
	TAILQ_HEAD(, repl_turn) waiting;
	size_t n_waiting;
	struct event *next;		/* gives the turn to the next call */
	struct event *expiry;
};

/* ---- repl_sessions.c ---- */

/* Makes a session with this handle, without an origin or a clock. */
struct repl_session *repl_session_make(struct tenant *tenant, struct event_base *base,
				       const char *handle);

/* Sets the timer that closes the session when it is old or idle. */
void repl_session_set_clock(struct repl_session *session);

/* The sessions of run_repl with this origin, oldest first; after NULL: the first one. */
struct repl_session *repl_session_of(const struct origin *origin,
				     const struct repl_session *after);

/* Adds an origin whose tenant and limits are set. */
void repl_origin_add(struct origin *origin);
struct origin *repl_origin_next(const struct origin *after);	/* NULL: the first one */

/* The on_end of a session of the engine. */
void repl_origin_ended(void *origin, const char *text);

/* ---- repl_checkpoints.c ---- */

/* Takes a free snapshot into use. Returns it, or -ENOSPC. */
int repl_snapshot_take(struct origin *origin);

/* Frees the snapshot and drops its state. */
void repl_snapshot_give(struct origin *origin, unsigned int snapshot);

#endif
