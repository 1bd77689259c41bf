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

/* From now on the end of a cell's process is noted. pid: the cell's process; 0: the head of the
 * slot, until the cell's copy is made. */
void reaper_watch(unsigned int slot, pid_t pid);
void reaper_unwatch(void);

/* Was the process that is watched reaped? Then *status_r is as wait(2) gives it. */
bool reaper_saw_end(int *status_r);

/* Ends all processes except the heads, the process "one", and those listed for a slot (slots.h).
 * Returns how many were found; *last_r: how many of them the last pass found. If init cannot fork,
 * not even after all visible processes were ended, there are invisible ones, and the worker ends.
 */
unsigned int reaper_end_others(pid_t one, unsigned int *last_r);

/* Waits for other heads to end if the head of this slot is gone: a cell that has killed its own
 * copy may have killed other states, too. Killed processes take some time to end, and init has to
 * report which states are left. */
void reaper_await_deaths(unsigned int slot);

/* Asks a head that has become the state, or is the state again, for an answer. Without an answer
 * the slot is emptied: a cell may have killed the head, which may take time to end. look: the cell
 * only looked at the state; then the head is told, and its answer is not awaited, because its
 * threads may delay it. */
void reaper_prove(unsigned int slot, bool look);

/* To be called with a copy that its cell did not need, and that was killed. Until the copy has
 * ended, files that the cell has closed are still open in it. reaper_await_spent waits for its end.
 */
void reaper_spend(pid_t copy);
void reaper_await_spent(void);

#endif
