/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from /proc about the processes of workers, read by a helper process.
 *
 * A process that may read the directory of another one in /proc may also write that process's
 * memory. The supervisor, which owns the workers' user namespace, could do both, and it parses
 * hostile bytes. So it cannot open anything below /proc once it serves (fence_files.h). A helper
 * process reads there for it: forked at start-up, without privilege, with one socket. A question is
 * a few process ids, an answer is numbers. The supervisor waits for the answer, which takes a few
 * microseconds more than reading the files itself.
 *
 * If there is no helper, as in unit tests and before it is started, the process reads the files
 * itself.
 */
#ifndef HOST_USAGE_H
#define HOST_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_MEMBERS_MAX 2048

enum usage_question {
	USAGE_MEMBERS,	/* which processes a worker has, and its other memory */
	USAGE_ALL,	/* the same, and the sums of their memory */
	USAGE_ONE,	/* the memory of pid, with each shared page divided by its sharers */
	USAGE_UID,	/* the uid of pid */
	USAGE_QUESTIONS,
};

/* A question about a worker: pid is its init, member are the processes in its leaf; none: init and
 * its descendants. */
struct usage_asked {
	uint32_t question;
	int32_t pid;
	uint32_t n;
	int32_t member[USAGE_MEMBERS_MAX];
};

/* Numbers that were not asked for, or cannot be seen, are 0. */
struct usage_answer {
	uint32_t files;		/* 1: the worker's file system was seen */
	uint32_t tasks;		/* processes and threads */
	uint64_t kept_bytes;	/* files of the worker, and what may wait in its sockets */
	uint64_t memory_bytes;	/* of all processes, each by its own count; without kept_bytes */
	uint64_t table_bytes, private_bytes, shared_bytes;	/* of one process */
	uint32_t uid;
	uint32_t n;
	struct usage_process {
		int32_t pid;
		uint64_t waited_us;	/* processor time of the children it has waited for */
	} process[USAGE_MEMBERS_MAX];	/* in USAGE_ALL and USAGE_MEMBERS */
};

/* Always returns; with zeros if the helper is lost. */
void usage_ask(const struct usage_asked *asked, struct usage_answer *answer_r);

/* The same, by this process itself. */
void usage_look(const struct usage_asked *asked, struct usage_answer *answer_r);

/* The host's uid of a process; 0: unknown. */
uid_t usage_uid(pid_t pid);

/* ---- the helper: one of a process ---- */

struct event_base;

/* Forks it; after privilege is dropped, and before the first byte of a client. 0 or -errno. */
int usage_start(void);

/* Calls on_lost once, from the loop, when the helper has ended. It cannot be replaced. */
void usage_watch(struct event_base *base, void (*on_lost)(void *arg), void *arg);

pid_t usage_pid(void);	/* 0: none */
void usage_stop(void);	/* also when there is none */

#endif
