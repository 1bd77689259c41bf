/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: a worker that is leased for as long as the session lives, and keeps its interpreter
 * from one execution to the next. An execution in a session is a cell (struct execution_request).
 *
 * A session has snapshots, numbered from 0. A snapshot holds a state of the interpreter in a
 * process. Its cells run in that process. While a cell runs, a copy of the process waits. If the
 * cell ends by itself, also by an exception or sys.exit, the copy ends. If the cell is killed,
 * crashes or calls os._exit, the copy becomes the snapshot's process, so the state is as before the
 * cell. Snapshot 0 exists from the start; the others are made by copying: a checkpoint is a copy in
 * which no cell runs, a restore copies it back, and a branch is a copy in which cells run. Files
 * belong to the session, not to a snapshot: a rollback does not undo writes to them.
 *
 * A session does one cell or copy at a time; others wait in the order of the calls. Threads and
 * processes that a cell has started continue during the next cells of its snapshot. Between cells
 * they continue if the cell's request allows it. They end when a cell is undone, or when the
 * state's process ends between cells. Copies do not have them.
 *
 * Runs in the supervisor. No function blocks, and none calls back from within.
 */
#ifndef ENGINE_REPL_H
#define ENGINE_REPL_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/limits.h"
#include "proto/message.h"

struct engine;
struct execution;
struct mounting;
struct repl;
struct tenant;
struct why;

/* REPL_SNAPSHOTS_MAX (proto/message.h): snapshots of a session, 0 included. */

struct repl_watcher {
	/* The session has ended without repl_close: its worker could not be made, crashed or was
	 * ended. Called once, after the outcomes of its cells; text is one sentence for people. The
	 * repl accepts no more cells, and must still be closed. */
	void (*on_end)(void *arg, const char *text);
	void *arg;
};

struct repl_options {
	const char *profile;		/* NULL: the default one */
	/* memory_bytes is the limit of the whole session: all its snapshots and the running cell.
	 * The other limits are not used: each cell has its own. */
	struct limits limits;
	uint64_t memory_max;		/* the most that repl_raise may be asked for; 0:
					 * limits.memory_bytes */
	uint32_t pids_max;		/* the most that a cell may ask for; 0: limits.pids */
	unsigned int sessions_max;	/* of the tenant, this one included */
	const char *environment;	/* mounted before its first cell; NULL: none */
	const char *code;		/* of its first cell, to choose its worker by (learning.h);
					 * NULL: unknown */
	size_t code_len;
	/* The session makes no copies: a cell that does not end by itself ends the session. The
	 * caller must not ask for a copy (repl_copy, or a cell that inspects). */
	bool alone;
};

/* Starts a session for a tenant, which is held while the session lives. Cells may be started at
 * once; they wait for the worker. 0 and *repl_r, which the caller owns until repl_close. Or fills
 * why_r and returns -ENOENT or -EACCES: the profile, as in execution_start; -EDQUOT: the tenant has
 * sessions_max sessions, or all sessions together have too many workers; -ESHUTDOWN. */
int repl_open(struct engine *engine, struct tenant *tenant,
	      const struct repl_options *options, const struct repl_watcher *watcher,
	      struct repl **repl_r, struct why *why_r);

/* Ends the session and frees repl. A cell that runs or waits is answered OUTCOME_CANCELLED from a
 * later turn of the loop; copies that wait are not answered. NULL is fine. */
void repl_close(struct repl *repl);

/* Raises the memory limit of the session, for all its snapshots, from the next cell or copy on. A
 * lower limit changes nothing. 0; or -ERANGE with why_r: no controller counts memory, and the hard
 * limit of its processes, which was set when it began (memory_max), is lower. */
int repl_raise(struct repl *repl, uint64_t memory_bytes, struct why *why_r);

/* Copies the state of the snapshot "from" to the snapshot "to", and drops the state that "to" held.
 * "from" must hold a state when the copy's turn comes. on_copied (may be NULL) is called once with
 * 0; -ENOENT: "from" holds no state; -EAGAIN: no process could be made; -ENOMEM: "to" was empty and
 * the session has no memory for one more state; -ESRCH: the session has ended. After an error
 * nothing has changed. Both are below REPL_SNAPSHOTS_MAX. */
void repl_copy(struct repl *repl, unsigned int from, unsigned int to,
	       void (*on_copied)(void *arg, int error), void *arg);

/* Copies go on, but on_copied is not called any more with this arg. */
void repl_forget(struct repl *repl, const void *arg);

/* Drops the state in a snapshot, after the cells and copies that were asked for before. */
void repl_drop(struct repl *repl, unsigned int snapshot);

/* Does a snapshot hold a state? In a session that is still starting, snapshot 0 does. A state is
 * lost when its process is killed, which each cell of the session can do. */
bool repl_holds(const struct repl *repl, unsigned int snapshot);

/* Mounts an environment of the store (engine/keeper.h) in the session, over the earlier one. From
 * the next cell on, cells import from it. mounted is called once from the loop, with 0 or a
 * positive errno. 0 and *mounting_r (for keeper_unwait), or -errno: -EAGAIN: the session has no
 * worker yet; -EXDEV: the session began before the service was restarted. */
int repl_mount(struct repl *repl, const char *environment,
	       void (*mounted)(void *arg, int error), void *arg,
	       struct mounting **mounting_r);

/* Does a cell run in the session, other than this one? NULL: any cell. */
bool repl_runs_other(const struct repl *repl, const struct execution *cell);

struct repl_usage {
	bool ended;			/* on_end was called, or will be soon */
	bool busy;			/* a cell or a copy runs or waits */
	bool frozen;			/* idle, and frozen by the kernel */
	uint32_t snapshots;		/* bit n: snapshot n holds a state */
	uint64_t memory_bytes;		/* the session's whole memory, now; 0: not known yet */
	uint64_t spare_bytes;		/* the part of memory_bytes that only the waiting copy has,
					 * when last measured; 0: not known yet */
	uint64_t idle_ms;		/* since the last cell or copy; 0 while busy */
};

/* Measures the session. With a memory controller this reads a few small files; without one it costs
 * more, the more memory the session has. So do not call it for every request. */
void repl_usage(struct repl *repl, struct repl_usage *usage_r);

/* Is the session frozen? If there is a cgroup, a session is frozen after a second without use, and
 * thawed by the next cell or copy. */
bool repl_is_frozen(const struct repl *repl);

/* Do threads or processes that earlier cells have started run now, while no cell runs? */
bool repl_runs_on(const struct repl *repl);

#endif
