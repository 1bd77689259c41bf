/* Runs in: the supervisor.   Owns: nothing. What the program itself offers, look-up, and
 * what all tools share. */
#include "supervisor/tools/catalog.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/tools/check_environment.h"
#include "supervisor/tools/job.h"
#include "supervisor/tools/resources.h"
#include "supervisor/tools/run_script.h"
#include "supervisor/tools/validate_script.h"

const struct tool *
catalog_find(const struct catalog *catalog, const char *name)
{
	for (size_t i = 0; i < catalog->n_tools; i++)
		if (strcmp(catalog->tool[i]->name, name) == 0)
			return catalog->tool[i];
	return NULL;
}

void
catalog_add_tool(struct catalog *catalog, const struct tool *tool)
{
	if (catalog->n_tools == CATALOG_TOOLS_MAX || catalog_find(catalog, tool->name))
		abort();
	catalog->tool[catalog->n_tools++] = tool;
}

void
catalog_add_own(struct catalog *catalog)
{
	catalog_add_tool(catalog, &run_script_tool);
	catalog_add_tool(catalog, &validate_script_tool);
	catalog_add_tool(catalog, &check_environment_tool);
	catalog_add_tool(catalog, &job_tool);
	if (!catalog->resources)
		catalog->resources = &own_resources;
}

void
tool_description_done(struct tool_description *description)
{
	free(description->description);
	free(description->input_schema);
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
