/* SPDX-License-Identifier: Apache-2.0 */
/* The place where a script was stopped: the stacks of its Python threads. Signal handlers, which
 * are installed once in the zygote, send them to the supervisor when the script's process crashes,
 * or when init asks because its time is over. Python shows the script the default actions; if the
 * script replaces the handlers, nothing is sent.
 */
#ifndef WORKER_WHERE_H
#define WORKER_WHERE_H

#include <stdint.h>
#include <sys/types.h>

struct msg_str;

/* In the zygote, on its only thread, once Python is started. 0, or -errno. */
int where_prepare(void);

/* In the script's process, at the beginning and the end of a run. id: that of RUN; cell: its
 * number, 0: a script. name: the script's file in tracebacks; NULL: script.py. Processes that it
 * forks send nothing. */
void where_begin(uint64_t id, unsigned int cell, const struct msg_str *name);
void where_end(void);

/* Stand around each message of the script's process, so that a handler sends nothing in the middle
 * of a frame. */
void where_hold(void);
void where_release(void);

/* In init: asks the script's process to send its stacks and end. It may do neither. */
void where_ask(pid_t script);

#define WHERE_WAIT_MS 500	/* then init kills it */

#endif
