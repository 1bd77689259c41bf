/* SPDX-License-Identifier: Apache-2.0 */
/* The spare of a session, for its init: a copy that is made after the end of a cell. It becomes the
 * state if the head of its slot ends between cells. It serves as the copy for the next cell if
 * nothing has run since it was made. The slot of the spare is always that of the last cell.
 */
#ifndef WORKER_SPARE_H
#define WORKER_SPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "worker/slots.h"

/* Raises the memory limit of the session, which is 0 at first. False: the limit is as high already.
 */
bool spare_raise_limit(uint64_t bytes);

/* Is there a spare of this slot? */
bool spare_is_of(unsigned int slot);

/* Is there a spare of this slot, and has nothing run in the slot since it was made? */
bool spare_is_current(unsigned int slot);

/* A cell of the slot has ended: the next spare is made of this slot. */
void spare_after(unsigned int slot);

/* ---- making it: an operation of init, during which no message is read ---- */

/* Should a spare be made now, if there is no operation? */
bool spare_is_wanted(void);

/* Begins to make a spare, if there is enough memory. */
void spare_make(void);

/* Is a spare being made? Then *slot_r is the slot, and *line_r the line to the spare. */
bool spare_is_made(unsigned int *slot_r, int *line_r);

/* These end the operation: the spare is the process pid; the head could not make a copy; or the
 * head is gone. */
void spare_forked(pid_t pid);
void spare_refused(void);
void spare_lost(void);

/* ---- its memory ---- */

/* Should the spare be measured after a while, if there is no operation? */
bool spare_is_unmeasured(void);

/* Measures the memory that the spare has alone, unless the last measurement was just before. The
 * kernel walks its page tables: ten microseconds for a MiB. */
void spare_measure(void);

/* The memory that a spare had alone when one was last measured. */
uint64_t spare_bytes(void);

/* ---- its use ---- */

/* Ends the spare, and waits: its memory and its open files are free afterwards. */
void spare_end(void);

/* Takes the spare out of its slot: there is none afterwards. */
struct head spare_take(void);

/* Called between operations. If the head of the spare's slot is gone: ends the processes that it
 * has left, and makes the spare the state. */
void spare_use(void);

/* As spare_use, but kills the head first. False: there is no spare. */
bool spare_undo(void);

/* Has the head of the slot ended between cells, so that its spare has become the state? True only
 * once for each such end; then *status_r says how the head had ended, as wait(2) gives it. */
bool spare_replaced(unsigned int slot, int *status_r);

/* To be called before the slot gets another state, or none: drops what is known of it. */
void spare_forget(unsigned int slot);

#endif
