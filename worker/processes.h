/* SPDX-License-Identifier: Apache-2.0 */
/* All processes of a worker, which its init finds by their numbers, because these are assigned in
 * order. /proc hides processes that are not dumpable, and a script can make itself so.
 */
#ifndef WORKER_PROCESSES_H
#define WORKER_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kills every process that was made since the last call, except those in keep, until none is alive.
 * No process is reaped meanwhile: the processes of a fork bomb still count against its limit, so it
 * cannot make new ones. *found_r: how many were found first. 0; or -EAGAIN: all visible ones were
 * killed, but this process cannot fork to learn the highest number. Call it again after those were
 * reaped. */
int processes_end_others(const pid_t *keep, size_t n, unsigned int *found_r);

/* Assigns all processes that were made since the last call, except those in keep, to owner (a small
 * number). They continue, and processes_end_others() leaves them alone from now on. Those beyond
 * PROCESSES_LEFT_MAX are killed; returns how many. */
#define PROCESSES_LEFT_MAX 4096
unsigned int processes_leave(const pid_t *keep, size_t n, unsigned int owner);

/* How many processes processes_leave() has listed in all. */
size_t processes_met(void);

/* Sends a signal to those of an owner that are alive. */
void processes_signal_left(unsigned int owner, int signal);

/* Kills those of an owner, which then has none, and waits at most a second until they have ended:
 * only then are their ports free. Returns how many were alive at the last signal, because one may
 * end together with the process at the other end of its pipe. */
unsigned int processes_end_left(unsigned int owner);

/* Whether its first thread runs; others may go on without it. */
bool processes_has_main_thread(pid_t pid);

/* How many of an owner have ended since the last signal to them. */
unsigned int processes_left_gone(unsigned int owner);

/* Will a process of this owner still run? One that was killed will not. */
bool processes_go_on(unsigned int owner);

/* Sets which processes the kernel ends first when memory is short (oom_score_adj): those of a cell
 * before any that holds a state, independently of their sizes. The weight of a process that cannot
 * be accessed does not change. */
#define WEIGHT_STATE "0"
#define WEIGHT_CELL "1000"
void processes_weigh(pid_t pid, const char *weight);

/* Does the process exist, and has not ended? If only its first thread has ended, it has not. */
bool processes_is_alive(pid_t pid);

/* The same after this many milliseconds, or as soon as it has ended and its memory is free. */
bool processes_outlives(pid_t pid, int ms);

/* Waits for a short time until it is a child of this process, because its parent has ended. */
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

/* Sleeps between two checks for processes that are about to end or to begin; in all at most a
 * second. */
void processes_pause(long ns);

#endif
