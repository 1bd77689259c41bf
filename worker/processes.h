/* SPDX-License-Identifier: Apache-2.0 */
/* All processes of a worker, as its init finds them: by their numbers, which are given out in
 * turn. /proc shows no process that is not dumpable, and a script may be.
 */
#ifndef WORKER_PROCESSES_H
#define WORKER_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kills every process made since the last time but those to be kept, until none is alive.
 * Nothing is reaped meanwhile: what a fork bomb has made goes on counting against its limit,
 * so that it gets no new ones. *found_r: how many were met first. 0, or -EAGAIN: all that
 * could be seen were killed, but this process cannot make one more to learn how far numbers
 * go; to be called again when those have been reaped. */
int processes_end_others(const pid_t *keep, size_t n, unsigned int *found_r);

/* The owner (a small number) has these: all made since the last time but those to be kept. They
 * go on, and processes_end_others() does not meet them any more. Beyond PROCESSES_LEFT_MAX they
 * are killed; how many. */
#define PROCESSES_LEFT_MAX 4096
unsigned int processes_leave(const pid_t *keep, size_t n, unsigned int owner);

/* How many processes_leave() has listed, ever. */
size_t processes_met(void);

/* Signals those of an owner. How many were alive; with SIGKILL, after which it has none, how many
 * were alive at the last signal: one may have ended with the process that it had a pipe to. */
unsigned int processes_signal_left(unsigned int owner, int signal);

/* Whether one of an owner's will do anything more: none that has been killed. */
bool processes_go_on(unsigned int owner);

/* Which process the kernel ends first when memory is short (oom_score_adj): those of a cell before
 * any that holds a state, whatever their sizes. A process that may not be looked into keeps the
 * weight that it has. */
#define WEIGHT_STATE "0"
#define WEIGHT_CELL "1000"
void processes_weigh(pid_t pid, const char *weight);

/* Whether it is there and has not ended; of one whose first thread has ended, whether others
 * go on. */
bool processes_is_alive(pid_t pid);

/* The same after so many milliseconds, or as soon as it has ended: its memory is free then. */
bool processes_outlives(pid_t pid, int ms);

/* Waits a while until it is a child of this process, as its own parent has ended. */
bool processes_becomes_ours(pid_t pid);

/* Its anonymous memory in bytes; 0: unknown. */
uint64_t processes_memory(pid_t pid);

/* What it has alone, in bytes: that much is free when it ends. 0: unknown. The kernel looks at each
 * page. */
uint64_t processes_alone_memory(pid_t pid);

/* Of processes_memory(), of all that outlived their cells. */
uint64_t processes_left_memory(void);

/* How many threads it has; 0: unknown. */
unsigned int processes_threads(pid_t pid);

/* Waits, to the end, for processes that are about to end or to begin. At most a second. */
void processes_pause(long ns);

#endif
