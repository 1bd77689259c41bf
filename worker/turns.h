/* The raw layer of standard output and error: as _io.FileIO, but the two take turns.
 *
 * Each stream is a pipe of its own, and whoever reads both sees no order between them. What
 * is written to one after the other was written to waits, for a bounded time, until that
 * has been read. In C, so that no frame of ours shows in a script's tracebacks or to its
 * trace functions.
 */
#ifndef WORKER_TURNS_H
#define WORKER_TURNS_H

#include <Python.h>

/* A new type, as a new reference, or NULL with an exception set. */
PyObject *turns_type(void);

#endif
