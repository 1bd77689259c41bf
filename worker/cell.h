/* SPDX-License-Identifier: Apache-2.0 */
/* The cell that runs in a session, for its init: how it begins, ends and is undone. A cell that
 * only looks at the state runs in a copy of the head (worker/slots.h). This copy never becomes a
 * state, and the head is stopped meanwhile.
 */
#ifndef WORKER_CELL_H
#define WORKER_CELL_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "proto/frame.h"
#include "worker/line.h"

/* background: init's ends of the pipes for standard output and error of threads of earlier cells.
 */
void cell_init(const int background[2]);

/* frame: CELL, with the control socket of the cell. */
void cell_begin(struct frame *frame);
void cell_stop(const struct msg_stop *stop);
void cell_commit(const struct msg_commit *commit);

/* Does a cell run? Then *slot_r is its slot, and *line_r the line to read: until the copy is
 * reported, the line to the copy; afterwards the line to the cell; -1: none is read now. */
bool cell_runs(unsigned int *slot_r, int *line_r);

/* Does a cell run whose copy is not reported yet? */
bool cell_waits_for_copy(void);

/* To be called when the copy is reported, or when the head could not make one (error: an errno). */
void cell_forked(pid_t pid);
void cell_refused(int error);

/* To be called with any other report from the cell's line. r: what slots_receive() has returned: a
 * report, or the end of the line. */
void cell_report(int r, const struct report *report);

/* Ends the cell if the process that it needs is gone. A cell whose copy is gone continues: it may
 * still end by itself, and then its process is the state. */
void cell_check(void);

/* The time to wait for events while a cell runs. When it has passed without an event, cell_late is
 * to be called. */
const struct timespec *cell_wait(void);
void cell_late(void);

#endif
