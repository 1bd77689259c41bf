/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the descriptions of the tools, and the state that all
 * requests share. */
#include "mcp/context.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "govern/gate.h"
#include "mcp/catalog.h"
#include "mcp/conversation_parts.h"
#include "mcp/seal.h"
#include "mcp/tool_list.h"
#include "policy/config.h"

struct mcp *
mcp_context_new(const struct mcp_options *options)
{
	struct mcp *mcp = xcalloc(1, sizeof(*mcp));
	const struct catalog *catalog = options->catalog;

	mcp->options = *options;
	if (!options->seal) {
		mcp->own_seal = mcp_seal_new_random();
		mcp->options.seal = mcp->own_seal;
	}
	mcp->tools = xcalloc(catalog->n_tools, sizeof(*mcp->tools));
	mcp->schema = xcalloc(catalog->n_tools, sizeof(*mcp->schema));
	for (size_t i = 0; i < catalog->n_tools; i++) {
		tool_describe(catalog->tool[i], options->config, &mcp->tools[i]);
		mcp->schema[i] = xalloc_check(json_loads(mcp->tools[i].input_schema, 0, NULL));
	}
	mcp->lists = tool_lists_new(catalog);
	LIST_INIT(&mcp->runs);
	LIST_INIT(&mcp->conversations);
	return mcp;
}

void
mcp_context_free(struct mcp *mcp)
{
	for (size_t i = 0; i < mcp->options.catalog->n_tools; i++) {
		tool_description_done(&mcp->tools[i]);
		json_decref(mcp->schema[i]);
	}
	free(mcp->tools);
	free(mcp->schema);
	tool_lists_free(mcp->lists);
	mcp_seal_free(mcp->own_seal);
	free(mcp);
}

static const struct config *
context_config_of(const struct mcp *mcp, struct tenant *tenant)
{
	return mcp->options.gate ? gate_config(mcp->options.gate, tenant)
				 : config_hold(mcp->options.config);
}

void
mcp_host(const struct mcp *mcp, struct tenant *tenant, struct tool_host *host_r)
{
	*host_r = (struct tool_host){
		.engine = mcp->options.engine,
		.tenant = tenant,
		.gate = mcp->options.gate,
		.config = context_config_of(mcp, tenant),
		.base = mcp->options.base,
	};
}

struct tool_list *
mcp_tool_list(const struct mcp *mcp, struct tenant *tenant)
{
	const struct config *config = context_config_of(mcp, tenant);
	struct tool_list *list = tool_lists_get(mcp->lists, config);

	config_free(config);
	return list;
}
