/* The raw layer of standard output and error: as _io.FileIO, but the two take turns.
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

/* Both descriptors are others now: waits, for about a second at most, until no other thread writes
 * to those of before. */
void turns_closed(void);

/* In the child of a fork: true when another thread of the parent was writing. It does not exist
 * any more, and the lock of a buffer above stays with it. */
bool turns_forked(void);

#endif
