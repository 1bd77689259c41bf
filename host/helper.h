/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers: processes that are forked from the supervisor and then run on their own. They are the
 * launcher, the directory helper, the usage helper, the file helper and the fork servers. Each has
 * one socket to the supervisor.
 *
 * They are forked at start-up, before a client's first byte is read, so they hold no data of a
 * client. The supervisor's fence (fence.h) allows no fork later. So a helper that is lost is made
 * again by a fork server (forker.h), which was forked at start-up too.
 */
#ifndef HOST_HELPER_H
#define HOST_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "proto/message.h"

struct event;
struct event_base;
struct frame;
struct frame_reader;

/* What the helpers of one kind do, in the forked process: arg is that of helper_plan, and socket
 * blocks. Does not return. */
typedef void helper_live_fn(const void *arg, int socket, pid_t supervisor);

/* Sets what the helpers of this kind do from now on. arg has to live as long as the process. */
void helper_plan(enum helper_kind kind, helper_live_fn *live, const void *arg);

/* The supervisor's side of a helper. Zeroed except for -1: there is none. */
struct helper {
	enum helper_kind kind;
	pid_t pid;		/* 0: none */
	int pidfd, socket;	/* -1: none */
	TAILQ_ENTRY(helper) link;	/* of all that exist; pid is not 0 */
	/* of forker.c: */
	bool away;			/* from helper_renew to helper_is_back */
	TAILQ_ENTRY(helper) waiting;	/* for a fork server */
	bool waits;
	struct event *due;		/* for the next try; NULL: it was never lost */
	unsigned int tries;		/* since the last one that lived long enough */
	uint64_t made_ms;
	bool stands;			/* it was stopped by a signal when it was looked at last */
	void (*on_made)(void *arg);
	void *arg;
};

/* Forks a helper. The supervisor's end of its socket does not block. 0 or -errno; after both the
 * caller has to call helper_end. In the helper it does not return. */
int helper_fork(struct helper *helper, enum helper_kind kind);

/* Kills the helper, waits for its end (at most three seconds, or a moment when the one before has
 * not ended: then it is logged, and left to end by itself) and closes what belongs to it. Not for
 * the loop. */
void helper_end(struct helper *helper);

/* As helper_end, but does not wait: the process is reaped from the loop. */
void helper_drop(struct helper *helper, struct event_base *base);

/* Waits for the ends of all helpers that were dropped, and lets go of the leases. */
void helper_reap_all(void);

/* Waits for the helper's next message, no longer than until. 1; -ETIMEDOUT; or another -errno. */
int helper_await(const struct helper *helper, struct frame_reader *reader, uint64_t until_ms,
		 struct frame *frame_r);

/* Is this process a helper, or was it one and is not reaped yet? */
bool helper_is_one(pid_t pid);

/* Has a signal stopped this process, which must be a child of this one? */
bool helper_is_stopped(int pidfd);

/* Called each second: kills a helper that has been stopped by a signal since the last call. Its
 * owner sees its socket end, and has it made again. */
void helpers_look_after(void);

/* ---- what operators see ---- */

/* One word, as in the log: "usage". Static. */
const char *helper_name(enum helper_kind kind);

/* What does not work while a helper of this kind is away: a sentence. Static. */
const char *helper_without(enum helper_kind kind);

struct helper_state {
	unsigned int up;	/* processes of this kind */
	unsigned int away;	/* that were lost, and do not work again yet */
	uint64_t lost;		/* how many were lost since the start */
};

struct helper_state helper_state(enum helper_kind kind);

/* ---- for fork servers ---- */

/* Counts the helper as lost, or as working again. */
void helper_set_away(struct helper *helper, bool away);

/* Makes the two ends of a socket for a helper of this kind: the supervisor's, which does not block,
 * and the helper's. 0 or -errno. */
int helper_pair(enum helper_kind kind, int pair_r[2]);

/* In the forked process: does what is planned for this kind. */
_Noreturn void helper_live(enum helper_kind kind, int socket, pid_t supervisor);

/* Takes over a process that a fork server has made. */
void helper_took(struct helper *helper, pid_t pid, int pidfd, int socket);

/* ---- in the helper, and in what the launcher starts ---- */

/* Gives all signals their default action, and blocks none. */
void helper_reset_signals(void);

/* Makes the fork a process of its own: default signals (SIGPIPE and SIGXFSZ ignored), its own
 * session and name, not dumpable, no core, killed when the supervisor ends. Its standard input is
 * /dev/null and its standard output is standard error, because with --stdio these descriptors
 * belong to a client. 0 or -errno. */
int helper_settle(const char *name, pid_t supervisor);

/* As helper_keep, of the socket, which becomes number 3. 0 or -errno. */
int helper_keep_only(int *socket);

/* Closes every descriptor but the first three, those n and the one by which the process counts as
 * one of its kind. 0 or -errno. */
int helper_keep(const int *fd, size_t n);

/* Ends the helper. error: the result of its loop. -EPIPE and -ECONNRESET are the normal end: the
 * supervisor has ended, which closes its socket. Any other error is logged; event is the name of
 * the log line. */
_Noreturn void helper_exit(const char *event, int error);

#endif
