/* What a script's process asks the supervisor, and waits for: one question at a time, by one of its
 * threads. Its kinds: worker/prompt.h, worker/modules.h.
 */
#ifndef WORKER_ASK_H
#define WORKER_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"

/* From now on this process runs the run of that id. any: it may ask. */
void ask_begin(uint64_t id, bool any);

/* The id; 0: this process may not ask. One that the script forked has the socket too, and may
 * not. */
uint64_t ask_run(void);

/* Waits for the turn to ask, with the interpreter's lock, which it gives up meanwhile. 0, and then
 * ask_leave has to follow. -1: a signal's handler has raised an exception; or, without one, this
 * process may not ask, or this is such a handler and its thread has the turn already. */
int ask_enter(void);
void ask_leave(void);

/* A question has no answer yet: a thread may be waiting for it on the control socket. */
bool ask_is_open(void);

/* Sends a question and waits for the answer, which is in *frame_r then (frame_done). 0; or -1, with
 * an exception set if a signal's handler has raised one. */
int ask(const struct msg *question, struct frame *frame_r);

#endif
