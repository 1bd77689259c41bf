/* Runs in: the supervisor.   Owns: the descriptions of the tools, made once at start. */
#include "supervisor/mcp.h"

#include <stdlib.h>

#include "supervisor/revision.h"
#include "supervisor/tools/tool.h"
#include "supervisor/xalloc.h"

struct mcp {
	struct mcp_options options;
	struct tool_description *tools;
	size_t n_tools;
};

struct mcp *
mcp_new(const struct mcp_options *options)
{
	struct mcp *mcp = xcalloc(1, sizeof(*mcp));
	const struct tool *tool;

	mcp->options = *options;
	while (tool_at(mcp->n_tools))
		mcp->n_tools++;
	mcp->tools = xcalloc(mcp->n_tools, sizeof(*mcp->tools));
	for (size_t i = 0; (tool = tool_at(i)); i++)
		tool->describe(options->config, &mcp->tools[i]);
	return mcp;
}

void
mcp_free(struct mcp *mcp)
{
	if (!mcp)
		return;
	for (size_t i = 0; i < mcp->n_tools; i++)
		tool_description_done(&mcp->tools[i]);
	free(mcp->tools);
	free(mcp);
}

struct event_base *
mcp_base(const struct mcp *mcp)
{
	return mcp->options.base;
}

void
mcp_host(const struct mcp *mcp, struct tenant *tenant, struct tool_host *host_r)
{
	*host_r = (struct tool_host){
		.engine = mcp->options.engine,
		.tenant = tenant,
		.config = mcp->options.config,
	};
}

const char *
mcp_instructions(const struct mcp *mcp)
{
	(void)mcp;
	return "Runs Python. Every run_script call gets a fresh, isolated process of its own; "
	       "nothing survives the call, so send a whole program each time.";
}

void
mcp_write_tools(const struct mcp *mcp, const struct revision *revision,
		struct jsonout *out)
{
	revision_write_tools(revision, out, mcp->tools, mcp->n_tools);
}
