/* What stands in for the memory and pids controllers where there are none: it samples
 * what the processes of a running worker use, as long as something runs. By hand only;
 * as a service the controllers are required.
 *
 * Sampling sees less than the kernel: what came and went between two samples is missed,
 * and RLIMIT_DATA and RLIMIT_NPROC are the walls that hold meanwhile.
 */
#ifndef HOST_WATCHDOG_H
#define HOST_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct cgroup_leaf;
struct event_base;
struct execution;
struct watchdog;

/* What all processes of one worker use together. */
struct watchdog_usage {
	uint64_t memory_bytes;	/* anonymous memory in RAM and page tables, each process by
				 * its own count; files; what its sockets may hold */
	uint64_t kept_bytes;	/* of that: what is in no process */
	uint64_t cpu_us;	/* 0 of a leaf, which counts it itself */
	uint32_t tasks;		/* processes and threads, init included */
};

/* What earlier looks saw of the same worker's processes, by pid. Zeroed is empty. */
struct watchdog_seen {
	struct watchdog_process {
		pid_t pid;
		bool missed;		/* not found by the last look */
		uint64_t cpu_us;
	} *process;			/* by pid, ascending */
	size_t n;
	uint64_t gone_us;	/* of processes that are there no more */
};

void watchdog_seen_done(struct watchdog_seen *seen);

/* Measures the worker whose first process is init (a pid as this process sees it): the
 * members of leaf, or without one (NULL) the descendants of init. Those that go away
 * meanwhile are left out. */
void watchdog_measure(pid_t init, const struct cgroup_leaf *leaf,
		      struct watchdog_seen *seen, struct watchdog_usage *usage_r);

/* What was measured beyond what was there before: an upper bound, because each process counts
 * the pages that it still shares with its parent. */
uint64_t watchdog_memory_since(const struct watchdog_usage *before,
			       const struct watchdog_usage *usage);

/* What of it is private memory of the processes, shared pages divided among their sharers: without
 * files and what is shared on purpose. 0 when the kernel does not tell. */
uint64_t watchdog_private_memory(pid_t init, const struct cgroup_leaf *leaf);

/* ---- the timer ---- */

/* check is called for every execution that is watched, some 20 ms apart, in pieces of a few
 * milliseconds; the one that was not checked for longest comes first. At most a tenth of a
 * processor's time goes into it, and on a busy machine at most half of the loop's. */
struct watchdog *watchdog_new(struct event_base *base,
			      void (*check)(struct execution *));
void watchdog_free(struct watchdog *watchdog);

/* Embedded in what is watched. */
struct watchdog_link {
	TAILQ_ENTRY(watchdog_link) link;
	struct watchdog *watchdog;	/* NULL: not watched */
	struct execution *execution;
	unsigned int round;		/* of checks: the last one that it was in */
};

void watchdog_watch(struct watchdog *watchdog, struct watchdog_link *link,
		    struct execution *execution);
void watchdog_forget(struct watchdog_link *link);	/* also when it is not watched */

/* ---- memory with shared pages counted once ---- */

/* A look at the processes of one worker: the memory of each, with every shared page divided by its
 * sharers. The kernel walks all page tables for that, ten microseconds for a MiB; 400 processes
 * that share 700 MiB take seconds. So a look goes on from turn to turn of the loop, one process of
 * each worker that is looked at after the other, for half of the time at most. What is in the leaf
 * is frozen meanwhile: memory cannot move from those that are still to be read to those that were,
 * and the time is the worker's who made its look expensive. Zeroed: there is none. */
struct watchdog_look {
	TAILQ_ENTRY(watchdog_look) link;
	struct watchdog *watchdog;	/* NULL: it does not go on */
	pid_t init;
	const struct cgroup_leaf *leaf;
	bool frozen;			/* by this look */
	bool files_seen;		/* the file system is in kept_bytes */
	pid_t *member;
	size_t n, at;
	struct effort {
		uint64_t wall_us, cpu_us;
	} effort;			/* of this look */
	uint64_t next_us;		/* when another one may be */
	uint64_t sum_bytes;		/* of the processes read so far */
	uint64_t bytes;			/* what the last complete look found; 0: nothing known */
	void (*done)(void *arg);
	void *arg;
};

/* Begins one, of the worker whose first process is init. True: it was done at once, and bytes are
 * known. False: done is called later, unless the look is ended before. freezes: nobody else has
 * frozen the leaf (NULL: there is none). A look that goes on is ended first. */
bool watchdog_look(struct watchdog *watchdog, struct watchdog_look *look, pid_t init,
		   const struct cgroup_leaf *leaf, bool freezes, void (*done)(void *arg),
		   void *arg);

/* Does one go on, or was the last one so short a time ago that another would take more than a tenth
 * of a processor's time, or more than half of the loop's? */
bool watchdog_look_rests(const struct watchdog_look *look);

/* Gives up one that goes on, without calling done. Frees what it has; also when there is none. */
void watchdog_look_end(struct watchdog_look *look);

/* The memory beyond what was there before, at most what was measured: by the last complete look,
 * with the files and sockets of now. */
uint64_t watchdog_looked_memory(const struct watchdog_look *look,
				const struct watchdog_usage *before,
				const struct watchdog_usage *usage);

#endif
