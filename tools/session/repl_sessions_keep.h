/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the sessions of run_repl over from one supervisor to the next: handles, and the engine's
 * sessions that they belong to (engine/repl_keep.h).
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

/* The receiver; session, its texts and fd are borrowed until the sessions are closed. */
struct repl_giving {
	/* 0, or -errno: it is not kept, and ends. */
	int (*give)(void *arg, const struct handover_session *session, const int fd[REPL_FDS]);
	/* Called for a session that is not kept, with a sentence. */
	void (*lose)(void *arg, const char *principal, const char *handle, const char *text);
	void *arg;
};

/* Gives all sessions that can be given, and reports the others. Close the given ones too
 * (repl_sessions_close_all): this does not end them any more. */
void repl_sessions_give(const struct repl_giving *giving);

/* Adopts one session. 0, and fd belongs to it; or -errno with why_r: it ends when the caller closes
 * fd. */
int repl_session_adopt(struct engine *engine, struct event_base *base,
		       const struct config *config, const struct handover_session *session,
		       const int fd[REPL_FDS], struct why *why_r);

#endif
