/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded CPython: started and filled once in the zygote, used once in a worker.
 *
 * Everything here runs on the one thread that called interpreter_start, which holds the
 * GIL for good. Its Python half is bootstrap.py, frozen in.
 */
#ifndef WORKER_INTERPRETER_H
#define WORKER_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/message.h"

/* How much a run may show; set by the zygote, before the interpreter starts. */
struct display_bounds {
	uint32_t objects, bytes;
};

extern struct display_bounds display_bounds;

/* Starts Python in the jail's file tree, which must be this process's root. Descriptors
 * 0 to 2 must be what standard streams of workers look like (pipes). 0, or -errno with
 * *what_r saying what failed (static). */
int interpreter_start(const char **what_r);

/* Imports modules, freezes the garbage collector's view of all objects. Names
 * that cannot be imported are appended to missing, whose array is malloc'ed and big
 * enough for them all; their texts are borrowed from modules. 0, or -errno with
 * *what_r. */
int interpreter_preload(const struct msg_strs *modules, struct msg_strs *missing,
			const char **what_r);

/* After that: the names of well-known modules that can be imported, "numpy, pandas"; static. */
const char *interpreter_packages(void);

/* "3.11.2": static. */
const char *interpreter_version(void);

/* A text that one of the frozen files has under this name; "" if it has none. */
const char *interpreter_text(const char *name);

/* In the zygote, once, when no more Python is to run there: all that is forked of it, and of
 * that, is as CPython wants it to be at the moment of a fork. */
void interpreter_before_fork(void);

/* In each process that is to run Python. */
void interpreter_after_fork(void);

/* In the script's process, before READY: nothing is shared with sibling workers.
 * 0 or -EIO. */
int interpreter_fresh(void);

/* Names a proxy on 127.0.0.1 in the environment, for everything but loopback. 0 or -EIO. */
int interpreter_use_proxy(unsigned int port);

/* Runs a script to its end, exit handlers included. environment: 1 when one is mounted, 0
 * when none is asked for, or the -errno for which there is none. The texts in *done_r live as long
 * as the process. Never fails: when there is no memory left to say more, *done_r says
 * so. */
void interpreter_run(const struct msg_run *run, int environment, struct msg_done *done_r);

/* ---- sessions ---- */

/* In the first process of a session, with JAIL_BACKGROUND in place: __main__ is not a file. 0 or
 * -EIO. */
int interpreter_session(void);

/* Around the fork(2) that copies a state. Unlike after a fork of its own making random
 * goes on with the same numbers in both. */
void interpreter_before_copy(void);
void interpreter_after_copy(bool is_copy);

/* A cell has ended, and standard output and error are JAIL_BACKGROUND's now, as for all threads
 * from here on. These have come to the end of what they were writing, if that takes no longer than
 * a second. */
void interpreter_streams_closed(void);

/* What is lost when the cell that begins does not end by itself. False: nothing. The texts live
 * until the next call. */
bool interpreter_at_stake(const struct msg_run *run, struct msg_at_stake *stake_r);

/* In a copy that is the state now: the cell that was to take its place is gone, with all that its
 * process had. The first n of end: children that had ended by then. */
struct child_end;
void interpreter_rolled_back(const struct child_end *end, size_t n);

/* Whether tasks of its event loop go on while the state waits. */
bool interpreter_has_tasks(void);

/* Runs these until there is something to read on the line. */
void interpreter_go_on(int line);

/* While the state waits: other threads run between the two. */
void interpreter_give_way(void);
void interpreter_take_back(void);

/* Forgets what signals came while nothing ran. */
void interpreter_drop_signals(void);

/* Runs a cell; its objects stay. The texts in *done_r live until the next one. */
void interpreter_cell(const struct msg_run *run, struct msg_done *done_r);

/* The value is a list of the variables that cells have made. As interpreter_cell; may run code of
 * the script, such as a __repr__. */
void interpreter_inspect(const struct msg_run *run, struct msg_done *done_r);

#endif
