/* SPDX-License-Identifier: Apache-2.0 */
/* Lets plain imports find packages that were installed for the tenant before. When the script's own
 * code imports a module that does not exist, one of the tenant's sets that has it is mounted, and
 * the import continues. Nothing is installed, and no index is asked.
 */
#ifndef TOOLS_PACKAGES_FOUND_H
#define TOOLS_PACKAGES_FOUND_H

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/sets/set.h"

/* The state of one execution, embedded in the run of a tool. Zeroed: nothing was found. */
struct found {
	char name[SET_NAME + 1];	/* of the set chosen last */
	json_t *set;			/* NULL: none was */
};

/* Lets a request ask for modules, if its tenant has any set. */
void found_offer(const struct tool_host *host, struct execution_request *request);

/* Answers the execution with a set that has the module, is made for its interpreter, is allowed by
 * policy now, and contains the packages has unchanged; of several, the one that the tenant used
 * last. has: the packages that are mounted in its worker; NULL: none. */
void found_answer(struct found *found, const struct tool_host *host, struct execution *execution,
		  const struct execution_module *module, const json_t *has);

void found_done(struct found *found);

/* The found modules, for the answer: {"modules", "set", "packages"}, by the schema. NULL: none. */
json_t *found_describe(const struct tool_host *host, const struct outcome *outcome);

#endif
