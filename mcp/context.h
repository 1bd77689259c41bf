/* SPDX-License-Identifier: Apache-2.0 */
/* The context: data that all conversations, calls and runs of a process share. It has the options,
 * the answers of tools/list, and the tables of objects that outlive requests. mcp/mcp.c makes and
 * frees it; every other module may use it.
 */
#ifndef MCP_CONTEXT_H
#define MCP_CONTEXT_H

#include <stddef.h>
#include <sys/queue.h>

#include <jansson.h>

struct catalog;
struct config;
struct engine;
struct event_base;
struct gate;
struct ledger;
struct mcp;
struct mcp_conversation;
struct mcp_parking;
struct mcp_repeats;
struct mcp_seal;
struct mcp_tasks;
struct tenant;
struct tool_description;
struct tool_host;
struct tool_list;

LIST_HEAD(mcp_runs, mcp_run);		/* of mcp/run.c */

/* All borrowed, and outlive the context. */
struct mcp_options {
	struct event_base *base;
	struct engine *engine;
	const struct config *config;
	const struct catalog *catalog;
	struct gate *gate;		/* NULL: everything is allowed */
	const struct mcp_seal *seal;	/* NULL: a new key, for this process only */
	struct ledger *ledger;		/* NULL: keys of calls end with this process */
};

/* The tables of objects that outlive requests (mcp/parking.h, mcp/task.h, mcp/repeat.h); borrowed.
 */
struct mcp_tables {
	struct mcp_parking *parking;
	struct mcp_tasks *tasks;
	struct mcp_repeats *repeats;
};

/* Only mcp/context.c and mcp/mcp.c write it. */
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

/* For mcp/mcp.c only. */
struct mcp *mcp_context_new(const struct mcp_options *options);
void mcp_context_free(struct mcp *mcp);

/* Fills in the members of *host_r that are the same for all runs of a tenant. host_r->config is
 * held; the caller releases it by config_free. */
void mcp_host(const struct mcp *mcp, struct tenant *tenant, struct tool_host *host_r);

/* The answer of tools/list for the tenant now; the caller releases it. */
struct tool_list *mcp_tool_list(const struct mcp *mcp, struct tenant *tenant);

#endif
