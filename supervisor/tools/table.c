/* Runs in: the supervisor.   Owns: nothing. The table of tools; one entry each. */
#include "supervisor/tools/tool.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/tools/run_script.h"

static const struct tool *const tools[] = {
	&run_script_tool,
};

const struct tool *
tool_at(size_t i)
{
	return i < sizeof(tools) / sizeof(*tools) ? tools[i] : NULL;
}

const struct tool *
tool_find(const char *name)
{
	const struct tool *tool;

	for (size_t i = 0; (tool = tool_at(i)); i++)
		if (strcmp(tool->name, name) == 0)
			return tool;
	return NULL;
}

void
tool_description_done(struct tool_description *description)
{
	free(description->description);
	free(description->input_schema);
	free(description->output_schema);
	memset(description, 0, sizeof(*description));
}
