/* SPDX-License-Identifier: Apache-2.0 */
/* The modules that the imports of an execution ask for: one at a time, and a bounded number. The
 * watcher (engine/execution.h) finds the set of packages with the module, and the keeper mounts it.
 */
#ifndef ENGINE_EXECUTION_MODULES_H
#define ENGINE_EXECUTION_MODULES_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/message.h"

struct execution;
struct msg_module;

/* The requests of one execution for modules. */
struct execution_modules;

/* For an execution that may ask for modules. Never NULL; nothing was asked for. */
struct execution_modules *modules_new(void);
void modules_free(struct execution_modules *modules);	/* NULL is fine */

/* The execution asks for a module. 0; or -EBADMSG: it may not ask, or not now, or the name is not
 * valid. */
int modules_take(struct execution *execution, const struct msg_module *module);

/* Would an import of this module find this set, if the execution ran now? */
bool modules_would_find(const struct execution *execution, const char *name,
			const char *environment);

/* If the script began without a set of packages and an import has found one: the name of the first
 * module that was found. Otherwise NULL. */
const char *modules_began_without(const struct execution *execution);

/* To be called when the execution has ended: stops waiting for a mount. NULL is fine. */
void modules_end(struct execution_modules *modules);

/* The names of the modules that were found, and the set of packages that has them (NULL: no module
 * was found). Returns the number of names. Borrowed. modules may be NULL. */
size_t modules_found(const struct execution_modules *modules,
		     const char *found_r[MODULES_OF_RUN_MAX], const char **environment_r);

#endif
