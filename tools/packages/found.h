/* SPDX-License-Identifier: Apache-2.0 */
/* Lets imports find packages that were installed for the tenant before. When the script's own code
 * imports a module that does not exist, one of the tenant's sets that has this module is mounted,
 * and the import continues. Nothing is installed, and no index is asked.
 */
#ifndef TOOLS_PACKAGES_FOUND_H
#define TOOLS_PACKAGES_FOUND_H

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/sets/set.h"

/* The state of one execution, embedded in the run of a tool. Zeroed: nothing was found. */
struct found {
	char name[SET_NAME + 1];	/* of the set that was chosen last */
	json_t *set;			/* that set; NULL: none was chosen */
};

/* Lets a request ask for modules, if its tenant has any set. */
void found_offer(const struct tool_host *host, struct execution_request *request);

/* Answers the execution with one of the tenant's sets: it has the module, is made for the
 * execution's interpreter, is allowed by policy now, and contains unchanged the packages that are
 * mounted in the worker (has; NULL: none). If there are several such sets, module->mounted is
 * chosen, or else the one that the tenant used last. */
void found_answer(struct found *found, const struct tool_host *host, struct execution *execution,
		  const struct execution_module *module, const json_t *has);

/* Would found_answer choose this set? Notes nothing. */
bool found_would_be(const struct tool_host *host, const struct execution_module *module,
		    const char *environment);

void found_done(struct found *found);

/* Describes the modules that were found, for the answer: {"modules", "set", "packages"}, as the
 * schema demands. NULL: none was found. */
json_t *found_describe(const struct tool_host *host, const struct outcome *outcome);

/* Has a set that the tenant has installed earlier this module? Reads some directories. */
bool found_has(const struct tool_host *host, const char *module);

#endif
