/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of standard output and error below the text: the raw one as _io.FileIO, but the two
 * take turns; the buffer as _io.BufferedWriter, but what threads of earlier cells write passes it
 * by.
 *
 * Each stream is a pipe of its own, and a reader of both sees no order between them. What
 * is written to one after the other was written to waits, for a bounded time, until that
 * has been read. In C, so that no frame of the worker's shows in a script's tracebacks or to its
 * trace functions.
 */
#ifndef WORKER_TURNS_H
#define WORKER_TURNS_H

#include <Python.h>

#include <stdbool.h>

/* A new type, as a new reference, or NULL with an exception set. */
PyObject *turns_type(void);

/* Likewise, of the buffer above it. */
PyObject *turns_buffer_type(void);

/* What the threads of earlier cells write goes to these descriptors, which do not block, in place
 * of standard output and error, which are those of cells. 0; -1 with errno. */
int turns_background(int out, int err);

/* All threads that there are now are of earlier cells, but the calling one. */
void turns_divide(void);

/* The same for the calling one, and for those that begin from now on, until they are divided. */
void turns_rest(void);

/* Both descriptors are others now: waits, for about a second at most, until no other thread writes
 * to those of before. False: some still do, and may have the lock of a buffer. */
bool turns_closed(void);

/* In the child of a fork: true when another thread of the parent was writing. It does not exist
 * any more, and the lock of a buffer above stays with it. */
bool turns_forked(void);

#endif
