/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a helper (helper.h) whose work can block, because a name service or a disk may answer
 * late or never. The helper forks a child for each order, its job, and kills a child that does not
 * answer in time, so one job holds up no other.
 *
 * A child answers with one message to the helper. The helper reads it from a pipe, because a child
 * may be taken over by what it parses, and a pipe carries no descriptors.
 */
#ifndef HOST_JOBS_H
#define HOST_JOBS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"

#define JOBS_MAX 64	/* of a helper, at once */

struct jobs;

/* What a helper does. arg: as jobs.arg. */
struct jobs_calls {
	/* An order of the supervisor has arrived: begins a job, or acts at once. 0, or -errno,
	 * which ends the helper. */
	int (*obey)(struct jobs *jobs, struct frame *order);
	/* In a child: executes the order, and fills *answer_r, whose type is set. Nothing needs to
	 * be freed: the child ends. */
	void (*work)(void *arg, struct frame *order, struct msg *answer_r);
	/* A job has ended; reports that to the supervisor. error: 0 with the child's answer; or
	 * -errno without one (-ETIMEDOUT: it was late; -ECHILD: the child ended without an answer).
	 * 0, or -errno, which ends the helper. */
	int (*conclude)(void *arg, const struct frame *order, int error,
			const struct msg *answer);
};

struct job {
	pid_t pid;			/* 0: free */
	int pipe;
	uint64_t id, due_ms;
	struct frame order;
	struct frame_reader reader;	/* of the child's answer */
};

/* The first five members are set, the others are zero. */
struct jobs {
	const struct jobs_calls *calls;
	void *arg;
	enum msg_type answer;		/* what its children answer */
	int socket;			/* to the supervisor; closed in children */
	size_t most;			/* jobs at once, up to JOBS_MAX; further orders wait */
	struct job job[JOBS_MAX];
	size_t n;
};

/* Begins a job, or concludes it at once with the reason why it cannot. The order is emptied; its
 * descriptors are the child's. id: for jobs_cancel. Only from obey. 0 or -errno, as conclude. */
int jobs_begin(struct jobs *jobs, struct frame *order, uint64_t id, unsigned int seconds);

/* Concludes a job with -ECANCELED. Does nothing if the job has ended already. 0 or -errno. */
int jobs_cancel(struct jobs *jobs, uint64_t id);

/* Obeys orders until the supervisor closes its end, or until an error. Then closes the socket and
 * cancels the remaining jobs. Returns -errno, for helper_exit. */
int jobs_serve(struct jobs *jobs);

#endif
