/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher: a process that starts zygotes, the keeper, the egress proxy and the client of other
 * servers' tools. The supervisor itself cannot start a process once it serves (fence.h).
 *
 * It is a helper (helper.h), and the only process that keeps the descriptors of the outer namespace
 * and of the programs. The processes that it starts are children of the supervisor (CLONE_PARENT).
 * It has a table of the programs and of the first message to each, so the supervisor can name a
 * program but change nothing about it.
 *
 * A launcher that has ended, or does not answer, is made again (forker.h).
 */
#ifndef HOST_LAUNCHER_H
#define HOST_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "host/outer.h"
#include "policy/config.h"
#include "proto/message.h"

struct event_base;
struct launcher;
struct why;

/* The objects that the launcher uses; all borrowed. */
struct launcher_options {
	const struct config *config;
	const struct outer_namespace *outer;
	int worker_fd;			/* the mcp-python-worker program, O_PATH */
	const int *interpreter_fd;	/* for each profile: its own worker program; -1: worker_fd.
					 * NULL: no profile has its own */
	int keeper_fd;			/* mcp-python-keeper; -1: it is not needed */
	int egress_fd;			/* mcp-python-egress; -1: not installed */
	int tools_fd;			/* mcp-python-tools; -1: no other server is configured */
	bool memory_counted;		/* a controller counts memory */
	/* Called in the launcher for the message LEARN. Reads the configuration again. The caller
	 * releases the result by config_free. NULL: the configuration has mistakes. If read itself
	 * is NULL, LEARN is refused. */
	const struct config *(*read)(void *arg);
	void *read_arg;			/* must not change after launcher_new */
};

/* The descriptors that a launcher needs, as numbers; -1: not needed. How many there are. */
#define LAUNCHER_DESCRIPTORS (CONFIG_PROFILES_MAX + 6)
static inline size_t
launcher_descriptors(const struct launcher_options *options, int fd_r[LAUNCHER_DESCRIPTORS])
{
	size_t n = 0;

	fd_r[n++] = options->outer->user_fd;
	fd_r[n++] = options->outer->mount_fd;
	fd_r[n++] = options->worker_fd;
	fd_r[n++] = options->keeper_fd;
	fd_r[n++] = options->egress_fd;
	fd_r[n++] = options->tools_fd;
	for (size_t i = 0; options->interpreter_fd && i < options->config->n_profiles; i++)
		fd_r[n++] = options->interpreter_fd[i];
	return n;
}

/* Forks the launcher. To be called before a client's first byte is read. 0 or -errno with why_r. */
int launcher_new(const struct launcher_options *options, struct launcher **launcher_r,
		 struct why *why_r);

/* Kills the launcher and waits for its end. NULL is fine. */
void launcher_free(struct launcher *launcher);

/* From now on the launcher is made again when it has ended, has broken its protocol, or has not
 * answered for some seconds. It then learns again what it was told to learn. on_back is called
 * after that; processes that the one before it has made may be unknown. */
void launcher_watch(struct launcher *launcher, struct event_base *base,
		    void (*on_back)(void *arg), void *arg);

pid_t launcher_pid(const struct launcher *launcher);

/* The number of ids of the outer namespace, without id 0. */
uint32_t launcher_slots(const struct launcher *launcher);

/* Is mcp-python-egress installed? */
bool launcher_has_egress(const struct launcher *launcher);

/* A process that was started. Unused descriptors are -1. */
struct launch {
	pid_t pid;			/* 0: none */
	int pidfd;
	int control;			/* the supervisor's end of its socket, non-blocking */
	int trouble;			/* the reading end of the pipe for struct launch_trouble */
};

void launch_init(struct launch *launch);

/* Closes what is open; the process must be gone. */
void launch_done(struct launch *launch);

/* Did a step before exec fail? If so, *step_r is its name (static), and *error_r its errno. To be
 * called when the process has ended. */
bool launch_trouble(const struct launch *launch, const char **step_r, int *error_r);

/* An order that is not answered yet; embedded in its owner, and must not move. */
struct launch_order {
	TAILQ_ENTRY(launch_order) link;
	struct launcher *launcher;	/* NULL: there is no order */
	void (*on_launched)(void *arg, int error, const char *what, struct launch *launch);
	void *arg;
};

/* Starts a program. profile: of a zygote; otherwise 0. modules: those that a zygote learns,
 * or LEARNABLE_BARE (policy/learnable.h); otherwise 0. on_launched is called once, also from
 * within: with error 0 and launch, which belongs to the callee; or with -errno and what, the name
 * of the step that failed (valid during the call). It may be called from within other calls of this
 * module that wait for an answer. */
void launcher_start(struct launcher *launcher, enum launch_kind kind, unsigned int profile,
		    uint64_t modules, struct launch_order *order,
		    void (*on_launched)(void *arg, int error, const char *what,
					struct launch *launch),
		    void *arg);

/* Starts the first, bare zygote of profile 0 before the engine is there. The first launcher_start()
 * that asks for just that gets it. To be called once. If nobody asks for it, it ends with this
 * process. */
void launcher_ahead(struct launcher *launcher);

/* Waits until on_launched was called, at most LAUNCHER_PATIENCE_MS. Does nothing if there is no
 * order. */
void launcher_finish(struct launch_order *order);

#define LAUNCHER_PATIENCE_MS 1000	/* for answers that the loop waits for: at a reload, for a
					 * stray process, and at the end. After this time the
					 * launcher counts as lost */

/* Makes the launcher read the configuration again, and replace its copy of the profile of this
 * name. Zygotes that are started afterwards use the new copy. *profile_r: the profile's number for
 * launcher_start; a known profile keeps its number. 0; or -errno with why_r: the launcher has
 * changed nothing. */
int launcher_learn(struct launcher *launcher, const char *name, unsigned int *profile_r,
		   struct why *why_r);

/* Gets a pidfd, which the caller owns, of a process that must be a child of this one. -ECHILD: it
 * is not a child; or another -errno. */
int launcher_adopt(struct launcher *launcher, pid_t pid);

/* ---- for launcher_process.c, the side in the launcher ---- */

/* How many processes of one program may exist at the same time: the one in use, and its successor.
 * If each tenant of a profile has its own zygote, each tenant may have this number. */
#define LAUNCHER_ALIVE_MAX 2

/* The launcher: a helper_live_fn. options: struct launcher_options. Serves orders on socket, until
 * the supervisor closes its end. */
_Noreturn void launcher_live(const void *options, int socket, pid_t supervisor);

#endif
