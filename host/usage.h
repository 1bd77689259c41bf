/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from /proc about the processes of workers, read by a helper process.
 *
 * A process that may read another process's directory in /proc may also write its memory. The
 * supervisor owns the workers' user namespace, so the kernel would allow it both; and it parses
 * hostile bytes. Therefore its fence forbids it to open anything below /proc once it serves
 * (fence_files.h), and a helper process reads these files for it. The helper is forked at start-up,
 * without privilege and with one socket. A question is a few process ids, an answer is numbers. The
 * supervisor waits for the answer, which takes a few microseconds more than reading the files
 * itself. It does not wait long: an answer that is late counts as "not measured in this round".
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
	USAGE_MEMBERS,	/* the processes of a worker, and its memory that is in no process */
	USAGE_ALL,	/* as USAGE_MEMBERS, and the sum of the memory of its processes */
	USAGE_ONE,	/* the memory of pid; each shared page is divided by the number of sharers
			 */
	USAGE_SOCKETS,	/* the sockets in the network of pid */
	USAGE_UID,	/* the uid of pid */
	USAGE_QUESTIONS,
};

/* A question about a worker. pid: its init. member: the n processes in its leaf; n 0: init and its
 * descendants. */
struct usage_asked {
	uint32_t question;
	int32_t pid;
	uint32_t n;
	int32_t member[USAGE_MEMBERS_MAX];
};

/* Numbers that were not asked for, or cannot be seen, are 0. */
struct usage_answer {
	uint32_t files;		/* 1: the worker's file system was measured */
	uint32_t tasks;		/* processes and threads */
	uint64_t kept_bytes;	/* files of the worker, and data that may wait in its sockets */
	uint64_t memory_bytes;	/* of all processes, without kept_bytes; a page that several of them
				 * share counts in each */
	uint64_t table_bytes, private_bytes, shared_bytes;	/* with USAGE_ONE, of pid */
	uint32_t sockets;	/* of all kinds, in the network namespace; not with USAGE_ONE */
	uint64_t protocol_bytes;	/* memory of TCP and UDP, in all network namespaces */
	uint32_t uid;
	uint32_t n;
	struct usage_process {
		int32_t pid;
		uint64_t waited_us;	/* processor time of the children it has waited for */
	} process[USAGE_MEMBERS_MAX];	/* in USAGE_ALL and USAGE_MEMBERS */
};

/* Asks the helper, and waits for the answer, for at most 50 ms. False: not measured now, because
 * the helper is away or late. Then all numbers are 0. */
bool usage_ask(const struct usage_asked *asked, struct usage_answer *answer_r);

/* The process has ended and was waited for: a late answer about it is not given to another one that
 * gets its number. */
void usage_forget(pid_t pid);

/* As usage_ask, but this process itself reads the files. */
void usage_look(const struct usage_asked *asked, struct usage_answer *answer_r);

/* The host's uid of a process; 0: unknown. May wait for two seconds, so it is for the start and the
 * end of the service. */
uid_t usage_uid(pid_t pid);

/* ---- the helper; a process has one ---- */

struct event_base;

/* To be called before the fork servers are forked (forker.h). */
void usage_plan(void);

/* Forks the helper. To be called after privilege is dropped, and before a client's first byte is
 * read. 0 or -errno. */
int usage_start(void);

/* From now on a helper that is lost, or does not answer for some seconds, is made again. */
void usage_watch(struct event_base *base);

pid_t usage_pid(void);	/* 0: none */
void usage_stop(void);	/* does nothing if there is none */

/* ---- the two sides ----
 *
 * usage.c is in the supervisor, usage_process.c in the helper. They are one program, so the
 * messages are the structs themselves, cut after the last used item. */

static inline size_t
usage_asked_size(const struct usage_asked *asked)
{
	return offsetof(struct usage_asked, member) + asked->n * sizeof(asked->member[0]);
}

static inline size_t
usage_answer_size(const struct usage_answer *answer)
{
	return offsetof(struct usage_answer, process) + answer->n * sizeof(answer->process[0]);
}

/* The helper: a helper_live_fn. Answers on socket until its peer is gone. */
_Noreturn void usage_live(const void *unused, int socket, pid_t supervisor);

#endif
