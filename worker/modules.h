/* Modules that an import has not found: the supervisor is asked whether a set of packages that was
 * installed for the script's tenant has one, and mounts it then. Which imports ask:
 * worker/installed.py.
 */
#ifndef WORKER_MODULES_H
#define WORKER_MODULES_H

#include <Python.h>

#include <stdint.h>

/* The functions may_ask_module() -> bool, and ask_module(name: str) -> bool: True when a set that
 * has the module is mounted now. New references, or NULL with an exception set. */
PyObject *modules_may_ask(void);
PyObject *modules_ask(void);

/* From now on this process may ask for so many modules. */
void modules_begin(uint32_t modules);

#endif
