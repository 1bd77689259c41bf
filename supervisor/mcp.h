/* The Model Context Protocol, as far as it does not depend on one client: which tools there
 * are, and what is said of them. One for the whole process; streams and calls borrow it.
 */
#ifndef SUPERVISOR_MCP_H
#define SUPERVISOR_MCP_H

#include <stddef.h>

struct config;
struct engine;
struct event_base;
struct jsonout;
struct revision;
struct tenant;
struct tool_host;

/* All borrowed, and outlive the result. */
struct mcp_options {
	struct event_base *base;
	struct engine *engine;
	const struct config *config;
};

struct mcp *mcp_new(const struct mcp_options *options);
void mcp_free(struct mcp *mcp);		/* NULL is fine */

struct event_base *mcp_base(const struct mcp *mcp);

/* Fills the members of *host_r that are the same for all calls of a tenant. */
void mcp_host(const struct mcp *mcp, struct tenant *tenant, struct tool_host *host_r);

/* The hint for models that a handshake carries. */
const char *mcp_instructions(const struct mcp *mcp);

/* The result of tools/list as the revision shows it. */
void mcp_write_tools(const struct mcp *mcp, const struct revision *revision,
		     struct jsonout *out);

#endif
