/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of run_repl by their handles: their tenants, number, lifetimes and turns.
 *
 * A handle is a head: a snapshot of an engine's session (engine/repl.h) in which its cells run.
 * Its checkpoints are other snapshots of the same one, and so are the heads of its branches; so
 * several handles may share an engine's session, its memory limit and its files. Handles are
 * closed when they are old or idle ([repl] in the configuration), or with their engine's
 * session.
 *
 * A handle does one call at a time, in the order of asking. What is done with a handle is
 * done in a turn; while a call has the turn the session can end, but not be closed.
 */
#ifndef TOOLS_SESSION_REPL_SESSIONS_H
#define TOOLS_SESSION_REPL_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <jansson.h>

#include "base/handle.h"
#include "base/why.h"
#include "policy/limits.h"

struct config;
struct engine;
struct event_base;
struct repl;
struct tenant;
struct tool_host;

#define REPL_WAITING_MAX 8	/* calls of one session that wait for their turn */
#define REPL_NAME_MAX 64	/* bytes of a checkpoint's name */

struct repl_session;

/* Installed packages that a session has; copied by the callers that keep them. */
struct repl_packages {
	const char *environment;	/* of the store */
	const json_t *set;		/* tools/sets/set.h */
};

/* Waits for its turn, or has it. Zero it, then set the callbacks and arg. */
struct repl_turn {
	TAILQ_ENTRY(repl_turn) link;
	struct repl_session *session;	/* NULL: it neither waits nor has the turn */
	bool closes;			/* it waits to close the session */
	void (*on_turn)(void *arg);	/* from a later turn of the loop, once */
	/* The session has ended, with a sentence about it; instead of on_turn, or after it.
	 * The session is gone when it returns. */
	void (*on_gone)(void *arg, const char *text);
	/* It has the turn, and the session is to be closed next: what takes long is to end
	 * now, and the turn may be left. May be NULL; may be called again. */
	void (*on_hurry)(void *arg);
	void *arg;
};

/* A new session of the host's tenant, its first turn given to turn at once. profile: as the
 * engine takes it. packages: mounted before its first cell; NULL: none. alone: it has no
 * snapshots, and so no checkpoints and branches. 0 and *session_r, or with why_r filled -ENOSPC
 * when a cap is reached, or what repl_open returns. */
int repl_session_new(const struct tool_host *host, const char *profile,
		     const struct limits *limits, const struct repl_packages *packages,
		     bool alone, struct repl_turn *turn, struct repl_session **session_r,
		     struct why *why_r);

/* NULL: there is none of this handle, or it is another tenant's: the answer is the same. */
struct repl_session *repl_session_find(const struct tenant *tenant, const char *handle);

/* 0, or -EBUSY when too many wait. */
int repl_session_enter(struct repl_session *session, struct repl_turn *turn);

/* To close the session: waits only for the holder of the turn, which is told to hurry. */
void repl_session_enter_to_close(struct repl_session *session, struct repl_turn *turn);
bool repl_session_is_closing(const struct repl_session *session);

/* Leaves the turn, or stops to wait for it; the next one gets it. used: counts as use of the
 * session. Fine if the session is NULL. */
void repl_session_leave(struct repl_turn *turn, bool used);

/* ---- with the turn ---- */

/* Moves the turn: to is filled, and from has none any more. */
void repl_session_move_turn(struct repl_turn *from, struct repl_turn *to);

/* Another handle for the same engine's session, with a head that holds no state yet: it is to
 * be copied there. Its first turn is given to turn at once. 0, or -ENOSPC with why_r. */
int repl_session_branch(struct repl_session *session, const struct tool_host *host,
			struct repl_turn *turn, struct repl_session **branch_r,
			struct why *why_r);

/* The same handle with nothing in it. As repl_session_new; after a failure it may not be
 * open any more, and can only be closed. profile, limits and packages may be its own. */
int repl_session_reset(struct repl_session *session, const struct tool_host *host,
		       const char *profile, const struct limits *limits,
		       const struct repl_packages *packages, bool alone, struct why *why_r);

bool repl_session_is_open(const struct repl_session *session);

/* The session is gone; so is the turn, without on_gone. */
void repl_session_close(struct repl_turn *turn);

/* The snapshot of a checkpoint, or -ENOENT. */
int repl_session_checkpoint(struct repl_session *session, const char *name);

/* A snapshot for a checkpoint, which may be that of an older one of this name. -ENOSPC: the
 * engine's session has no further snapshot; why_r says so. It has no name before it is kept. */
int repl_session_reserve(struct repl_session *session, const char *name, struct why *why_r);
void repl_session_keep(struct repl_session *session, const char *name, unsigned int snapshot);
/* Gives up a reserved snapshot that was not kept. */
void repl_session_unreserve(struct repl_session *session, unsigned int snapshot);

/* The next cell's number. */
unsigned int repl_session_number_cell(struct repl_session *session);

/* ---- what it is ---- */

struct repl *repl_session_repl(const struct repl_session *session);
unsigned int repl_session_snapshot(const struct repl_session *session);
const char *repl_session_handle(const struct repl_session *session);
const char *repl_session_profile(const struct repl_session *session);
const struct limits *repl_session_limits(const struct repl_session *session);
bool repl_session_is_alone(const struct repl_session *session);
/* Its branches have the same. NULL: none. Borrowed. */
const struct repl_packages *repl_session_packages(const struct repl_session *session);
/* These packages were mounted. */
void repl_session_set_packages(struct repl_session *session,
			       const struct repl_packages *packages);
/* The i-th checkpoint's name in the order of their making, of those whose state is there; NULL:
 * no more. */
const char *repl_session_checkpoint_name(const struct repl_session *session, size_t i);
/* Does its head hold a state? Not after it was lost, and in a branch not before the copy. */
bool repl_session_has_state(const struct repl_session *session);
/* When it is closed if it is not used before: "2026-01-31T12:00:00Z". */
#define REPL_TIME_MAX 32
void repl_session_expires(const struct repl_session *session, char text_r[REPL_TIME_MAX]);
/* A sentence that the next answer is to have: of a call whose client did not wait. */
void repl_session_set_note(struct repl_session *session, const char *text);
const char *repl_session_note(const struct repl_session *session);	/* NULL: none */

struct repl_session_info {
	const char *handle, *profile;
	unsigned int cells;
	bool busy, frozen;
	bool kept;			/* over a restart: its interpreter is from before it */
	uint64_t memory_bytes;		/* of the engine's session: its branches' too; 0: not
					 * known */
	uint64_t snapshot_bytes;	/* of it, what the copy that waits costs; 0: not known */
	uint64_t memory_limit;
	uint64_t age_ms, idle_ms;
	char expires[REPL_TIME_MAX];
};

/* The tenant's sessions, oldest first. Each look costs the kernel a little. */
struct repl_session *repl_session_next(const struct tenant *tenant,
				       const struct repl_session *after);
void repl_session_look(const struct repl_session *session, struct repl_session_info *info_r);

/* The same without a cost, and without memory_bytes. */
void repl_session_glance(const struct repl_session *session, struct repl_session_info *info_r);

/* Closes it for somebody who is not its client: calls of it are told with text. */
void repl_session_stop(struct repl_session *session, const char *text);

/* Closes all: when the program ends. */
void repl_sessions_close_all(void);

#endif
