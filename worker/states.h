/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a session, for its init: copies of them, their ends, and what the supervisor is
 * told of them.
 */
#ifndef WORKER_STATES_H
#define WORKER_STATES_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/message.h"

/* Sends a message to the supervisor. */
void states_send(const struct msg *msg);

/* Sends STATES if something has changed. It goes before any other report. A slot whose head has
 * ended still holds a state while it has a spare. */
void states_tell(void);

/* Sends COPIED about the first head of a session, which is still starting. */
void states_tell_first(void);

/* ---- a copy: an operation of init ---- */

void states_copy(const struct msg_copy *copy);

/* Is a copy being made? Then *slot_r is the slot that is copied, and *line_r the line to the copy.
 */
bool states_is_copying(unsigned int *slot_r, int *line_r);

/* These end the operation: the copy is the process pid; the head could not make a copy; or the head
 * is gone. */
void states_forked(pid_t pid);
void states_refused(void);
void states_lost(void);

/* Ends a state, and waits: its memory is free when the next cell begins and memory is measured. */
void states_drop(unsigned int slot);

#endif
