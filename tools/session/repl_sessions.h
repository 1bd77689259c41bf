/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of run_repl by their handles: their tenants, number, lifetimes and turns.
 *
 * A handle is a head: a snapshot of an engine's session (engine/repl.h) in which its cells run. Its
 * checkpoints are other snapshots of the same one, and so are the heads of its branches; so several
 * handles may share an engine's session, its memory limit and its files. Handles are closed when
 * they are old or idle ([repl] in the configuration), or with their engine's session.
 *
 * Calls with one handle work one at a time, in the order in which they came: each has a turn. While
 * a call has the turn the session can end, but cannot be closed.
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

/* A call that waits for its turn or has it. Zero it, then set the callbacks and arg. */
struct repl_turn {
	TAILQ_ENTRY(repl_turn) link;
	struct repl_session *session;	/* NULL: it neither waits nor has the turn */
	bool closes;			/* it waits in order to close the session */
	void (*on_turn)(void *arg);	/* from a later turn of the loop, once */
	/* The session has ended; text is a sentence about it. Called in place of on_turn, or after
	 * it. The session is freed when this returns. */
	void (*on_gone)(void *arg, const char *text);
	/* It has the turn, and another call waits to close the session: long work should end now,
	 * and the turn may be left. May be NULL; may be called again. */
	void (*on_hurry)(void *arg);
	void *arg;
};

/* Makes a session of the host's tenant; turn gets the first turn at once. profile: as for the
 * engine. packages: mounted before its first cell; NULL: none. alone: it has no snapshots, and so
 * no checkpoints and branches. 0 and *session_r; or with why_r filled -ENOSPC: a cap is reached, or
 * an error of repl_open. */
int repl_session_new(const struct tool_host *host, const char *profile,
		     const struct limits *limits, const struct repl_packages *packages,
		     bool alone, struct repl_turn *turn, struct repl_session **session_r,
		     struct why *why_r);

/* NULL: there is no session of this handle, or it belongs to another tenant; the two cases are not
 * distinguished. */
struct repl_session *repl_session_find(const struct tenant *tenant, const char *handle);

/* Why the tenant's session of this handle has ended. NULL: that is not known, or it has not. */
const char *repl_session_end_text(const struct tenant *tenant, const char *handle);

/* Waits for a turn. 0, or -EBUSY: too many wait. */
int repl_session_enter(struct repl_session *session, struct repl_turn *turn);

/* Waits for a turn to close the session: only the call that has the turn comes before it, and gets
 * on_hurry. */
void repl_session_enter_to_close(struct repl_session *session, struct repl_turn *turn);
bool repl_session_is_closing(const struct repl_session *session);

/* Leaves the turn, or stops waiting for it; the next call gets it. used: counts as use of the
 * session. Does nothing if the session is NULL. */
void repl_session_leave(struct repl_turn *turn, bool used);

/* ---- with the turn ---- */

/* Moves the turn from one call to the other. */
void repl_session_move_turn(struct repl_turn *from, struct repl_turn *to);

/* Makes another handle for the same engine's session, with a head that holds no state yet; the
 * caller copies one. turn gets its first turn at once. 0, or -ENOSPC with why_r. */
int repl_session_branch(struct repl_session *session, const struct tool_host *host,
			struct repl_turn *turn, struct repl_session **branch_r,
			struct why *why_r);

/* Resets the session: the handle stays, and everything else is new. As repl_session_new. After a
 * failure it may be without a session of the engine, and can only be closed. profile, limits and
 * packages may be those that it has. */
int repl_session_reset(struct repl_session *session, const struct tool_host *host,
		       const char *profile, const struct limits *limits,
		       const struct repl_packages *packages, bool alone, struct why *why_r);

bool repl_session_is_open(const struct repl_session *session);

/* Closes the session, and ends the turn without on_gone. */
void repl_session_close(struct repl_turn *turn);

/* The snapshot of a checkpoint, or -ENOENT. */
int repl_session_checkpoint(struct repl_session *session, const char *name);

/* Reserves a snapshot for a checkpoint, which may be that of an older one of this name. -ENOSPC
 * with why_r: the engine's session has no free snapshot. The checkpoint gets its name when it is
 * kept. */
int repl_session_reserve(struct repl_session *session, const char *name, struct why *why_r);
void repl_session_keep(struct repl_session *session, const char *name, unsigned int snapshot);
/* Frees a reserved snapshot that was not kept. */
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
/* Its packages, which are also those of its branches. NULL: none. Borrowed. */
const struct repl_packages *repl_session_packages(const struct repl_session *session);
/* To be called when these packages were mounted. */
void repl_session_set_packages(struct repl_session *session,
			       const struct repl_packages *packages);
/* The name of the i-th checkpoint, in the order in which they were made, without those whose state
 * is lost; NULL: there are no more. */
const char *repl_session_checkpoint_name(const struct repl_session *session, size_t i);
/* Does its head hold a state? Not if it was lost, and in a branch not before the copy. */
bool repl_session_has_state(const struct repl_session *session);
/* The time when it is closed unless it is used before: "2026-01-31T12:00:00Z". */
#define REPL_TIME_MAX 32
void repl_session_expires(const struct repl_session *session, char text_r[REPL_TIME_MAX]);
/* Sets a sentence for the next answer, about a call whose client did not wait. */
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

/* The tenant's sessions, oldest first. Each call reads numbers from the kernel. */
struct repl_session *repl_session_next(const struct tenant *tenant,
				       const struct repl_session *after);
void repl_session_look(const struct repl_session *session, struct repl_session_info *info_r);

/* The same without memory_bytes, and without reading from the kernel. */
void repl_session_glance(const struct repl_session *session, struct repl_session_info *info_r);

/* Closes it for somebody who is not its client: calls of it are told with text. */
void repl_session_stop(struct repl_session *session, const char *text);

/* Closes all: when the program ends. */
void repl_sessions_close_all(void);

#endif
