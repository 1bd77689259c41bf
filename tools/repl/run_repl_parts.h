/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a call of run_repl, for its modules: run_repl.c has its start and its turn,
 * run_repl_begin.c the steps before the cell, run_repl_cell.c the cell and the end.
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

enum step {
	STEP_TURN,		/* waits for its turn */
	STEP_NEEDS,		/* packages for a new session are found or installed */
	STEP_COPY,		/* restores or branches */
	STEP_CELL,
	STEP_CHECKPOINT,
};

struct tool_run {
	struct tool_host host;
	json_t *json;			/* what arguments borrow from */
	struct run_script_arguments arguments;
	struct limits limits;
	enum step step;
	struct repl_turn turn;		/* of the session that it works in */
	struct repl_turn source;	/* of the session that this one is copied from */
	struct needs *needs;		/* STEP_NEEDS */
	char environment[SET_NAME + 1];	/* the result of STEP_NEEDS; "": none */
	json_t *packages;		/* which are in it */
	bool *over;			/* not NULL: set when the run is freed */
	bool began;			/* this call has begun the session: no other call knows its
					 * handle yet */
	bool orphan;			/* its client is gone */
	struct execution *execution;	/* STEP_CELL */
	struct script_input input;
	struct script_tools tools;
	struct found found;
	int checkpoint;			/* its snapshot; -1: none */
	int checkpoint_error;		/* why it could not be made; 0: not tried */
	struct outcome_copy *outcome;	/* STEP_CHECKPOINT */
};

/* ---- run_repl.c ---- */

/* The turn's callbacks to the run. */
struct repl_turn repl_run_turn(struct tool_run *run);

/* Does the call only close the session? */
bool repl_run_only_closes(const struct run_script_arguments *arguments);

/* ---- run_repl_begin.c ---- */

/* The call has its turn: does the first step. */
void repl_run_begin(struct tool_run *run);

/* Begins a session when its packages are there, which may be at once: the run may have ended after
 * this. 0, or negative with why_r. */
int repl_run_begin_with_needs(struct tool_run *run, const char *profile, struct why *why_r);

/* ---- run_repl_cell.c ---- */

/* Starts the cell. 0, or negative with why_r: then nothing runs. */
int repl_run_cell(struct tool_run *run, struct why *why_r);

/* Ends the run by closing its session; nothing is run. */
void repl_run_close(struct tool_run *run);

/* Ends the run after its cell, when its checkpoint was made or has failed. */
void repl_run_finish(struct tool_run *run, const struct outcome *outcome);

/* Ends the run: nothing was run, with a reason (run_script.h) and a sentence. */
void repl_run_refuse(struct tool_run *run, const char *reason, const char *text);
const char *repl_run_reason(int error);		/* of an error of what was called */

/* Leaves its sessions. A new session, whose handle no client will get, is closed. */
void repl_run_leave(struct tool_run *run, bool closes, bool used);
void repl_run_free(struct tool_run *run);

#endif
