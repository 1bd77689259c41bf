/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that outlive the supervisor. A supervisor that ends describes the sessions that have
 * come to rest (engine_keep_sessions) and gives their descriptors away. The next supervisor adopts
 * them. supervisor/handover.c passes the descriptions and the descriptors on.
 *
 * In a session at rest, init has stopped every other process and waits on its control socket. The
 * session ends when that socket is closed, so a session that is not adopted leaves nothing behind.
 */
#ifndef ENGINE_REPL_KEEP_H
#define ENGINE_REPL_KEEP_H

#include "engine/repl.h"
#include "proto/message.h"

enum repl_fd {
	REPL_FD_INIT,		/* a pidfd */
	REPL_FD_CONTROL,
	REPL_FD_STDOUT,
	REPL_FD_STDERR,
	REPL_FDS
};

/* The properties that all kept sessions share; strings are static. */
void engine_describe(const struct engine *engine, struct msg_handover *handover_r);

/* May this engine adopt such sessions? 0, or -EINVAL with why_r. */
int engine_admits(const struct engine *engine, const struct msg_handover *handover,
		  struct why *why_r);

/* Fills in the session's properties, and fd_r (borrowed; -1: none). 0, or -EBUSY with why_r: the
 * session cannot be kept. */
int repl_describe(struct repl *repl, struct msg_kept *kept_r, int fd_r[REPL_FDS],
		  struct why *why_r);

/* To be called when the session was given away: from now on this process leaves the session's
 * processes and leaf unchanged. The repl has ended, without on_end, and must still be closed. */
void repl_part(struct repl *repl);

/* Adopts a session, before the loop runs for the first time. 0 and *repl_r as in repl_open; then fd
 * belongs to the repl. Or -errno with why_r: the session is not as described; it ends when the
 * caller closes fd. */
int repl_adopt(struct engine *engine, const struct msg_kept *kept, const int fd[REPL_FDS],
	       const struct repl_watcher *watcher, struct repl **repl_r, struct why *why_r);

/* The tenant of a session. */
struct tenant *repl_tenant(const struct repl *repl);

/* To be called after the last repl_adopt. New workers get serials above last_serial, and processes
 * in leaves that belong to no session are killed. */
void engine_adopted_all(struct engine *engine, uint64_t last_serial);

#endif
