/* SPDX-License-Identifier: Apache-2.0 */
/* A process that holds a state of a session's interpreter, and runs the cells. While a cell runs, a
 * copy that was forked before the cell waits. It becomes the state if the cell does not end by
 * itself.
 */
#ifndef WORKER_SNAPSHOT_H
#define WORKER_SNAPSHOT_H

#include <stdint.h>

#include "worker/jail.h"

struct frame;

/* Called in a process forked from init: becomes the first snapshot of a session, with a fresh
 * interpreter. line: the process's end of the socket to init, CLOEXEC. background: pipes that do
 * not block, for the standard output and error of threads of earlier cells. prepare: PREPARE, if
 * open has it; else not used. */
_Noreturn void snapshot_live(const struct jail *jail, int line, const int background[2],
			     const struct msg_open *open, struct frame *prepare);

#endif
