/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded CPython: started and filled once in the zygote, used once in a worker.
 *
 * All functions are called on the one thread that called interpreter_start, which always holds the
 * GIL. The part in Python is bootstrap.py, which is frozen into the program.
 */
#ifndef WORKER_INTERPRETER_H
#define WORKER_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/message.h"

/* Bounds on the objects that a run may show; set by the zygote, before the interpreter starts. */
struct display_bounds {
	uint32_t objects, bytes;
	uint32_t pixels;			/* of a side of a picture */
	uint64_t file_bytes, files_bytes;	/* what outlives a script: of a file; of all */
};

extern struct display_bounds display_bounds;

/* Starts Python in the jail's file tree, which must be this process's root. Descriptors 0 to 2 must
 * be like the standard streams of workers (pipes). 0, or -errno with the step that failed in
 * *what_r (static). */
int interpreter_start(const char **what_r);

/* Imports the modules of CONFIGURE, learns others, and freezes all objects for the garbage
 * collector. Names that cannot be imported are appended to missing, whose array is malloc'ed and
 * big enough for them all; their texts are borrowed from configure. 0, or -errno with *what_r. */
int interpreter_preload(const struct msg_configure *configure, struct msg_strs *missing,
			const char **what_r);

/* After interpreter_preload: the modules of configure->learned that were learned, and the reasons
 * of the others, which are static. */
uint64_t interpreter_learned(struct msg_strs *unlearned_r, uint64_t *untried_r);

/* After interpreter_preload: the names of well-known modules that can be imported, "numpy, pandas".
 * Static. */
const char *interpreter_packages(void);

/* The version of Python, "3.11.2". Static. */
const char *interpreter_version(void);

/* A text that one of the frozen Python files defines under this name; "": there is none. */
const char *interpreter_text(const char *name);

/* In the zygote, once, after the last Python code there: brings CPython into the state that it
 * needs at a fork, for all later forks of this process and of its children. */
void interpreter_before_fork(void);

/* To be called in each forked process that will run Python. */
void interpreter_after_fork(void);

/* In the script's process, before READY: makes random state differ from that of other workers. 0 or
 * -EIO. */
int interpreter_fresh(void);

/* Instead of a script: imports the modules of PREPARE, whose packages are mounted, and hides them
 * until a script imports them. *trouble_r: why the worker cannot be used; "": it can. */
void interpreter_make_ready(const struct msg_prepare *prepare, struct msg_str *trouble_r);

/* Names a proxy on 127.0.0.1 in the environment, for all hosts except loopback. 0 or -EIO. */
int interpreter_use_proxy(unsigned int port);

/* Runs a script to its end, exit handlers included. environment: 1: a set of packages is mounted;
 * 0: none was requested; -errno: why it could not be mounted. The texts in *done_r live as long as
 * the process. Never fails: if there is no memory for a report, *done_r says so. */
void interpreter_run(const struct msg_run *run, int environment, struct msg_done *done_r);

/* ---- sessions ---- */

/* Called in the first process of a session, once JAIL_BACKGROUND exists: prepares the interpreter
 * for cells, whose __main__ is not a file. 0 or -EIO. */
int interpreter_session(void);

/* To be called before and after the fork(2) that copies a state. Unlike after a fork by Python
 * itself, the module random continues with the same numbers in both processes. */
void interpreter_before_copy(void);
void interpreter_after_copy(bool is_copy);

/* To be called when a cell has ended: from now on the standard output and error of all threads are
 * JAIL_BACKGROUND. Waits up to a second until other threads have finished their current write. */
void interpreter_streams_closed(void);

/* Lists the threads, processes and connections that are lost if the cell that begins now does not
 * end by itself. The texts live until the next call. */
void interpreter_at_stake(const struct msg_run *run, struct msg_at_stake *stake_r);

/* To be called in a copy that has become the state, because the cell's process was lost with its
 * threads, children and connections. The first n elements of end: how children of that process had
 * ended. */
struct child_end;
void interpreter_rolled_back(const struct child_end *end, size_t n);

/* Does the state's event loop have tasks that continue while the state waits? */
bool interpreter_has_tasks(void);

/* Runs these tasks until there is something to read on the line. */
void interpreter_go_on(int line);

/* To be called before and after a wait of the state: other threads run between the two calls. */
void interpreter_give_way(void);
void interpreter_take_back(void);

/* Drops signals that arrived while no code ran. */
void interpreter_drop_signals(void);

/* Runs a cell. Its objects stay. The texts in *done_r live until the next cell. */
void interpreter_cell(const struct msg_run *run, struct msg_done *done_r);

/* As interpreter_cell, but runs no cell: the value is a list of the variables that cells have made.
 * May run code of the script, such as a __repr__. */
void interpreter_inspect(const struct msg_run *run, struct msg_done *done_r);

#endif
