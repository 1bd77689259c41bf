/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Functions for all tools. */
#include "mcp/tool.h"

#include <stdlib.h>
#include <string.h>

void
tool_description_done(struct tool_description *description)
{
	free(description->description);
	free(description->input_schema);
	free(description->installed);
	free(description->output_schema);
	memset(description, 0, sizeof(*description));
}

void
tool_refuse(const struct tool_host *host, const char *text)
{
	const struct tool_answer answer = {
		.text = text,
		.text_len = strlen(text),
		.is_error = true,
		.not_run = true,
	};

	host->on_answer(host->arg, &answer);
}
