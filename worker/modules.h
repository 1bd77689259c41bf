/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that an import has not found. The worker asks the supervisor, which mounts a set of
 * packages of the tenant that has the module, if there is one. worker/installed.py chooses the
 * imports that ask.
 */
#ifndef WORKER_MODULES_H
#define WORKER_MODULES_H

#include <Python.h>

#include <stdint.h>

/* The functions may_ask_module() -> bool, and ask_module(name: str) -> bool: True when a set that
 * has the module is mounted now. New references, or NULL with an exception set. */
PyObject *modules_may_ask(void);
PyObject *modules_ask(void);

/* From now on this process may ask for this many modules. */
void modules_begin(uint32_t modules);

#endif
