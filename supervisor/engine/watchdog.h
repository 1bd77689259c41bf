/* What stands in for the memory and pids controllers where there are none: it samples
 * what the processes of a running worker use, as long as something runs. By hand only;
 * as a service the controllers are required.
 *
 * Sampling sees less than the kernel: what came and went between two samples is missed,
 * and RLIMIT_DATA and RLIMIT_NPROC are the walls that hold meanwhile.
 */
#ifndef SUPERVISOR_WATCHDOG_H
#define SUPERVISOR_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cgroup_leaf;

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

/* The same memory with every shared page divided by its sharers: dear, but true of
 * processes that forked. 0 when the kernel does not tell. */
uint64_t watchdog_true_memory(pid_t init, const struct cgroup_leaf *leaf);

/* What of it is the processes' own: without files and what is shared on purpose. */
uint64_t watchdog_private_memory(pid_t init, const struct cgroup_leaf *leaf);

/* What was measured beyond what was there before. Each process counts pages that it still
 * shares with its parent: where that is more than limit they are counted once, as above. */
uint64_t watchdog_memory_since(pid_t init, const struct cgroup_leaf *leaf,
			       const struct watchdog_usage *before,
			       const struct watchdog_usage *usage, uint64_t limit);

/* ---- the timer ---- */

struct event_base;
struct execution;
struct watchdog;

/* check is called for every execution that is watched, some 20 ms apart, less often
 * when it takes long: at most a tenth of the loop's time goes into it. */
struct watchdog *watchdog_new(struct event_base *base,
			      void (*check)(struct execution *));
void watchdog_free(struct watchdog *watchdog);

/* Embedded in what is watched. */
struct watchdog_link {
	struct watchdog *watchdog;
	struct execution *execution;
	struct watchdog_link *next, **previous;	/* previous NULL: not watched */
};

void watchdog_watch(struct watchdog *watchdog, struct watchdog_link *link,
		    struct execution *execution);
void watchdog_forget(struct watchdog_link *link);	/* also when it is not watched */

#endif
