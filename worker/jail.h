/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of one worker: an ordered list of walls. If one cannot be built, the worker ends; all
 * are proved.
 *
 * jail_prepare runs once in the zygote. jail_enter runs in the first process of a new worker,
 * cloned with its seven namespaces and a full set of capabilities over them. It returns only when
 * every wall is built except the last one, which jail_confine builds. jail_prove tests the walls
 * from inside.
 */
#ifndef WORKER_JAIL_H
#define WORKER_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>

#include "proto/message.h"

#define JAIL_UID 1000			/* and gid, as the worker sees them */
#define JAIL_CONTROL 63			/* the control socket; a higher number would need a larger
					 * table */
#define JAIL_BACKGROUND 60		/* in a session's process: standard output of threads of
					 * earlier cells; the next number is their standard error */

/* Shared by all workers of a zygote. */
struct jail {
	struct sock_fprog filter, zygote_filter;
	unsigned int landlock_abi;
	uint64_t memory_bytes;		/* the limit that most workers get */
	uint64_t disk_bytes;
	uint64_t file_bytes;	/* of a file in the worker's own file system or in a volume */
	char disk_options[96];
	unsigned long last_capability;	/* that the kernel knows */
	bool groups_kept;		/* groups cannot be dropped, because the outer namespace has
					 * only one id, which all workers share */
	bool terminals;			/* workers can make pseudo-terminals */
	bool memory_counted;		/* by a controller, all kinds of it */
};

/* The descriptors and ids of a new worker. */
struct jail_birth {
	const struct jail *jail;
	int control, out, err;		/* from SPAWN */
	int mapped;			/* pipe: the zygote reports that ids are mapped */
};

/* Fills *jail_r for the profile and sets the limits that every worker inherits. 0, or
 * -errno with *what_r (static). */
int jail_prepare(const struct msg_configure *configure, struct jail *jail_r,
		 const char **what_r);

/* Loads the zygote's own filter, before it clones the first worker; workers inherit it. 0 or
 * -errno. */
int jail_fence_zygote(const struct jail *jail);

/* Builds every wall. If one fails, reports that on the control socket and ends the process. */
void jail_enter(const struct jail_birth *birth);

/* After jail_enter: was the host name set? If not, it is the name of the host. */
bool jail_has_host_name(void);

/* In a process of a script, before its first line: enters the Landlock domain, which init has
 * prepared and does not enter itself. Called once in each process. 0 or -errno. */
int jail_confine(const struct jail *jail);

/* In the script's process: checks the walls from inside, and tries ways out. If one is open, ends
 * the process as jail_enter does. */
void jail_prove(const struct jail *jail);

/* Sends JAIL_FAILED and ends the process. error: positive errno. */
_Noreturn void jail_die(int control, const char *what, int error);

/* Set up in the script's process after the proof, and before it gets its script. */
struct jail_state {
	uint64_t data_bytes;		/* that RLIMIT_DATA counts already */
};

int jail_settle(const struct jail *jail, struct jail_state *state_r);

/* Sets the limits of RUN; limits of 0 are not set. The limit of data counts from the size when
 * state was made. 0 or -errno. */
int jail_limit(const struct jail_state *state, const struct msg_run *run);

/* Sets only RLIMIT_DATA, for all processes of a session. */
int jail_limit_data(const struct jail_state *state, uint64_t data_bytes);

/* Bounds the processes of a session, whatever its scripts do to the limit of a cell. 0: not. 0 or
 * -errno. */
int jail_limit_processes(uint32_t processes);

/* Sets the other limits for a cell. Its process also runs the next cell, so the limits are soft,
 * and run->processes is for the whole worker. The supervisor's count is the hard limit. */
int jail_limit_cell(const struct msg_run *run);

#endif
