/* SPDX-License-Identifier: Apache-2.0 */
/* The tool run_repl: cells in sessions that keep their state (tools/session/repl_sessions.h).
 *
 * A call waits for its turn, and then does the requested steps, in this order: a reset, or a copy
 * of a state (restore, branch); the cell; a copy for a checkpoint; the end of the session.
 * run_repl_answer.c describes the session in the answer; run_repl_parts.h lists the other files.
 */
#ifndef TOOLS_REPL_RUN_REPL_H
#define TOOLS_REPL_RUN_REPL_H

#include <stdbool.h>

#include "engine/execution.h"
#include "engine/repl.h"
#include "tools/script/run_script.h"
#include "tools/session/repl_sessions.h"

extern const struct tool run_repl_tool;

/* The part of an answer about the session. It is a copy, because the session may be gone when the
 * answer is given. */
struct repl_told {
	char handle[HANDLE_MAX + 1];	/* "": the session has ended */
	char expires[REPL_TIME_MAX];
	const char *state;		/* NULL: the state was not changed */
	char text[1024];		/* sentences for the client; "": none */
	char checkpoint[REPL_SNAPSHOTS_MAX][REPL_NAME_MAX + 1];
	size_t n_checkpoints;
	bool changes;			/* the call has begun, reset or copied the session: the text
					 * has its handle and its checkpoints */
	uint32_t text_tokens;		/* tokens of run_script_answer */
	const struct outcome *outcome;	/* its notes are part of the answer; NULL: none */
};

/* Describes the current state of a session. session may be NULL. */
void repl_tell(const struct repl_session *session, struct repl_told *told_r);

/* Adds a sentence to told->text. */
void repl_tell_more(struct repl_told *told, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Describes the effect of a cell on the state. */
void repl_tell_outcome(const struct outcome *outcome, struct repl_told *told);

/* As run_script_answer, run_script_refuse_as and run_script_answer_job, with the part about the
 * session. */
void run_repl_answer(const struct outcome *outcome, struct repl_told *told,
		     const struct tool_host *host);
void run_repl_refuse(const char *reason, const char *text, const struct repl_told *told,
		     const struct tool_host *host);
/* waits, told: may be NULL. */
void run_repl_answer_job(const char *job, const char *waits, bool begun,
			 const struct repl_told *told,
			 const struct tool_host *host);

#endif
