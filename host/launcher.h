/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher: a process that starts zygotes, the keeper, the egress proxy and the client of other
 * servers' tools. The supervisor itself cannot start a process once it serves (fence.h).
 *
 * It is a helper (helper.h), and the only process that keeps the descriptors of the outer namespace
 * and of the programs. The processes that it starts are children of the supervisor (CLONE_PARENT).
 * It has a table of the programs and of the first message to each, so the supervisor can name a
 * program but change nothing about it.
 *
 * If the launcher ends, the service answers the running calls and ends, too.
 */
#ifndef HOST_LAUNCHER_H
#define HOST_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/message.h"

struct config;
struct event_base;
struct launcher;
struct outer_namespace;
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

/* Forks the launcher. To be called before a client's first byte is read. 0 or -errno with why_r. */
int launcher_new(const struct launcher_options *options, struct launcher **launcher_r,
		 struct why *why_r);

/* Kills the launcher and waits for its end. NULL is fine. */
void launcher_free(struct launcher *launcher);

/* From now on on_lost is called, once and from the loop, when the launcher has ended or broken its
 * protocol. */
void launcher_watch(struct launcher *launcher, struct event_base *base,
		    void (*on_lost)(void *arg), void *arg);

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

/* Starts a program. profile: of a zygote; otherwise 0. Blocks for the time of a fork, at most
 * LAUNCHER_PATIENCE_MS. 0, or -errno with the name of the step in *what_r (valid until the next
 * call). */
int launcher_start(struct launcher *launcher, enum launch_kind kind, unsigned int profile,
		   struct launch *launch, const char **what_r);

#define LAUNCHER_PATIENCE_MS 5000	/* a fork never takes so long: after this time the launcher
					 * counts as lost */

/* Makes the launcher read the configuration again, and replace its copy of the profile of this
 * name. Zygotes that are started afterwards use the new copy. *profile_r: the profile's number for
 * launcher_start; a known profile keeps its number. 0; or -errno with why_r: the launcher has
 * changed nothing. */
int launcher_learn(struct launcher *launcher, const char *name, unsigned int *profile_r,
		   struct why *why_r);

/* Gets a pidfd, which the caller owns, of a process that must be a child of this one. -ECHILD: it
 * is not a child; or another -errno. */
int launcher_adopt(struct launcher *launcher, pid_t pid);

#endif
