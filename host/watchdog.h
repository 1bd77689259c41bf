/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog replaces the memory and pids controllers where they are missing: while something
 * runs, it samples the use of the worker's processes. That is only for a service that was started
 * by hand; under systemd the controllers are required. There it samples sockets alone, which no
 * controller counts (engine/tables.h).
 *
 * A sample shows less than the kernel's counters: a peak between two samples is missed. RLIMIT_DATA
 * and RLIMIT_NPROC bound such peaks.
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
struct watchdog;

/* The use of all processes of one worker. */
struct watchdog_usage {
	uint64_t memory_bytes;	/* anonymous memory in RAM and page tables (a page that several
				 * processes share counts in each); files; data that may wait
				 * in sockets */
	uint64_t kept_bytes;	/* the part of memory_bytes that is in no process */
	uint64_t cpu_us;	/* 0 if there is a leaf, which counts it itself */
	uint32_t tasks;		/* processes and threads, init included */
	uint32_t sockets;	/* in its network namespace */
	uint64_t protocol_bytes;	/* memory of TCP and UDP, of all programs of the machine */
};

/* The results of earlier samples of the same worker's processes, by pid. Zeroed: empty. */
struct watchdog_seen {
	struct watchdog_process {
		pid_t pid;
		bool missed;		/* not found by the last sample */
		uint64_t cpu_us;
	} *process;			/* by pid, ascending */
	size_t n;
	uint64_t gone_us;	/* of processes that have ended */
	struct watchdog_usage last;
};

void watchdog_seen_done(struct watchdog_seen *seen);

/* Measures a worker. init: the pid of its first process, as this process sees it. leaf: its
 * processes are measured; NULL: there is no leaf, and init and its descendants are measured. A
 * process that ends meanwhile is left out. False: it could not be measured now (usage.h), and
 * *usage_r is the result of the last time; zeroed: there was none. */
bool watchdog_measure(pid_t init, const struct cgroup_leaf *leaf,
		      struct watchdog_seen *seen, struct watchdog_usage *usage_r);

/* Reads the last two fields; the others are 0. */
void watchdog_measure_sockets(pid_t init, struct watchdog_usage *usage_r);

/* The growth of memory since before: an upper bound, because each process counts the pages that it
 * still shares with its parent. */
uint64_t watchdog_memory_since(const struct watchdog_usage *before,
			       const struct watchdog_usage *usage);

/* The private memory of a worker's processes. A page that processes share after a fork is divided
 * among them. Files, and memory that is shared on purpose, do not count. 0: not known. */
uint64_t watchdog_private_memory(pid_t init, const struct cgroup_leaf *leaf);

/* ---- the timer ---- */

/* Makes a watchdog. It checks every watched object about every interval_ms. The checks of one turn
 * of the loop take a few milliseconds; the object whose last check is the oldest comes first. It
 * uses at most a tenth of a processor, and on a busy machine at most half of the loop's time. */
struct watchdog *watchdog_new(struct event_base *base, unsigned int interval_ms);
void watchdog_free(struct watchdog *watchdog);

/* Embedded in the watched object. */
struct watchdog_link {
	TAILQ_ENTRY(watchdog_link) link;
	struct watchdog *watchdog;	/* NULL: not watched */
	void (*check)(void *arg);
	void *arg;
	unsigned int round;		/* the last round of checks that it was in */
};

/* From now on the watchdog calls check(arg), until watchdog_forget. check may call watchdog_forget
 * for its own link, and for others. */
void watchdog_watch(struct watchdog *watchdog, struct watchdog_link *link,
		    void (*check)(void *arg), void *arg);
void watchdog_forget(struct watchdog_link *link);	/* does nothing if it is not watched */

/* ---- memory with shared pages counted once ---- */

/* A look: the exact measurement of one worker. It reads the memory of each process, with every
 * shared page divided among its sharers. For that the kernel walks all page tables, which takes ten
 * microseconds for each MiB: seconds for 400 processes that share 700 MiB. So a look continues in
 * several turns of the loop, for at most half of the time. Looks at several workers take turns
 * after each process. The leaf is frozen meanwhile: memory cannot move from a process that was not
 * read yet to one that was read already, and only the worker with an expensive look loses time.
 * Zeroed: no look. */
struct watchdog_look {
	TAILQ_ENTRY(watchdog_look) link;
	struct watchdog *watchdog;	/* NULL: no look is under way */
	pid_t init;
	const struct cgroup_leaf *leaf;
	bool frozen;			/* this look has frozen leaf */
	bool files_seen;		/* kept_bytes of the worker includes its file system */
	pid_t *member;
	size_t n, at;
	struct effort {
		uint64_t wall_us, cpu_us;
	} effort;			/* the time that this look has taken so far */
	uint64_t next_us;		/* the earliest time for the next look */
	uint64_t sum_bytes;		/* of the processes read so far */
	uint64_t bytes;			/* the result of the last complete look; 0: not known */
	void (*done)(void *arg);
	void *arg;
};

/* Begins a look at the worker whose first process is init. A look that is under way is ended first.
 * True: the look is complete, and look->bytes is known. False: done is called later, unless the
 * look is ended before. freezes: the look has to freeze leaf (NULL: there is none), because it is
 * not frozen yet. */
bool watchdog_look(struct watchdog *watchdog, struct watchdog_look *look, pid_t init,
		   const struct cgroup_leaf *leaf, bool freezes, void (*done)(void *arg),
		   void *arg);

/* Sets the result of the look from usage, in place of an exact look: for example because usage is
 * within the limit already. The caller has to decide by this result (watchdog_looked_memory), not
 * by a later usage. A later usage may include all memory of a process that was just forked,
 * although no memory was added. */
void watchdog_look_take(struct watchdog_look *look, const struct watchdog_usage *before,
			const struct watchdog_usage *usage);

/* Must a new look wait? True if one is under way, or if the last one was so recent that looks would
 * use more than a tenth of a processor, or more than half of the loop's time. */
bool watchdog_look_rests(const struct watchdog_look *look);

/* Ends the look without calling done, and frees its memory. Does nothing if there is none. */
void watchdog_look_end(struct watchdog_look *look);

/* The growth of memory since before. The memory of processes is that of the last complete look;
 * files and sockets are those of usage. The result is at most the growth by usage alone
 * (watchdog_memory_since). */
uint64_t watchdog_looked_memory(const struct watchdog_look *look,
				const struct watchdog_usage *before,
				const struct watchdog_usage *usage);

#endif
