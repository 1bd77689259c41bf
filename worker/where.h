/* SPDX-License-Identifier: Apache-2.0 */
/* The place where a script was stopped: the stacks of its Python threads. Signal handlers send the
 * stacks to the supervisor when the script's process crashes, or when its time is over and init
 * asks for them. The handlers are installed once, in the zygote. Python's module signal shows the
 * script the default actions. If the script replaces the handlers, nothing is sent.
 */
#ifndef WORKER_WHERE_H
#define WORKER_WHERE_H

#include <stdint.h>
#include <sys/types.h>

struct msg_str;

/* In the zygote, on its only thread, once Python is started. 0, or -errno. */
int where_prepare(void);

/* To be called in the script's process, at the beginning and the end of a run. id: from RUN; cell:
 * the cell's number, 0: a script. name: the script's file in tracebacks; NULL: script.py. Processes
 * that the script forks send nothing. */
void where_begin(uint64_t id, unsigned int cell, const struct msg_str *name);
void where_end(void);

/* To be called before and after each message of the script's process, so that a handler sends
 * nothing in the middle of a frame. */
void where_hold(void);
void where_release(void);

/* In init: asks the script's process to send its stacks and end. It may do neither. */
void where_ask(pid_t script);

#define WHERE_WAIT_MS 500	/* after this time init kills the script */

#endif
