/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the tables of objects that outlive requests. */
#include "mcp/mcp.h"

#include "mcp/conversation_parts.h"
#include "mcp/parking.h"
#include "mcp/repeat.h"
#include "mcp/run.h"
#include "mcp/task.h"
#include "mcp/tool_list.h"

struct mcp *
mcp_new(const struct mcp_options *options)
{
	struct mcp *mcp = mcp_context_new(options);

	mcp->tables = (struct mcp_tables){
		.parking = mcp_parking_new(mcp),
		.tasks = mcp_tasks_new(mcp),
		.repeats = mcp_repeats_new(mcp, options->ledger),
	};
	return mcp;
}

void
mcp_free(struct mcp *mcp)
{
	if (!mcp)
		return;
	mcp_parking_free(mcp->tables.parking);
	mcp_tasks_free(mcp->tables.tasks);
	mcp_repeats_free(mcp->tables.repeats);
	mcp_runs_free(&mcp->runs);
	mcp_context_free(mcp);
}

/* The loop is safe: sending a message never ends a conversation at once. */
void
mcp_tools_changed(struct mcp *mcp)
{
	struct mcp_conversation *conversation;

	tool_lists_renew(mcp->lists);
	for (conversation = LIST_FIRST(&mcp->conversations); conversation;
	     conversation = LIST_NEXT(conversation, link))
		tell_tools_changed(conversation);
}

void
mcp_resource_changed(struct mcp *mcp, struct tenant *tenant, const char *uri)
{
	struct mcp_conversation *conversation;

	for (conversation = LIST_FIRST(&mcp->conversations); conversation;
	     conversation = LIST_NEXT(conversation, link))
		if (conversation->options.tenant == tenant)
			tell_resource_changed(conversation, uri);
}
