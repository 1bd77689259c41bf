/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the service needs from a machine. Each one tries the operation itself, in a child
 * if it could do harm, and leaves nothing behind.
 */
#ifndef CLIENT_HOST_PROBE_H
#define CLIENT_HOST_PROBE_H

#include <stddef.h>
#include <sys/types.h>

enum verdict {
	VERDICT_OK,
	VERDICT_WEAKER,		/* the service works without it, but less well */
	VERDICT_MISSING,	/* a system service does not start, or a wall is missing */
};

struct finding {
	const char *name;
	enum verdict verdict;
	char found[256];	/* what was found; "": no remark */
	const char *cost;	/* what is lost; NULL with VERDICT_OK */
	char advice[512];	/* what to do; "" with VERDICT_OK */
};

/* What to test; strings are borrowed. */
struct probe_place {
	const char *store;	/* directory */
};

/* Fills *finding_r, which is zeroed but for its name. */
typedef void probe_run(const struct probe_place *place, struct finding *finding_r);

/* ---- probe_jail.c: walls of a worker ---- */
probe_run probe_kernel, probe_user_namespace, probe_mounts, probe_proc, probe_network, probe_ids,
	probe_no_new_privs, probe_seccomp, probe_landlock, probe_core;

/* ---- probe_cgroup.c ---- */
probe_run probe_cgroup, probe_memory, probe_pids, probe_cpu, probe_cgroup_kill;

/* For a process that is alone in a delegated cgroup: sets the cgroup up as the service would.
 * Before the other functions here. */
void probe_cgroup_settle(void);

/* ---- probe_install.c: what has to be there ---- */
probe_run probe_systemd, probe_programs, probe_interpreters, probe_python, probe_space;

/* Starts a service and makes the first call of a client, so that a worker builds every wall. */
probe_run probe_call;

/* ---- for these ---- */

void finding_ok(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void finding_not(struct finding *finding, enum verdict verdict, const char *cost,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
void finding_advise(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Runs trial in a child, which ends with this process, or after some seconds. Returns the result of
 * trial, 0 or an errno; -1: it was killed. */
int probe_in_child(int (*trial)(void *arg), void *arg);

/* The text of such a result, for people. */
const char *probe_error(int error);

/* Waits for a child. The result as above. */
int probe_wait(pid_t pid);

/* In a child: makes it end with its parent, and after some seconds. */
void probe_child_begins(void);

/* The first line of a file, without its end; "": it cannot be read. */
const char *probe_read(const char *path, char *text, size_t size);

#endif
