/* The set of tools "python-sandbox": those of the server python_sandbox_server, with its
 * names, arguments, defaults and answers, so that its clients need no change. Which modules
 * code may import is the configuration's: tiers, [python-sandbox].
 */
#ifndef SUPERVISOR_TOOLS_PYTHON_SANDBOX_H
#define SUPERVISOR_TOOLS_PYTHON_SANDBOX_H

#include "policy/imports.h"
#include "supervisor/tools/tool.h"

extern const struct tool execute_code_tool;
extern const struct tool validate_code_tool;		/* validate_code.c */
extern const struct tool get_sandbox_info_tool;

/* What code may import here; imports_done. container: a call with use_container, which has
 * the modules of the tier data_science as well. */
void python_sandbox_imports(const struct config *config, bool container,
			    struct import_list *list_r);

#endif
