/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the sessions of run_repl over from one supervisor to the next: their handles, and the
 * sessions of the engine that these belong to (engine/repl_keep.h).
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

/* The callbacks of repl_sessions_give. session, its texts and fd are borrowed until the sessions
 * are closed. */
struct repl_giving {
	/* Takes a session. 0, or -errno: the session is not kept, and ends. */
	int (*give)(void *arg, const struct handover_session *session, const int fd[REPL_FDS]);
	/* Called for a session that is not kept, with a sentence. */
	void (*lose)(void *arg, const char *principal, const char *handle, const char *text);
	void *arg;
};

/* Gives all sessions that can be kept, and reports the others. The caller closes all of them
 * (repl_sessions_close_all); this does not end those that were given. */
void repl_sessions_give(const struct repl_giving *giving);

/* Adopts one session. 0, and fd belongs to the session; or -errno with why_r: the session ends when
 * the caller closes fd. */
int repl_session_adopt(struct engine *engine, struct event_base *base,
		       const struct config *config, const struct handover_session *session,
		       const int fd[REPL_FDS], struct why *why_r);

#endif
