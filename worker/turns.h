/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of standard output and error below the text layer. The raw layer is like _io.FileIO,
 * but the two streams take turns. The buffer is like _io.BufferedWriter, but output of threads of
 * earlier cells bypasses it.
 *
 * Each stream is a separate pipe, and a reader of both sees no order between them. So a write to
 * one stream waits, for a bounded time, until earlier writes to the other one were read. This is in
 * C, so that no frame of the worker appears in a script's tracebacks or trace functions.
 */
#ifndef WORKER_TURNS_H
#define WORKER_TURNS_H

#include <Python.h>

#include <stdbool.h>

/* A new type, as a new reference, or NULL with an exception set. */
PyObject *turns_type(void);

/* The same for the buffer above it. */
PyObject *turns_buffer_type(void);

/* From now on output of threads of earlier cells goes to these descriptors, which do not block, and
 * only that of cells to standard output and error. 0; -1 with errno. */
int turns_background(int out, int err);

/* Marks all existing threads, except the calling one, as threads of earlier cells. */
void turns_divide(void);

/* Marks the calling thread in the same way, and those that begin until turns_divide is called
 * again. */
void turns_rest(void);

/* Called after both descriptors were replaced: waits, for about a second at most, until no other
 * thread writes to the old ones. False: a thread still does, and may have the lock of a buffer. */
bool turns_closed(void);

/* In the child of a fork: true if another thread of the parent was writing. That thread does not
 * exist here, so its lock of a buffer is never released. */
bool turns_forked(void);

#endif
