/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of run_repl: their handles, tenants, number, lifetimes and turns.
 *
 * A session of run_repl has a handle, and a head: a snapshot of a session of the engine
 * (engine/repl.h), in which its cells run. Its checkpoints are other snapshots of the same session
 * of the engine, and so are the heads of its branches. So several handles may share a session of
 * the engine, with its memory limit and its files. Sessions are closed when they are old or idle
 * ([repl] in the configuration), or when their session of the engine ends.
 *
 * Calls with the same handle work one at a time, in the order in which they came: each waits for
 * its turn. While a call has the turn, neither another call nor the session's age closes the
 * session. But an operator can close it (repl_session_stop), and it ends with its session of the
 * engine.
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
#include "engine/repl.h"
#include "policy/limits.h"

struct event;
struct event_base;
struct outcome;
struct repl;
struct repl_account;
struct repl_session;
struct tenant;
struct tool_host;

#define REPL_WAITING_MAX 8	/* calls of one session that wait for their turn */
#define REPL_NAME_MAX 64	/* bytes of a checkpoint's name */

/* The installed packages that a session has. Functions that keep them make a copy. */
struct repl_packages {
	const char *environment;	/* of the store */
	const json_t *set;		/* tools/sets/set.h */
};

/* A call that waits for its turn or has it. Zero it, then set the callbacks and arg. */
struct repl_turn {
	TAILQ_ENTRY(repl_turn) link;
	struct repl_session *session;	/* NULL: the call neither waits nor has the turn */
	bool closes;			/* the call waits in order to close the session */
	void (*on_turn)(void *arg);	/* the call has the turn now; called once, from a later turn
					 * of the loop */
	/* The session has ended; text is a sentence about it. Called in place of on_turn, or after
	 * it. The session is freed when this returns. Copies that the call has asked for with this
	 * arg (repl_copy) are not reported to it any more. */
	void (*on_gone)(void *arg, const char *text);
	/* This call has the turn, and another call waits to close the session: long work should end
	 * now. The turn may be left from within. May be NULL; may be called again. */
	void (*on_hurry)(void *arg);
	const char *job;		/* if the call is a job: the job's handle, borrowed;
					 * otherwise NULL */
	/* While this call waits, the variables before the call that has the turn have become known.
	 * The turn may not be left from within. May be NULL. */
	void (*on_seen)(void *arg);
	bool looks;			/* the call has the turn, and lists the variables first */
	const struct outcome *seen;	/* set by repl_session_show; NULL: unknown */
	void *arg;
};

/* ---- a session: written by the files of repl_sessions_parts.h alone ---- */

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

/* ---- the start, turns and the end ---- */

/* How a session begins. */
struct repl_first {
	bool alone;			/* it makes no copies, and so has no checkpoints and
					 * branches */
	const char *code;		/* of its first cell, borrowed during the call */
	size_t code_len;
};

/* Makes a session of the host's tenant; turn gets the first turn at once. profile: as in struct
 * repl_options. packages: mounted before the first cell; NULL: none. 0 and *session_r. Or, with
 * why_r, -ENOSPC: the tenant has too many sessions; or an error of repl_open. */
int repl_session_new(const struct tool_host *host, const char *profile,
		     const struct limits *limits, const struct repl_packages *packages,
		     const struct repl_first *first, struct repl_turn *turn,
		     struct repl_session **session_r, struct why *why_r);

/* The tenant's session with this handle. NULL: there is none; a handle of another tenant gives
 * NULL, too. */
struct repl_session *repl_session_find(const struct tenant *tenant, const char *handle);

/* Why the tenant's session with this handle has ended. NULL: it has not ended, or the reason is not
 * known. */
const char *repl_session_end_text(const struct tenant *tenant, const char *handle);

/* Makes a call wait for its turn. 0, or -EBUSY: too many calls wait. */
int repl_session_enter(struct repl_session *session, struct repl_turn *turn);

/* The number of calls that come before a call that waits for its turn. The call that has the turn
 * counts, too. *job_r: the job that the first of them is; NULL: it is none. */
size_t repl_session_before(const struct repl_turn *turn, const char **job_r);

/* Makes the session's variables before the call that has the turn, borrowed from that call, known
 * to the calls that wait. */
void repl_session_show(struct repl_turn *turn, const struct outcome *seen);

/* A call that wants to see the variables came while another one had the turn: the next cell is to
 * have them listed before. The second one returns that, and forgets it. */
void repl_session_watch(struct repl_session *session);
bool repl_session_was_watched(struct repl_session *session);

/* The session's variables before the call that has the turn, as they were listed then, and its job
 * (NULL: it is none). NULL: no call has the turn, or they were not listed. */
const struct outcome *repl_session_seen(const struct repl_session *session, const char **job_r);

/* Does the call that has the turn list the variables now, before it begins? */
bool repl_session_will_show(const struct repl_session *session);

/* How long, in seconds, a call has the turn. */
unsigned int repl_session_held_s(const struct repl_session *session);

/* The job that has the turn in another session with the same session of the engine, such as a
 * branch of this one. NULL: there is none. */
const char *repl_session_other_job(const struct repl_session *session);

