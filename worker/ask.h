/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a script's process to the supervisor. A thread asks and waits for the answer.
 * Prompts and questions for modules (worker/prompt.h, worker/modules.h) take turns: one of them is
 * open at a time. Calls of tools (worker/tools.h) need no turn: any number may be open at the same
 * time. One of the threads that wait reads the control socket for all of them.
 */
#ifndef WORKER_ASK_H
#define WORKER_ASK_H

#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "proto/frame.h"

/* From now on this process executes the run of this id. any: it may ask questions. */
void ask_begin(uint64_t id, bool any);

/* The id of the run; 0: this process may not ask. A process that the script has forked may not ask,
 * although it has the socket, too. */
uint64_t ask_run(void);

/* A question that was sent, and its answer. Its members belong to ask.c; zeroed: none. */
struct question {
	LIST_ENTRY(question) link;
	unsigned int run;		/* the run that asked it: its number within the process */
	uint32_t number;		/* of a call of a tool; 0: a question that takes turns */
	bool open;			/* it has no answer yet */
	struct frame answer;
	PyThread_type_lock wake;	/* NULL: not made yet; released to wake the thread */
	bool waits;			/* a thread waits for wake */
};

/* Waits for the turn to ask. Called with the interpreter's lock, which is released during the wait.
 * 0: the caller has the turn until ask_leave. -1: a signal's handler has raised an exception; or,
 * without an exception, this process may not ask, or the caller is a signal's handler in the thread
 * that has the turn. */
int ask_enter(void);
void ask_leave(void);

/* Is a question open? If so, a thread may be waiting for the answer on the control socket. */
bool ask_is_open(void);

/* Sends a call of a tool with this number. Needs no turn. 0: question_await must follow. -1: it
 * could not be sent. */
int question_send(struct question *question, const struct msg *msg, uint32_t number);

/* Waits for the answer, and returns as ask() does. Afterwards the question has ended, even after
 * -1.
 */
int question_await(struct question *question, struct frame *frame_r);

/* To be called in a turn: sends a question and waits for the answer. 0 with *frame_r, which the
 * caller releases by frame_done; or -1, with an exception set if a signal's handler has raised one.
 */
int ask(const struct msg *question, struct frame *frame_r);

#endif
