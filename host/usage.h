/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of the processes of workers, and who may ask there.
 *
 * The kernel shows a process to those who may also write its memory. The supervisor is the owner of
 * the workers' user namespace, so it could do both; and it is the one that strangers' bytes reach.
 * So it cannot open anything below /proc once it serves (fence_files.h), and a helper process
 * looks there for it: forked at start-up, without privilege, with one socket. A question is a
 * few process ids, an answer is numbers. A question is answered at once, and the supervisor waits
 * for that: it takes a few microseconds more than a look by itself.
 *
 * Without a helper, as in unit tests and before it is started, the process looks by itself.
 */
#ifndef HOST_USAGE_H
#define HOST_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_MEMBERS_MAX 2048

enum usage_question {
	USAGE_MEMBERS,	/* which processes a worker has, and what it has beside them */
	USAGE_ALL,	/* that, and what they have together */
	USAGE_ONE,	/* the memory of pid, with each shared page divided by its sharers */
	USAGE_UID,	/* the uid of pid */
	USAGE_QUESTIONS,
};

/* Of a worker: pid is its init, member what is in its leaf; none: init and its descendants. */
struct usage_asked {
	uint32_t question;
	int32_t pid;
	uint32_t n;
	int32_t member[USAGE_MEMBERS_MAX];
};

/* What was not asked for, and what cannot be seen, is 0. */
struct usage_answer {
	uint32_t files;		/* 1: the worker's file system was seen */
	uint32_t tasks;		/* processes and threads */
	uint64_t kept_bytes;	/* files of the worker, and what may wait in its sockets */
	uint64_t memory_bytes;	/* of all processes, each by its own count; without what is kept */
	uint64_t table_bytes, private_bytes, shared_bytes;	/* of one process */
	uint32_t uid;
	uint32_t n;
	struct usage_process {
		int32_t pid;
		uint64_t waited_us;	/* processor time of the children it has waited for */
	} process[USAGE_MEMBERS_MAX];	/* in USAGE_ALL and USAGE_MEMBERS */
};

/* Always returns, and with zeros when the helper is lost. */
void usage_ask(const struct usage_asked *asked, struct usage_answer *answer_r);

/* The same, by this process itself. */
void usage_look(const struct usage_asked *asked, struct usage_answer *answer_r);

/* The host's uid of a process; 0: unknown. */
uid_t usage_uid(pid_t pid);

/* ---- the helper: one of a process ---- */

struct event_base;

/* Forks it; after privilege is dropped, and before the first byte of a client. 0 or -errno. */
int usage_start(void);

/* on_lost is called once, from the loop, when it has ended. It cannot be replaced. */
void usage_watch(struct event_base *base, void (*on_lost)(void *arg), void *arg);

pid_t usage_pid(void);	/* 0: none */
void usage_stop(void);	/* also when there is none */

#endif
