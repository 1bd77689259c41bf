/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the features of a machine that the service needs. Each test tries the operation itself,
 * in a child if it could do harm, and leaves nothing behind.
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
	char found[256];	/* a sentence about the result; "": none */
	const char *cost;	/* what the service lacks because of it; NULL with VERDICT_OK */
	char advice[512];	/* what the administrator can do; "" with VERDICT_OK */
};

/* The places to test; strings are borrowed. */
struct probe_place {
	const char *store;	/* directory */
};

/* Does a test and fills in *finding_r, which is zeroed except for its name. */
typedef void probe_run(const struct probe_place *place, struct finding *finding_r);

/* ---- probe_jail.c: walls of a worker ---- */
probe_run probe_kernel, probe_user_namespace, probe_mounts, probe_proc, probe_network, probe_ids,
	probe_no_new_privs, probe_seccomp, probe_landlock, probe_core;

/* ---- probe_cgroup.c ---- */
probe_run probe_cgroup, probe_memory, probe_pids, probe_cpu, probe_cgroup_kill;

/* Sets the cgroup up as the service would, if this process is alone in a delegated cgroup. To be
 * called before the other tests of cgroups. */
void probe_cgroup_settle(void);

/* ---- probe_install.c: programs, files and disk space ---- */
probe_run probe_systemd, probe_programs, probe_interpreters, probe_python, probe_space;

/* Starts a service and makes the first call of a client, so that a worker builds every wall. */
probe_run probe_call;

/* ---- functions for the tests ---- */

void finding_ok(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void finding_not(struct finding *finding, enum verdict verdict, const char *cost,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
void finding_advise(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Runs trial in a child, which is killed when this process ends, or after some seconds. Returns the
 * result of trial, 0 or an errno; -1: the child was killed. */
int probe_in_child(int (*trial)(void *arg), void *arg);

/* The text of a result of probe_in_child, for people. */
const char *probe_error(int error);

/* Waits for a child. The result is that of probe_in_child. */
int probe_wait(pid_t pid);

/* To be called in a child: makes the kernel kill it when its parent ends, and after some seconds.
 */
void probe_child_begins(void);

/* The first line of a file, without the newline; "": it cannot be read. */
const char *probe_read(const char *path, char *text, size_t size);

#endif
