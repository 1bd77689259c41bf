/* The Model Context Protocol, as far as it does not depend on one client: what is offered,
 * what is said of it, and what outlives a request. One for the whole process;
 * conversations and calls borrow it.
 */
#ifndef SUPERVISOR_MCP_H
#define SUPERVISOR_MCP_H

#include <stddef.h>

struct catalog;
struct config;
struct engine;
struct event_base;
struct gate;
struct jsonout;
struct mcp_conversation;
struct mcp_parking;
struct mcp_repeats;
struct mcp_runs;
struct mcp_seal;
struct mcp_tasks;
struct revision;
struct tenant;
struct tool_description;
struct tool_host;
struct tool_list;

/* All borrowed, and outlive the result. */
struct mcp_options {
	struct event_base *base;
	struct engine *engine;
	const struct config *config;
	const struct catalog *catalog;	/* NULL: what the program itself offers */
	struct gate *gate;		/* NULL: everybody may do everything */
	const struct mcp_seal *seal;	/* NULL: a key of its own, for this process */
};

struct mcp *mcp_new(const struct mcp_options *options);
void mcp_free(struct mcp *mcp);		/* NULL is fine; after all conversations */

struct event_base *mcp_base(const struct mcp *mcp);
const struct catalog *mcp_catalog(const struct mcp *mcp);
const struct config *mcp_config(const struct mcp *mcp);
const struct mcp_seal *mcp_seal(const struct mcp *mcp);

/* What outlives requests: supervisor/mcp/run.h, mcp/parking.h, mcp/task.h, mcp/repeat.h. */
struct mcp_runs *mcp_runs(struct mcp *mcp);
struct mcp_parking *mcp_parking(struct mcp *mcp);
struct mcp_tasks *mcp_tasks(struct mcp *mcp);
struct mcp_repeats *mcp_repeats(struct mcp *mcp);

/* Fills the members of *host_r that are the same for all runs of a tenant. Its config is held,
 * for config_free. */
void mcp_host(const struct mcp *mcp, struct tenant *tenant, struct tool_host *host_r);

/* The hint for models that a handshake carries. */
const char *mcp_instructions(const struct mcp *mcp);

/* The i-th tool of the catalog, as it was described at start. */
const struct tool_description *mcp_tool_description(const struct mcp *mcp, size_t i);

/* What tools/list says to the tenant now; the caller's to release. */
struct tool_list *mcp_tool_list(const struct mcp *mcp, struct tenant *tenant);

/* Another configuration is in force: those to whom tools/list says something else now, and
 * who want to know, are told. */
void mcp_tools_changed(struct mcp *mcp);

/* A resource of this tenant is another one now: whoever subscribed to it is told. */
void mcp_resource_changed(struct mcp *mcp, struct tenant *tenant, const char *uri);

/* By conversations themselves. */
void mcp_add_conversation(struct mcp *mcp, struct mcp_conversation *conversation);
void mcp_remove_conversation(struct mcp *mcp, struct mcp_conversation *conversation);

#endif
