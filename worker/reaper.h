/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of processes, for a session's init: it reaps each process of the worker, and ends those that
 * a cell has left.
 */
#ifndef WORKER_REAPER_H
#define WORKER_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

/* Reaps all processes that have ended. */
void reaper_reap(void);

/* From now on the end of a cell's process is noted. pid: 0 before the cell's copy is made: the head
 * of the slot. */
void reaper_watch(unsigned int slot, pid_t pid);
void reaper_unwatch(void);

/* Was the process that is watched reaped? Then *status_r is as wait(2) gives it. */
bool reaper_saw_end(int *status_r);

/* Ends all processes except the heads, one, and the processes that slots list. Returns how many
 * were found; *last_r: how many of them the last pass found. If init cannot fork, not even after
 * all visible processes were ended, there are invisible ones, and the worker ends. */
unsigned int reaper_end_others(pid_t one, unsigned int *last_r);

/* Waits for other heads to end if the head of this slot is gone: a cell that has killed its own
 * copy may have killed other states, too. Killed processes take some time to end, and init has to
 * report which states are left. */
void reaper_await_deaths(unsigned int slot);

/* Makes sure that a head that is the state again is alive; else the slot is empty. The cell may
 * have killed it, and it may take time to end. After a look, the head is not waited for: it answers
 * when its threads let it. */
void reaper_prove(unsigned int slot, bool look);

/* The copy that a cell did not need is killed. Until it is reaped, files that the cell has closed
 * are still open in it. reaper_await_spent waits for that. */
void reaper_spend(pid_t copy);
void reaper_await_spent(void);

#endif