/* Makes a call wait for its turn in order to close the session. It goes before all calls that wait.
 * on_hurry of the call that has the turn is called. */
void repl_session_enter_to_close(struct repl_session *session, struct repl_turn *turn);

/* Does a call wait to close the session? */
bool repl_session_is_closing(const struct repl_session *session);

/* Leaves the turn, which the next call gets, or stops waiting for it. used: the call counts as use
 * of the session. Does nothing if turn->session is NULL. */
void repl_session_leave(struct repl_turn *turn, bool used);

/* ---- only for the call that has the turn ---- */

/* Moves the turn from one call to the other. */
void repl_session_move_turn(struct repl_turn *from, struct repl_turn *to);

/* Makes a branch: another handle for the same session of the engine, with a head that holds no
 * state yet. The caller copies a state into it. turn gets the first turn of the branch at once. 0,
 * or -ENOSPC with why_r. */
int repl_session_branch(struct repl_session *session, const struct tool_host *host,
			struct repl_turn *turn, struct repl_session **branch_r,
			struct why *why_r);

/* Resets the session: the handle stays, and everything else is new. Arguments and result: as in
 * repl_session_new; profile, limits and packages may be those that the session has. After a failure
 * there may be no session of the engine behind the handle (its origin is NULL), which then can
 * only be closed. */
int repl_session_reset(struct repl_session *session, const struct tool_host *host,
		       const char *profile, const struct limits *limits,
		       const struct repl_packages *packages, const struct repl_first *first,
		       struct why *why_r);

/* Raises the memory limit of the session and its branches. 0, or with why_r -ENOSPC: the tenant's
 * sessions may not have so much together; or an error of repl_raise. */
int repl_session_raise(struct repl_session *session, const struct tool_host *host,
		       uint64_t memory_bytes, struct why *why_r);

/* Closes the session, and ends the turn. on_gone of this turn is not called. */
void repl_session_close(struct repl_turn *turn);

/* The snapshot of a checkpoint, or -ENOENT. */
int repl_session_checkpoint(struct repl_session *session, const char *name);

/* Reserves a snapshot for a checkpoint. If there is a checkpoint of this name, its snapshot is
 * reserved again. Returns the snapshot, or -ENOSPC with why_r: the session of the engine has
 * no free snapshot. */
int repl_session_reserve(struct repl_session *session, const char *name, struct why *why_r);

/* Makes a reserved snapshot the checkpoint of this name. */
void repl_session_keep(struct repl_session *session, const char *name, unsigned int snapshot);

/* Frees a reserved snapshot that did not become a checkpoint. */
void repl_session_unreserve(struct repl_session *session, unsigned int snapshot);

/* Counts a cell, and returns its number. An empty cell is not counted: the next one has its number.
 */
unsigned int repl_session_number_cell(struct repl_session *session, bool is_empty);

/* ---- the properties of a session ---- */

bool repl_session_is_alone(const struct repl_session *session);
/* The packages of a session and of its branches, borrowed. NULL: none. */
const struct repl_packages *repl_session_packages(const struct repl_session *session);
/* To be called when these packages were mounted. */
void repl_session_set_packages(struct repl_session *session,
			       const struct repl_packages *packages);
/* The name of the i-th checkpoint, in the order in which they were made, without those whose state
 * is lost; NULL: there are no more. */
const char *repl_session_checkpoint_name(const struct repl_session *session, size_t i);
/* Does its head hold a state? It does not if the state was lost, or if a state was not yet copied
 * into a branch. */
bool repl_session_has_state(const struct repl_session *session);
/* The time when it will be closed if it is not used before: "2026-01-31T12:00:00Z". */
#define REPL_TIME_MAX 32
void repl_session_expires(const struct repl_session *session, char text_r[REPL_TIME_MAX]);
/* Sets a sentence for the next answer, about a call whose client had left. */
void repl_session_set_note(struct repl_session *session, const char *text);

struct repl_session_info {
	const char *handle, *profile;
	unsigned int cells;
	bool busy, frozen;
	bool runs_on;			/* threads or processes of earlier cells still run */
	bool kept;			/* it has outlived a restart of the service */
	uint64_t memory_bytes;		/* of the session of the engine, with all branches; 0: not
					 * known */
	uint64_t snapshot_bytes;	/* the part of memory_bytes that is used only by the copy
					 * that waits for the next cell; 0: not known */
	uint64_t memory_limit;
	uint64_t age_ms, idle_ms;
	char expires[REPL_TIME_MAX];
};

/* The tenant's session after this one, oldest first. after NULL: the first one. NULL: no more. */
struct repl_session *repl_session_next(const struct tenant *tenant,
				       const struct repl_session *after);

/* Describes a session. Each call reads numbers from the kernel. */
void repl_session_look(const struct repl_session *session, struct repl_session_info *info_r);

/* As repl_session_look, but without memory_bytes, and without reading from the kernel. */
void repl_session_glance(const struct repl_session *session, struct repl_session_info *info_r);

/* Closes a session. Calls that have or wait for its turn get on_gone with text, except for the call
 * that closes it. */
void repl_session_stop(struct repl_session *session, const char *text);

/* Closes all sessions. To be called when the program ends. */
void repl_sessions_close_all(void);

#endif
