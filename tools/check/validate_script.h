/* SPDX-License-Identifier: Apache-2.0 */
/* The tool validate_script: checks a script's metadata and syntax without running it. */
#ifndef TOOLS_CHECK_VALIDATE_SCRIPT_H
#define TOOLS_CHECK_VALIDATE_SCRIPT_H

#include "mcp/tool.h"
#include "tools/packages/missing.h"
#include "tools/shared/requirements.h"

extern const struct tool validate_script_tool;

/* Gives the answer of a call: calls host->on_answer once. findings->trouble is NULL. */
typedef void validate_script_answer(const struct tool_host *host, const char *profile,
				    const struct findings *findings);

/* The start and cancel (mcp/tool.h) of a tool that takes the same arguments and gives an answer of
 * its own. dependencies_replace: as in struct requirements_probe. */
struct tool_run *validate_script_start(const struct tool_host *host, const json_t *json,
				       bool dependencies_replace,
				       validate_script_answer *answer);
/* Is the i-th missing import really missing: does no requirement of the script, and no set that the
 * tenant has installed, bring it? True: text_r says what can be done. */
bool validate_script_lacks(const struct tool_host *host, const struct findings *findings, size_t i,
			   char text_r[MISSING_ADVICE]);
void validate_script_cancel(struct tool_run *run, enum cancel_reason reason);

#endif
