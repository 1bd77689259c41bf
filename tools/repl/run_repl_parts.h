/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a call of run_repl, for its modules: run_repl.c has the start of the call and its
 * turn, run_repl_begin.c the steps before the cell, run_repl_cell.c the cell and the end of the
 * call.
 */
#ifndef TOOLS_REPL_RUN_REPL_PARTS_H
#define TOOLS_REPL_RUN_REPL_PARTS_H

#include "tools/packages/found.h"
#include "tools/repl/run_repl.h"
#include "tools/script/script_input.h"
#include "tools/script/script_tools.h"
#include "tools/sets/set.h"

struct needs;
struct outcome_copy;

/* A refusal, with the job's handle. */
#define REPL_BUSY_WITH_JOB "nothing was run: the session is busy with job %s. Wait for it with the " \
			   "tool job, cancel it there, or begin another session"

enum step {
	STEP_TURN,		/* waits for its turn */
	STEP_NEEDS,		/* packages for a new session are found or installed */
	STEP_COPY,		/* restores or branches */
	STEP_LOOK,		/* lists the variables, for calls that come while the cell runs */
	STEP_CELL,
	STEP_CHECKPOINT,
	STEP_FILES,		/* files are copied, for a checkpoint or a branch, or restored */
};

struct tool_run {
	struct tool_host host;
	json_t *json;			/* arguments borrows from it */
	struct run_script_arguments arguments;
	struct limits limits;
	enum step step;
	struct repl_turn turn;		/* in the session that the call works in */
	struct repl_turn source;	/* in the session that this one is a branch of */
	struct needs *needs;		/* STEP_NEEDS */
	char environment[SET_NAME + 1];	/* the result of STEP_NEEDS; "": none */
	json_t *packages;		/* the packages in environment */
	bool *over;			/* if not NULL: *over is set when the run is freed */
	bool began;			/* the call has begun the session, whose handle is known to
					 * no other call yet */
	bool orphan;			/* the client of the call is gone */
	struct execution *execution;	/* STEP_LOOK, STEP_CELL, STEP_FILES */
	struct script_input input;
	struct script_tools tools;
	struct found found;
	uint64_t had_memory;		/* the memory limit of the session before the call raised
					 * it; 0: the call has not raised it */
	int checkpoint;			/* the snapshot for the checkpoint; -1: none */
	unsigned int from;		/* the snapshot that is restored */
	const char *files_left;		/* why a branch or a restore has not got its files; NULL: it
					 * has, or there are none to get */
	const char *files_unkept;	/* why the checkpoint has no files */
	int checkpoint_error;		/* why the checkpoint could not be made; 0: no error */
	struct outcome_copy *outcome;	/* of the cell, from STEP_CHECKPOINT on */
	struct outcome_copy *seen;	/* the result of STEP_LOOK */
	uint32_t waited_ms;		/* how long it has waited for its turn */
	struct event *patience;		/* until a call that waits is refused; NULL: it does not
					 * wait */
	uint64_t waits_since_ms;
	bool impatient;			/* its execution was cancelled because it has waited
					 * too long */
};

/* ---- run_repl.c ---- */

/* A turn with the callbacks of the run. */
struct repl_turn repl_run_turn(struct tool_run *run);

/* If the call waits, tells the client what for, and sees to it that the call does not wait for
 * long. */
void repl_run_say_wait(struct tool_run *run);

/* Ends the run, because it would have to wait too long for other calls. */
void repl_run_refuse_busy(struct tool_run *run);

/* Does the call only close the session? */
bool repl_run_only_closes(const struct run_script_arguments *arguments);

/* ---- run_repl_begin.c ---- */

/* Does the first step of a call that has its turn. */
void repl_run_begin(struct tool_run *run);

/* Begins a session once its packages are known. This may be at once, so the run may have ended when
 * the function returns. 0, or -errno with why_r. */
int repl_run_begin_with_needs(struct tool_run *run, const char *profile, struct why *why_r);

/* ---- run_repl_cell.c ---- */

/* Starts the cell, or what comes before it. 0, or -errno with why_r: nothing runs. */
int repl_run_cell(struct tool_run *run, struct why *why_r);

/* As repl_run_cell, but an error ends the run with a refusal. */
void repl_run_cell_or_refuse(struct tool_run *run);

/* Ends the run by closing its session; nothing is run. */
void repl_run_close(struct tool_run *run);

/* Ends the run after its cell, when its checkpoint was made or has failed. */
void repl_run_finish(struct tool_run *run, const struct outcome *outcome);

/* Ends the run, because nothing can be run. reason: a status of tools/shared/reasons.h; text: a
 * sentence. */
void repl_run_refuse(struct tool_run *run, const char *reason, const char *text);
const char *repl_run_reason(int error);		/* the reason that belongs to a -errno */

/* Leaves the turns of the call. closes: the session is closed, too; this is needed for a new
 * session whose handle no client gets. used: as for repl_session_leave. */
void repl_run_leave(struct tool_run *run, bool closes, bool used);
void repl_run_free(struct tool_run *run);

/* Keeps the files with the checkpoint that was made, then ends the run. */
void repl_run_keep_files(struct tool_run *run);

/* Copies files in a session, as the order says (worker/checkpoints.py); done gets the outcome.
 * 0, or -errno with why_r. */
int repl_run_copy_files(struct tool_run *run, const struct repl_session *session,
			const char *order,
			void (*done)(void *arg, const struct outcome *outcome), struct why *why_r);

/* Why such a copy was not made, as the end of a sentence; NULL: it was made. */
const char *repl_run_files_left(const struct outcome *outcome);

/* Says what has become of the files, if that is not what a checkpoint promises. */
void repl_run_tell_files(const struct tool_run *run, struct repl_told *told);

#endif
