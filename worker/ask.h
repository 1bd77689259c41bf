/* Questions of a script's process to the supervisor. A thread asks and waits for the answer; one
 * question is open at a time. Kinds of questions: worker/prompt.h, worker/modules.h.
 */
#ifndef WORKER_ASK_H
#define WORKER_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"

/* From now on this process executes the run of this id. any: it may ask. */
void ask_begin(uint64_t id, bool any);

/* The id of the run; 0: this process may not ask. A process that the script has forked has the
 * socket too, and may not ask. */
uint64_t ask_run(void);

/* Waits for the turn to ask. Called with the interpreter's lock, which is released meanwhile. 0:
 * ask_leave must follow. -1: a signal's handler has raised an exception; or, without an exception,
 * this process may not ask, or the caller is a signal's handler in the thread that has the turn. */
int ask_enter(void);
void ask_leave(void);

/* Whether a question is open: a thread may be waiting for the answer on the control socket. */
bool ask_is_open(void);

/* Sends a question and waits for the answer: 0 with *frame_r (frame_done); or -1, with an exception
 * set if a signal's handler has raised one. */
int ask(const struct msg *question, struct frame *frame_r);

#endif
