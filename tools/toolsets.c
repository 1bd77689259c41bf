/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "tools/toolsets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/catalog.h"
#include "policy/config.h"
#include "tools/check/check_environment.h"
#include "tools/check/validate_script.h"
#include "tools/compat/python_sandbox.h"
#include "tools/compat/run_python.h"
#include "tools/job/background.h"
#include "tools/packages/install.h"
#include "tools/repl/run_repl.h"
#include "tools/script/run_script.h"
#include "tools/session/repl_sessions.h"
#include "tools/sets/owned.h"
#include "tools/shared/environment.h"
#include "tools/shared/other_tools.h"
#include "tools/shared/resources.h"
#include "tools/shared/skills.h"
#include "tools/shared/tools.h"

#define SET_TOOLS_MAX 16

/* policy/keys.def knows the names too. */
static const struct {
	const char *name;
	const struct tool *tool[SET_TOOLS_MAX];		/* up to the first NULL */
} sets[] = {
	{ "native", { &run_script_tool, &run_repl_tool, &validate_script_tool,
		      &install_package_tool, &check_environment_tool, &job_tool,
		      &search_tools_tool, &local_file_tool, &save_file_tool } },
	{ "exec-sandbox", { &execute_python_tool, &exec_sandbox_environment_tool,
			    &exec_sandbox_validate_tool } },
	{ "python-sandbox", { &execute_code_tool, &validate_code_tool,
			      &get_sandbox_info_tool } },
	{ "run-python", { &run_python_code_tool } },
};

static const struct prompt_provider no_prompts = { .n_prompts = 0 };

static const struct tool *const *
set_of(const char *name)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strcmp(sets[i].name, name) == 0)
			return sets[i].tool;
	xassert(false);
}

static bool
set_has(const char *set, const char *name)
{
	for (const struct tool *const *tool = set_of(set); *tool; tool++)
		if (strcmp((*tool)->name, name) == 0)
			return true;
	return false;
}

bool
toolsets_wants(const struct config *config, const char *set)
{
	for (size_t i = 0; i < config->mcp.toolsets.n; i++)
		if (strcmp(config->mcp.toolsets.item[i], set) == 0)
			return true;
	return false;
}

int
toolsets_check(const struct config *config, FILE *errors)
{
	const struct config_list *active = &config->mcp.toolsets;
	char at[PATH_MAX];
	int r = 0;

	config_place(config, "mcp", "toolsets", at, sizeof(at));
	for (size_t i = 1; i < active->n; i++)
		for (size_t k = 0; k < i; k++)
			for (const struct tool *const *tool = set_of(active->item[i]); *tool;
			     tool++) {
				if (!set_has(active->item[k], (*tool)->name))
					continue;
				fprintf(errors, "%s: toolsets: both %s and %s have a tool %s\n",
					at, active->item[k], active->item[i], (*tool)->name);
				r = -EINVAL;
			}
	return r;
}

/* A tool that would refuse every call is not listed: its description only costs tokens. */
static bool
toolsets_is_offered(const struct tool *tool, const struct config *config)
{
	struct why why;

	if (tool == &local_file_tool || tool == &save_file_tool)
		return config->files.roots;
	return tool != &install_package_tool || install_is_configured(config, &why) == 0;
}

void
toolsets_add(struct catalog *catalog, const struct config *config)
{
	const struct config_list *active = &config->mcp.toolsets;

	for (size_t i = 0; i < active->n; i++)
		for (const struct tool *const *tool = set_of(active->item[i]); *tool; tool++)
			if (toolsets_is_offered(*tool, config))
				catalog_add_tool(catalog, *tool);
	if (toolsets_wants(config, "run-python"))
		catalog->logging = catalog->quiet = true;
	if (toolsets_wants(config, "native"))
		catalog->skills = skills_load(config);
	catalog->adopt = background_adopt;
	if (!catalog->resources)
		catalog->resources = &own_resources;
	/* Some clients ask for every list, and leave a server that answers with an error. */
	if (!catalog->prompts)
		catalog->prompts = &no_prompts;
}

void
toolsets_load(const struct config *config)
{
	environment_guess(config);
	if (config->packages.store)
		owned_load(config->packages.store);
}

bool
toolsets_renew(const struct engine *engine)
{
	other_tools_know(engine_upstream(engine));
	return environment_name(engine_packages(engine), engine_platform(engine));
}

void
toolsets_stop(void)
{
	background_forget();
	other_tools_know(NULL);
}

void
toolsets_forget(void)
{
	repl_sessions_close_all();
	resources_forget();
	skills_forget();
	environment_forget();
	owned_unload();
}
