/* SPDX-License-Identifier: Apache-2.0 */
/* The place where a script was stopped: the stacks of its Python threads. They are sent to the
 * supervisor when the script's process crashes, or when init asks because its time is over. Signal
 * handlers do that; they are installed once, in the zygote. In Python the script sees the default
 * actions; if it replaces the handlers, nothing is sent.
 */
#ifndef WORKER_WHERE_H
#define WORKER_WHERE_H

#include <stdint.h>
#include <sys/types.h>

struct msg_str;

/* In the zygote, on its only thread, once Python is started. 0, or -errno. */
int where_prepare(void);

/* In the script's process: the run begins; the run ends. id: of RUN; cell: its number, 0: a
 * script. name: of the script's file in tracebacks; NULL: script.py. Processes that it forks
 * send nothing. */
void where_begin(uint64_t id, unsigned int cell, const struct msg_str *name);
void where_end(void);

/* Around each message that the script's process sends: a handler sends nothing in the middle of a
 * frame. */
void where_hold(void);
void where_release(void);

/* In init: asks the script's process to send its place and to end. It may do neither. */
void where_ask(pid_t script);

#define WHERE_WAIT_MS 500	/* then init kills it */

#endif
