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
