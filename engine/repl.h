/* Sessions: a worker that is leased for good and keeps its interpreter from one execution
 * to the next, which then is a cell (struct execution_request has where it runs).
 *
 * A session has snapshots, numbered from 0. A snapshot holds a state of the interpreter, in a
 * forked process that waits. A cell runs in a copy of its snapshot's state: when it ends by
 * itself (an exception and sys.exit included) the copy takes the snapshot; when it is killed,
 * crashes or leaves by os._exit the snapshot is as it was before. Snapshot 0 is there from the
 * start; the others are made by copying: a checkpoint is a copy in which no cell runs,
 * restoring is copying it back, a branch is a copy in which cells run. Files are
 * the session's and belong to no snapshot: nothing takes back what was written to them.
 *
 * One cell or copy at a time happens in a session; others wait in the order of asking.
 * Processes that a cell has started end with it.
 *
 * Runs in the supervisor; nothing here blocks, nothing calls back from within a call.
 */
#ifndef ENGINE_REPL_H
#define ENGINE_REPL_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/limits.h"
#include "proto/message.h"

struct engine;
struct mounting;
struct repl;
struct tenant;
struct why;

/* REPL_SNAPSHOTS_MAX (proto/message.h): snapshots of a session, 0 included. */

struct repl_watcher {
	/* It ended without repl_close: its worker could not be made, crashed or was ended.
	 * Comes once, after the outcomes of its cells; text is one sentence for people. The
	 * repl is still to be closed, and takes no cells any more. */
	void (*on_end)(void *arg, const char *text);
	void *arg;
};

struct repl_options {
	const char *profile;		/* NULL: the default one */
	/* memory_bytes bounds the whole session: all its snapshots and the cell that runs. The
	 * others are not looked at: cells have their own. */
	struct limits limits;
	unsigned int sessions_max;	/* that the tenant may have with this one */
	const char *environment;	/* mounted before its first cell; NULL: none */
};

/* Starts a session for a tenant, which is held as long as it lives. Cells may be started
 * at once; they wait until the worker is leased. 0 and *repl_r (the caller's, until
 * repl_close), or with why_r filled -ENOENT or -EACCES for the profile as execution_start,
 * -EDQUOT when the tenant has as many sessions as it may (sessions_max), -ESHUTDOWN. */
int repl_open(struct engine *engine, struct tenant *tenant,
	      const struct repl_options *options, const struct repl_watcher *watcher,
	      struct repl **repl_r, struct why *why_r);

/* Ends it and frees repl. A cell that runs or waits is answered OUTCOME_CANCELLED from a
 * later turn of the loop; copies that wait are not answered. NULL is fine. */
void repl_close(struct repl *repl);

/* Copies the state of one snapshot to another, whose own state, if it has one, is given up. from
 * has to hold one by the time it is the copy's turn. on_copied (may be NULL) is called once: 0;
 * -ENOENT: from holds no state; -EAGAIN: no process could be made, -ENOMEM: to was empty and the
 * session has no memory for one more, with nothing changed; -ESRCH: the session has ended. A
 * snapshot is below REPL_SNAPSHOTS_MAX. */
void repl_copy(struct repl *repl, unsigned int from, unsigned int to,
	       void (*on_copied)(void *arg, int error), void *arg);

/* Gives up the state in a snapshot, in the order of asking too. */
void repl_drop(struct repl *repl, unsigned int snapshot);

/* Does a snapshot hold a state? Of a session that is not yet there snapshot 0 does. A state is lost
 * when its process is killed, which each cell of the session can do to all of them. */
bool repl_holds(const struct repl *repl, unsigned int snapshot);

/* Mounts an environment of the store (engine/keeper.h) in the session, over the one
 * before: from the next cell on its states import from it. mounted is called once from the
 * loop. 0 and *mounting_r (keeper_unwait), or -errno: -EAGAIN when it has no worker yet,
 * -EXDEV when it began before the service was restarted. */
int repl_mount(struct repl *repl, const char *environment,
	       void (*mounted)(void *arg, int error), void *arg,
	       struct mounting **mounting_r);

struct repl_usage {
	bool ended;			/* on_end has come, or is about to */
	bool busy;			/* a cell or a copy runs or waits */
	bool frozen;			/* idle, and the kernel gives it no time */
	uint32_t snapshots;		/* bit n: snapshot n holds a state */
	uint64_t memory_bytes;		/* all of it, now; 0: not known yet */
	uint64_t idle_ms;		/* since the last cell or copy; 0 while busy */
};

/* Costs a few reads of small files, and without a memory controller more the more memory
 * there is: not for every call. */
void repl_usage(struct repl *repl, struct repl_usage *usage_r);

bool repl_is_frozen(const struct repl *repl);

/* A session that has been idle for a second is frozen where there is a cgroup, and thawed
 * by the next cell or copy, without being asked to. */

#endif
