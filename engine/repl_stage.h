/* SPDX-License-Identifier: Apache-2.0 */
/* What an execution sees of its session: the session's functions for the executions that are its
 * cells, and the job that each cell is.
 */
#ifndef ENGINE_REPL_STAGE_H
#define ENGINE_REPL_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct execution;
struct mount_places;
struct mounting;
struct msg;
struct repl;
struct tenant;
struct why;

/* A job of a session. Jobs are done in the order of the calls. A cell's job is part of its
 * execution; other jobs belong to the repl. */
struct repl_job {
	TAILQ_ENTRY(repl_job) link;
	enum { JOB_CELL, JOB_COPY, JOB_DROP } kind;
	struct execution *execution;
	unsigned int from, to;
	bool adds;		/* a copy: "to" held no state before */
	void (*on_copied)(void *arg, int error);
	void *arg;
	int error;		/* the result, for on_copied */
};

/* What a session determines for its cells. */
struct repl_terms {
	unsigned int profile;
	uint64_t memory_bytes;		/* the limit of the session */
	bool adopted;			/* from the supervisor before this one */
	struct mount_places *places;	/* borrowed: execution_mounts.h */
};

/* The limits of a session's worker, which OPEN fixes. */
struct worker_bounds {
	uint64_t memory_bytes, memory_most;
	uint32_t pids_max;
	bool alone;
};

/* What the worker of a session is made with. */
struct repl_needs {
	struct tenant *tenant;
	unsigned int kind;		/* of workers: pool.h */
	const char *environment;	/* borrowed; "": none */
	struct worker_bounds bounds;
};

/* The session's interface for the executions that are its cells. All sessions have the same. */
struct repl_stage {
	/* May a cell be started in the session? 0, or -ESRCH with why_r. */
	int (*admits)(struct repl *repl, struct repl_terms *terms_r, struct why *why_r);
	void (*describe)(const struct repl *repl, struct repl_needs *needs_r);
	/* Appends the job of an execution that waits in its tenant's queue, and starts the next job
	 * if it can. */
	void (*enqueue)(struct repl *repl, struct execution *execution);
	void (*dequeue)(struct repl *repl, struct execution *execution);
	/* Sends a message to the running cell on its own socket. fd: passed with it; -1: none. 0 or
	 * -errno. */
	int (*send)(struct repl *repl, const struct msg *msg, int fd);
	/* repl_mount, for the running cell. */
	int (*mount)(struct repl *repl, const char *environment,
		     void (*mounted)(void *arg, int error), void *arg,
		     struct mounting **mounting_r);
	/* Stops the running cell. interrupt: by KeyboardInterrupt; where: the cell may first report
	 * its stacks. False: the cell must be ended at once, with its worker. */
	bool (*stop)(struct repl *repl, bool interrupt, bool where);
	/* The cell has ended: the session closes its socket, and forgets it. */
	void (*close)(struct repl *repl);
};

#endif
