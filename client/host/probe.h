/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of what the service needs of a machine. Each is done, in a child where it could do
 * harm, rather than looked up; each leaves nothing behind.
 */
#ifndef CLIENT_HOST_PROBE_H
#define CLIENT_HOST_PROBE_H

#include <stddef.h>
#include <sys/types.h>

enum verdict {
	VERDICT_OK,
	VERDICT_WEAKER,		/* it works without, less well */
	VERDICT_MISSING,	/* a system service does not start, or a wall is missing */
};

struct finding {
	const char *name;
	enum verdict verdict;
	char found[256];	/* what was found; "": nothing to say */
	const char *cost;	/* what is lost; NULL with VERDICT_OK */
	char advice[512];	/* what to do; "" with VERDICT_OK */
};

/* Where it is to be looked; strings are borrowed. */
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

/* This process has a group of its own, delegated to it, and alone in it: arranges it as the
 * service would. Before any of these. */
void probe_cgroup_settle(void);

/* ---- probe_install.c: what has to be there ---- */
probe_run probe_systemd, probe_programs, probe_interpreters, probe_python, probe_space;

/* The first call of a client, to a service that is started for it: every wall as the worker makes
 * it. */
probe_run probe_call;

/* ---- for these ---- */

void finding_ok(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void finding_not(struct finding *finding, enum verdict verdict, const char *cost,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));
void finding_advise(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Runs trial in a child that ends with this process, or after some seconds: what it returns,
 * 0 or an errno; -1 when it was killed. */
int probe_in_child(int (*trial)(void *arg), void *arg);

/* For people, what these return. */
const char *probe_error(int error);

/* Waits for a child. Likewise. */
int probe_wait(pid_t pid);

/* For a child: not left alone, nor for ever. */
void probe_child_begins(void);

/* The first line of a file, without its end; "" when it cannot be read. */
const char *probe_read(const char *path, char *text, size_t size);

#endif
