/* What all conversations, calls and runs of a process share: the options that it was made with,
 * what tools/list says, and the tables of what outlives requests. Made and freed by mcp/mcp.h,
 * which is above everything here; this is below.
 */
#ifndef MCP_CONTEXT_H
#define MCP_CONTEXT_H

#include <stddef.h>

#include <jansson.h>

struct catalog;
struct config;
struct engine;
struct event_base;
struct gate;
struct mcp;
struct mcp_conversation;
struct mcp_parking;
struct mcp_repeats;
struct mcp_runs;
struct mcp_seal;
struct mcp_tasks;
struct tenant;
struct tool_description;
struct tool_host;
struct tool_list;

/* All borrowed, and outlive the context. */
struct mcp_options {
	struct event_base *base;
	struct engine *engine;
	const struct config *config;
	const struct catalog *catalog;
	struct gate *gate;		/* NULL: everybody may do everything */
	const struct mcp_seal *seal;	/* NULL: a key of its own, for this process */
};

/* What outlives requests, borrowed: mcp/parking.h, mcp/task.h, mcp/repeat.h. */
struct mcp_tables {
	struct mcp_parking *parking;
	struct mcp_tasks *tasks;
	struct mcp_repeats *repeats;
};

/* By mcp/mcp.c alone. The tables are set once, before anything is served. */
struct mcp *mcp_context_new(const struct mcp_options *options);
void mcp_context_set(struct mcp *mcp, const struct mcp_tables *tables);
void mcp_context_free(struct mcp *mcp);

struct event_base *mcp_base(const struct mcp *mcp);
const struct catalog *mcp_catalog(const struct mcp *mcp);
const struct config *mcp_config(const struct mcp *mcp);
const struct mcp_seal *mcp_seal(const struct mcp *mcp);
struct mcp_runs *mcp_runs(struct mcp *mcp);
struct mcp_parking *mcp_parking(struct mcp *mcp);
struct mcp_tasks *mcp_tasks(struct mcp *mcp);
struct mcp_repeats *mcp_repeats(struct mcp *mcp);

/* Fills the members of *host_r that are the same for all runs of a tenant. Its config is held,
 * for config_free. */
void mcp_host(const struct mcp *mcp, struct tenant *tenant, struct tool_host *host_r);

/* The i-th tool of the catalog, as it was described at start. */
const struct tool_description *mcp_tool_description(const struct mcp *mcp, size_t i);

/* The schema of its input. */
const json_t *mcp_tool_schema(const struct mcp *mcp, size_t i);

/* What tools/list says to the tenant now; the caller's to release. */
struct tool_list *mcp_tool_list(const struct mcp *mcp, struct tenant *tenant);

/* Lists that are got from here on are made from the configuration that is in force now. */
void mcp_renew_tool_lists(struct mcp *mcp);

/* By conversations themselves. */
void mcp_add_conversation(struct mcp *mcp, struct mcp_conversation *conversation);
void mcp_remove_conversation(struct mcp *mcp, struct mcp_conversation *conversation);

/* The first of all; the others follow by their link. NULL: there is none. */
struct mcp_conversation *mcp_first_conversation(const struct mcp *mcp);

#endif
