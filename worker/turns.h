/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of Python's standard output and error below the text layer. The raw layer is like
 * _io.FileIO, but the two streams take turns. The buffer is like _io.BufferedWriter, but output of
 * threads of earlier cells bypasses it.
 *
 * Each stream is a separate pipe, and a reader of both pipes cannot see in which order they were
 * written to. So a write to one stream waits, for a bounded time, until earlier writes to the other
 * stream were read. The layers are in C, so that no frame of the worker appears in a script's
 * tracebacks or trace functions.
 */
#ifndef WORKER_TURNS_H
#define WORKER_TURNS_H

#include <Python.h>

#include <stdbool.h>

/* The type of the raw layer. A new reference, or NULL with an exception set. */
PyObject *turns_type(void);

/* The type of the buffer above it. A new reference, or NULL with an exception set. */
PyObject *turns_buffer_type(void);

/* From now on output of threads of earlier cells goes to these descriptors, which do not block, and
 * only output of cells goes to standard output and error. 0; -1 with errno. */
int turns_background(int out, int err);

/* Marks all existing threads, except the calling one, as threads of earlier cells. */
void turns_divide(void);

/* Marks the calling thread as a thread of an earlier cell, too, and all threads that begin before
 * the next call of turns_divide. */
void turns_rest(void);

/* To be called after the descriptors 1 and 2 were replaced: waits, for about a second at most,
 * until no other thread writes to the old ones. False: a thread still does, and may have the lock
 * of a buffer. */
bool turns_closed(void);

/* To be called in the child of a fork. True: another thread of the parent was writing. That thread
 * does not exist in the child, so the lock of a buffer that it has is never released. */
bool turns_forked(void);

#endif
