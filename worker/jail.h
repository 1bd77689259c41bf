/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of one worker: an ordered list of walls. If a wall cannot be built, the worker ends. All
 * walls are tested from inside.
 *
 * jail_prepare runs once in the zygote. jail_enter runs in the first process of a new worker, which
 * was cloned with its seven namespaces and has all capabilities over them. It returns only when
 * every wall is built except the last one. jail_confine builds the last one. jail_prove tests the
 * walls.
 */
#ifndef WORKER_JAIL_H
#define WORKER_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>

#include "proto/message.h"

#define JAIL_UID 1000			/* and gid, as the worker sees them */
#define JAIL_CONTROL 63			/* the control socket; a higher number would need a larger
					 * table of descriptors */
#define JAIL_BACKGROUND 60		/* in a session's process: the pipe for standard output of
					 * threads of earlier cells; 61: for their standard error */
#define JAIL_STREAMS 58			/* there: standard output of each cell; 59: error */

/* Shared by all workers of a zygote. */
struct jail {
	struct sock_fprog filter, zygote_filter;
	unsigned int landlock_abi;
	uint64_t memory_bytes;		/* the limit that most workers get */
	uint64_t disk_bytes;
	uint64_t file_bytes;	/* of a file in the worker's own file system or in a volume */
	char disk_options[96];
	unsigned long last_capability;	/* the last one that the kernel knows */
	bool groups_kept;		/* groups cannot be dropped, because the outer namespace has
					 * only one id, which all workers share */
	bool terminals;			/* workers can make pseudo-terminals */
	bool memory_counted;		/* a controller counts all kinds of memory */
};

/* The descriptors and ids of a new worker. */
struct jail_birth {
	const struct jail *jail;
	int control, out, err;		/* from SPAWN */
	int mapped;			/* a pipe: the zygote reports here that the ids are mapped
					 */
};

/* Fills *jail_r for the profile, without the filters, and sets the limits that every worker
 * inherits. The filters are compiled in a child meanwhile: jail_prepared() waits for them, and
 * comes before Python starts. 0, or -errno with *what_r (static). */
int jail_prepare(const struct msg_configure *configure, struct jail *jail_r,
		 const char **what_r);
int jail_prepared(struct jail *jail, const char **what_r);

/* In the zygote, before each worker: 0 if the limit of core files is 1, or if no program of the
 * host receives cores; otherwise -EPERM and *what_r (static). A limit of 0 remains where the
 * service started with a hard limit of 0 and could not raise it. */
int jail_no_core_handler(const char **what_r);

/* Loads the zygote's own filter, before it clones the first worker; workers inherit it. 0 or
 * -errno. */
int jail_fence_zygote(const struct jail *jail);

/* Builds every wall but the last. If one fails, reports it on the control socket and ends the
 * process. */
void jail_enter(const struct jail_birth *birth);

/* After jail_enter: was the host name set? If not, it is the name of the host. */
bool jail_has_host_name(void);

/* In a process of a script, before its first line: enters the Landlock domain. Init has prepared
 * the domain, and does not enter it itself. To be called once in each process that init makes. 0 or
 * -errno. */
int jail_confine(const struct jail *jail);

/* In the script's process: checks the walls from inside, and tries ways out of the jail. If one is
 * open, reports it and ends the process, as jail_enter does. */
void jail_prove(const struct jail *jail);

/* Sends JAIL_FAILED and ends the process. error: positive errno. */
_Noreturn void jail_die(int control, const char *what, int error);

/* The state of the script's process after jail_prove, before it gets its script. */
struct jail_state {
	uint64_t data_bytes;		/* its size, as RLIMIT_DATA counts it */
	uint64_t data_limit;		/* of a session: the limit in force, without that size */
};

int jail_settle(const struct jail *jail, struct jail_state *state_r);

/* Sets the limits of RUN; limits of 0 are not set. state->data_bytes is added to the limit of data.
 * 0 or -errno. */
int jail_limit(const struct jail_state *state, const struct msg_run *run);

/* Sets RLIMIT_DATA for all processes of a session. most: the hard limit, for a session whose memory
 * is raised later. data_bytes 0: sets nothing. 0 or -errno. */
int jail_limit_data(struct jail_state *state, uint64_t data_bytes, uint64_t most);

/* Sets the hard limit for the processes of a session; its scripts cannot raise the limit of a cell
 * above it. processes 0: sets nothing. 0 or -errno. */
int jail_limit_processes(uint32_t processes);

/* Sets the limits of RUN for a cell; that of data only if the session's limit was raised. The
 * process also runs the next cell, so the limits are soft, and run->processes is for the whole
 * worker. The supervisor enforces the limits of the cell by counting. 0 or -errno. */
int jail_limit_cell(struct jail_state *state, const struct msg_run *run);

#endif
