/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a helper (helper.h) whose work can block, because a name service or a disk may answer
 * late or never. For each order the helper forks a child, which does the job. A child that does not
 * answer in time is killed, so one job holds up no other.
 *
 * A child answers with one message to the helper. The helper reads it from a pipe: a child may be
 * taken over by the data that it parses, and a pipe carries no descriptors.
 */
#ifndef HOST_JOBS_H
#define HOST_JOBS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"

#define JOBS_MAX 64	/* of a helper, at the same time */

struct jobs;

/* The callbacks of a helper. arg: jobs.arg. */
struct jobs_calls {
	/* An order of the supervisor has arrived: begins a job, or acts at once. 0, or -errno,
	 * which ends the helper. */
	int (*obey)(struct jobs *jobs, struct frame *order);
	/* In a child: executes the order, and fills *answer_r, whose type is set. Nothing needs to
	 * be freed: the child ends. */
	void (*work)(void *arg, struct frame *order, struct msg *answer_r);
	/* Reports the end of a job to the supervisor. error: 0, with the child's answer; or -errno,
	 * without one (-ETIMEDOUT: it was late; -ECHILD: the child ended without an answer). 0, or
	 * -errno, which ends the helper. */
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
	enum msg_type answer;		/* the type of its children's answers */
	int socket;			/* to the supervisor; closed in children */
	size_t most;			/* jobs at a time, up to JOBS_MAX; further orders wait */
	struct job job[JOBS_MAX];
	size_t n;
};

/* Begins a job; or, if that is not possible, calls conclude with the error at once. The order is
 * emptied; its descriptors belong to the child. id: for jobs_cancel. seconds: the time limit. To be
 * called only from within obey. 0, or -errno of conclude. */
int jobs_begin(struct jobs *jobs, struct frame *order, uint64_t id, unsigned int seconds);

/* Ends a job: conclude is called with -ECANCELED. Does nothing if the job has ended already. 0 or
 * -errno. */
int jobs_cancel(struct jobs *jobs, uint64_t id);

/* Obeys orders until the supervisor closes its end, or until an error. Then closes the socket and
 * cancels the remaining jobs. Returns -errno, for helper_exit. */
int jobs_serve(struct jobs *jobs);

#endif
