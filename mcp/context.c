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

struct mcp {
	struct mcp_options options;
	struct mcp_seal *own_seal;		/* made here, if the caller gave none */
	struct tool_description *tools;		/* of all tools */
	json_t **schema;			/* the input schemas of the tools */
	struct tool_lists *lists;
	struct mcp_runs runs;
	struct mcp_tables tables;
	LIST_HEAD(, mcp_conversation) conversations;
};

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
mcp_context_set(struct mcp *mcp, const struct mcp_tables *tables)
{
	mcp->tables = *tables;
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

struct event_base *
mcp_base(const struct mcp *mcp)
{
	return mcp->options.base;
}

const struct catalog *
mcp_catalog(const struct mcp *mcp)
{
	return mcp->options.catalog;
}

const struct config *
mcp_config(const struct mcp *mcp)
{
	return mcp->options.config;
}

const struct mcp_seal *
mcp_seal(const struct mcp *mcp)
{
	return mcp->options.seal;
}

struct mcp_runs *
mcp_runs(struct mcp *mcp)
{
	return &mcp->runs;
}

struct mcp_parking *
mcp_parking(struct mcp *mcp)
{
	return mcp->tables.parking;
}

struct mcp_tasks *
mcp_tasks(struct mcp *mcp)
{
	return mcp->tables.tasks;
}

struct mcp_repeats *
mcp_repeats(struct mcp *mcp)
{
	return mcp->tables.repeats;
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

const struct tool_description *
mcp_tool_description(const struct mcp *mcp, size_t i)
{
	return &mcp->tools[i];
}

const json_t *
mcp_tool_schema(const struct mcp *mcp, size_t i)
{
	return mcp->schema[i];
}

struct tool_list *
mcp_tool_list(const struct mcp *mcp, struct tenant *tenant)
{
	const struct config *config = context_config_of(mcp, tenant);
	struct tool_list *list = tool_lists_get(mcp->lists, config);

	config_free(config);
	return list;
}

void
mcp_add_conversation(struct mcp *mcp, struct mcp_conversation *conversation)
{
	LIST_INSERT_HEAD(&mcp->conversations, conversation, link);
}

void
mcp_remove_conversation(struct mcp *, struct mcp_conversation *conversation)
{
	LIST_REMOVE(conversation, link);
}

void
mcp_renew_tool_lists(struct mcp *mcp)
{
	tool_lists_renew(mcp->lists);
}

struct mcp_conversation *
mcp_first_conversation(const struct mcp *mcp)
{
	return LIST_FIRST(&mcp->conversations);
}
