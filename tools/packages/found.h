/* What a tenant has had installed is found by a plain import: when the script's own code imports
 * a module that is not there, one of the tenant's sets that has it is mounted, and the import goes
 * on. Nothing is installed for it, and no index is asked.
 */
#ifndef TOOLS_PACKAGES_FOUND_H
#define TOOLS_PACKAGES_FOUND_H

#include <jansson.h>

#include "mcp/tool.h"
#include "tools/sets/set.h"

/* Of one execution, embedded in the run of a tool. Zeroed: nothing was found. */
struct found {
	char name[SET_NAME + 1];	/* of the set that was chosen last */
	json_t *set;			/* NULL: none was */
};

/* Lets a request ask for modules, if its tenant has anything. */
void found_offer(const struct tool_host *host, struct execution_request *request);

/* Answers the execution: of the tenant's sets that have the module, are made for its interpreter
 * and are allowed by policy now, the one that the tenant has used last. has: what is mounted in its
 * worker (NULL: nothing); the set has all of that, as it is. */
void found_answer(struct found *found, const struct tool_host *host, struct execution *execution,
		  const struct execution_module *module, const json_t *has);

void found_done(struct found *found);

/* What imports have found, for the answer: {"modules", "set", "packages"}, as the schema has it. NULL:
 * nothing. */
json_t *found_describe(const struct tool_host *host, const struct outcome *outcome);

#endif
