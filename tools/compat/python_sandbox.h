/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tools "python-sandbox". It replaces the server python_sandbox_server: it has the same
 * names, arguments, defaults and answers, so that clients need no change. The configuration says
 * which modules code may import: tiers, and [python-sandbox].
 */
#ifndef TOOLS_COMPAT_PYTHON_SANDBOX_H
#define TOOLS_COMPAT_PYTHON_SANDBOX_H

#include "mcp/tool.h"
#include "policy/imports.h"
#include "tools/shared/tiers.h"

extern const struct tool execute_code_tool;
extern const struct tool validate_code_tool;		/* validate_code.c */
extern const struct tool get_sandbox_info_tool;		/* sandbox_info.c */

/* The limits of this set of tools, within the limits of all tools. */
uint32_t python_sandbox_most_seconds(const struct config *config);
uint32_t python_sandbox_default_seconds(const struct config *config);
uint64_t python_sandbox_default_memory(const struct config *config);

/* Writes a size of memory in the form that its calls use, "128m". */
void python_sandbox_memory_text(uint64_t bytes, char *text, size_t size);

/* May code import the modules of a tier? If the configuration has a list of modules in place of
 * tiers, no tier is used. */
bool python_sandbox_has(const struct config *config, bool container, enum tier tier);

/* The modules that code may import; the caller releases the list by imports_done. container: the
 * call has use_container, and may also import the tier data_science. */
void python_sandbox_imports(const struct config *config, bool container,
			    struct import_list *list_r);

#endif
