/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a worker, for its init. Init finds them by their numbers, which the kernel
 * assigns in order. /proc is not enough: it hides processes that are not dumpable, and a script can
 * make itself not dumpable.
 */
#ifndef WORKER_PROCESSES_H
#define WORKER_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kills every process that was made since the last call, except those in keep, until none is alive.
 * No process is reaped meanwhile: the processes of a fork bomb still count against its limit, so it
 * cannot make new ones. *found_r: how many the first pass found. 0; or -EAGAIN: all visible
 * processes were killed, but this process cannot fork to learn the highest number. To be called
 * again after the killed processes were reaped. */
int processes_end_others(const pid_t *keep, size_t n, unsigned int *found_r);

/* Assigns all processes that were made since the last call, except those in keep, to owner (a small
 * number). They continue, and processes_end_others() leaves them alone from now on. Processes
 * beyond PROCESSES_LEFT_MAX are killed. Returns how many were killed. */
#define PROCESSES_LEFT_MAX 4096
unsigned int processes_leave(const pid_t *keep, size_t n, unsigned int owner);

/* How many processes processes_leave() has listed in all. */
size_t processes_met(void);

/* Sends a signal to the processes of an owner that are alive. */
void processes_signal_left(unsigned int owner, int signal);

/* Waits, for a fraction of a second at most, until the head, a child of this process, and the
 * processes of the owner have stopped: a process stops only when it leaves the kernel. pid 0: there
 * is no head. */
void processes_await_stop(pid_t head, unsigned int owner);

/* Kills the processes of an owner, which then has none, and waits at most a second until they have
 * ended: only then are their ports free. Returns how many were alive at the last signal. A process
 * that has ended since then counts: it may have ended because the process at the other end of its
 * pipe did. */
unsigned int processes_end_left(unsigned int owner);

/* Does the first thread of the process exist? Other threads may go on without it. */
bool processes_has_main_thread(pid_t pid);

/* The number of an owner's processes that have ended since the last signal to them. */
unsigned int processes_left_gone(unsigned int owner);

/* Will a process of this owner still run? A process that was killed will not. */
bool processes_go_on(unsigned int owner);

/* Sets which processes the kernel ends first when memory is short (oom_score_adj): those of a cell
 * before any that holds a state, independently of their sizes. The weight of a process that cannot
 * be accessed does not change. */
#define WEIGHT_STATE "0"
#define WEIGHT_CELL "1000"
void processes_weigh(pid_t pid, const char *weight);

/* Was the process killed, or is it exiting? It may still be alive for a while. */
bool processes_is_ending(pid_t pid);

/* Is the process alive? It is until its last thread has ended. */
bool processes_is_alive(pid_t pid);

/* Waits, a second at most, until a process that was killed has ended and its memory is free. pid 0:
 * does nothing. */
void processes_await_end(pid_t pid);

/* Waits for a short time until the process is a child of this process, because its parent has
 * ended. False: it is not. */
bool processes_becomes_child(pid_t pid);

/* The anonymous memory of a process in bytes; 0: unknown. */
uint64_t processes_memory(pid_t pid);

/* The memory that only this process has, in bytes: it becomes free when the process ends. 0:
 * unknown. The kernel looks at each page. */
uint64_t processes_alone_memory(pid_t pid);

/* The sum of processes_memory() over all processes that outlived their cells. */
uint64_t processes_left_memory(void);

/* The number of a process's threads; 0: unknown. */
unsigned int processes_threads(pid_t pid);

/* Sleeps between two checks for processes that are about to end or to begin. Callers bound the sum
 * of their sleeps. */
void processes_pause(long ns);

#endif
