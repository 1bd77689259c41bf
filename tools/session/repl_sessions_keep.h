/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of run_repl as they are handed over from one supervisor to the next: handles with
 * what is behind them (engine/repl_keep.h).
 */
#ifndef TOOLS_SESSION_REPL_SESSIONS_KEEP_H
#define TOOLS_SESSION_REPL_SESSIONS_KEEP_H

#include <stddef.h>

#include "engine/repl_keep.h"
#include "tools/session/handover_table.h"

struct config;
struct engine;
struct event_base;
struct why;

/* Who gets them; session and fd, and the texts in it, are borrowed until the sessions are
 * closed. */
struct repl_giving {
	/* 0, or -errno: it is not kept, and ends as others do. */
	int (*give)(void *arg, const struct handover_session *session, const int fd[REPL_FDS]);
	/* One that is not kept, with a sentence. */
	void (*lose)(void *arg, const char *principal, const char *handle, const char *text);
	void *arg;
};

/* Gives all that can be given, and tells of the others. Those that were given are to be closed
 * still (repl_sessions_close_all), which does nothing to them any more. */
void repl_sessions_give(const struct repl_giving *giving);

/* Takes one. 0, and fd belongs to it; or -errno with why_r, and what there is of it ends when the
 * caller closes fd. */
int repl_session_adopt(struct engine *engine, struct event_base *base,
		       const struct config *config, const struct handover_session *session,
		       const int fd[REPL_FDS], struct why *why_r);

#endif
