/* Sessions that outlive the supervisor: one that ends describes those that have come to rest
 * (engine_keep_sessions), and gives their descriptors away; the next one adopts them. How both
 * reach it is the business of supervisor/handover.c.
 *
 * A session at rest: its init has stopped every other process in it, and waits on its control
 * socket. It ends when that is closed, so one that is not adopted leaves nothing behind.
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

/* What all of them have in common; strings are static. */
void engine_describe(const struct engine *engine, struct msg_handover *handover_r);

/* May this engine adopt such sessions? 0, or -EINVAL with why_r. */
int engine_admits(const struct engine *engine, const struct msg_handover *handover,
		  struct why *why_r);

/* Fills in what the engine knows of the session, and fd_r (borrowed; -1: none). 0, or -EBUSY with
 * why_r: it cannot be kept. */
int repl_describe(struct repl *repl, struct msg_kept *kept_r, int fd_r[REPL_FDS],
		  struct why *why_r);

/* It has been given away: its processes are left alone from now on, and its leaf is left where it
 * is. The repl has ended, without on_end, and is still to be closed. */
void repl_part(struct repl *repl);

/* Takes one over, before the loop runs for the first time. 0 and *repl_r as of repl_open, and
 * fd belongs to it; or -errno with why_r: something is not as was described, and when the caller
 * closes fd what there is of the session ends. */
int repl_adopt(struct engine *engine, const struct msg_kept *kept, const int fd[REPL_FDS],
	       const struct repl_watcher *watcher, struct repl **repl_r, struct why *why_r);

/* Whose it is. */
struct tenant *repl_tenant(const struct repl *repl);

/* After the last one: workers' serials go on behind last_serial, and what is in leaves of nobody's
 * is ended. */
void engine_adopted_all(struct engine *engine, uint64_t last_serial);

#endif
