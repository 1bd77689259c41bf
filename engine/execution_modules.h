/* SPDX-License-Identifier: Apache-2.0 */
/* The modules that the imports of an execution ask for: one at a time, and a bounded number. The
 * watcher (engine/execution.h) finds the set of packages with the module, and the keeper mounts it.
 */
#ifndef ENGINE_EXECUTION_MODULES_H
#define ENGINE_EXECUTION_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message.h"

struct execution;
struct mounting;

/* The request of an execution for a module. The members belong to execution_modules.c. Zeroed:
 * nothing was asked for. */
struct execution_modules {
	uint32_t number;			/* of the last one that was asked for; 0: none */
	bool open;				/* it is not answered yet */
	struct mounting *mounting;		/* NULL: nothing is being mounted */
	char name[MODULE_NAME_MAX + 1];		/* of the last one */
	char found[MODULES_OF_RUN_MAX][MODULE_NAME_MAX + 1];
	size_t n_found;
	char asked[ENVIRONMENT_NAME + 1];	/* the set that is being mounted */
	char environment[ENVIRONMENT_NAME + 1];	/* the mounted one; "": no import has found one */
};

/* The execution asks for a module. 0; or -EBADMSG: it may not ask, or not now, or the name is not
 * valid. */
int modules_take(struct execution *execution, const struct msg_module *module);

/* To be called when the execution has ended: stops waiting for a mount. */
void modules_end(struct execution_modules *modules);

/* The names of the modules that were found. Returns their number. Borrowed. */
size_t modules_found(const struct execution_modules *modules,
		     const char *found_r[MODULES_OF_RUN_MAX]);

#endif
