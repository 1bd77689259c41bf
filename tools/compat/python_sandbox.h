/* The set of tools "python-sandbox": those of the server python_sandbox_server, with its
 * names, arguments, defaults and answers, so that its clients need no change. Which modules
 * code may import is the configuration's: tiers, [python-sandbox].
 */
#ifndef TOOLS_COMPAT_PYTHON_SANDBOX_H
#define TOOLS_COMPAT_PYTHON_SANDBOX_H

#include "mcp/tool.h"
#include "policy/imports.h"
#include "tools/shared/tiers.h"

extern const struct tool execute_code_tool;
extern const struct tool validate_code_tool;		/* validate_code.c */
extern const struct tool get_sandbox_info_tool;		/* sandbox_info.c */

/* The bounds in force: the set's own, within those of everything. */
uint32_t python_sandbox_most_seconds(const struct config *config);
uint32_t python_sandbox_default_seconds(const struct config *config);
uint64_t python_sandbox_default_memory(const struct config *config);

/* "128m", as its calls have it. */
void python_sandbox_memory_text(uint64_t bytes, char *text, size_t size);

/* Does a tier count? Not if the configuration has a list instead of all tiers. */
bool python_sandbox_has(const struct config *config, bool container, enum tier tier);

/* What code may import here; imports_done. container: a call with use_container, which has
 * the modules of the tier data_science as well. */
void python_sandbox_imports(const struct config *config, bool container,
			    struct import_list *list_r);

#endif
