/* SPDX-License-Identifier: Apache-2.0 */
/* A worker inside its walls: init, which reaps processes and reports, and the script's process,
 * which waits for RUN and runs the script.
 */
#ifndef WORKER_EXECUTION_H
#define WORKER_EXECUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"
#include "worker/jail.h"

/* Called in the first process of a new worker, inside the jail: becomes init, and makes the
 * script's process. serial: the worker's, for READY. */
_Noreturn void execution_live(const struct jail *jail, uint64_t serial);

/* In a script's or a cell's process: reads messages, and puts the files of INPUT and LINK into
 * /workspace, until a message of another kind comes. replace: they may replace existing files. 0,
 * and *frame has the last message; or -errno of the socket. *error_r: an errno if a file could not
 * be put in place, otherwise unchanged. */
int execution_receive(struct frame *frame, bool replace, int *error_r);

/* Waits until the keeper has mounted something. The keeper sends one byte: 0 or an errno. gate is
 * closed. 0 or -errno. */
int execution_await(int gate);

/* Fills in *done_r in place of a run: an input file that could not be put in place is an error of
 * the script or cell. *done_r points to memory of this module. */
void execution_refuse_input(const struct msg_run *run, int error, struct msg_done *done_r);

#endif
