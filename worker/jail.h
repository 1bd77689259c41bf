/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of one worker: an ordered list of walls that fails closed and is proved.
 *
 * jail_prepare runs once in the zygote. jail_enter runs in the first process of a new
 * worker, cloned with its seven namespaces and a full set of capabilities over them. It returns
 * only when every wall stands but the last, which jail_confine puts up. jail_prove tests the walls
 * from inside.
 */
#ifndef WORKER_JAIL_H
#define WORKER_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>

#include "proto/message.h"

#define JAIL_UID 1000			/* and gid, as the worker sees them */
#define JAIL_CONTROL 63			/* the control socket; more costs a larger table */
#define JAIL_BACKGROUND 60		/* of a session's process: where threads of earlier cells
					 * write; standard error's is the next number */

/* What all workers of a zygote have in common. */
struct jail {
	struct sock_fprog filter, zygote_filter;
	unsigned int landlock_abi;
	uint64_t memory_bytes;		/* the limit that most workers get */
	uint64_t disk_bytes;
	uint64_t file_bytes;	/* of a file in the worker's own file system or in a volume */
	char disk_options[96];
	unsigned long last_capability;	/* that the kernel knows */
	bool groups_kept;		/* the kernel does not let us give them up: the outer
					 * namespace has one id, and workers share it */
	bool terminals;			/* workers can make pseudo-terminals */
	bool memory_counted;		/* by a controller, all kinds of it */
};

/* What one worker is born with. */
struct jail_birth {
	const struct jail *jail;
	int control, out, err;		/* from SPAWN */
	int mapped;			/* pipe: the zygote tells that ids are mapped */
};

/* Fills *jail_r for the profile and sets the limits that every worker inherits. 0, or
 * -errno with *what_r (static). */
int jail_prepare(const struct msg_configure *configure, struct jail *jail_r,
		 const char **what_r);

/* The zygote's own filter, put up before it clones the first worker: most system calls are refused,
 * in workers too. 0 or -errno. */
int jail_fence_zygote(const struct jail *jail);

/* Puts up every wall. If one fails, reports it on the control socket and ends the process. */
void jail_enter(const struct jail_birth *birth);

/* After jail_enter: whether the host name was set. If not, it is the host's. */
bool jail_has_host_name(void);

/* In a process of a script, before its first line: enters the Landlock domain, which init has
 * prepared and does not enter itself. Called once in each process. 0 or -errno. */
int jail_confine(const struct jail *jail);

/* In the script's process: checks the walls from inside, and tries ways out. If one is open, ends
 * the process as jail_enter does. */
void jail_prove(const struct jail *jail);

/* Sends JAIL_FAILED and ends the process. error: positive errno. */
_Noreturn void jail_die(int control, const char *what, int error);

/* What is arranged in the script's process after the proof and before it is known what
 * it will run. */
struct jail_state {
	uint64_t data_bytes;		/* that RLIMIT_DATA counts already */
};

int jail_settle(const struct jail *jail, struct jail_state *state_r);

/* The limits that come with RUN; those of 0 are not set. Data may grow by so much from what
 * there was when state was made. 0 or -errno. */
int jail_limit(const struct jail_state *state, const struct msg_run *run);

/* The first of them alone, RLIMIT_DATA, for all processes of a session. */
int jail_limit_data(const struct jail_state *state, uint64_t data_bytes);

/* The others for a cell, whose process will be that of the next one: run->processes is of
 * the whole worker, and the limits are soft. The supervisor's own count is the hard one. */
int jail_limit_cell(const struct msg_run *run);

#endif
