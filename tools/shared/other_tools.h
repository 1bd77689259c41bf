/* SPDX-License-Identifier: Apache-2.0 */
/* Other MCP servers and their tools, as far as a tenant may see them: the servers and lists that an
 * execution gets, and the text for descriptions.
 */
#ifndef TOOLS_SHARED_OTHER_TOOLS_H
#define TOOLS_SHARED_OTHER_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "mcp/tool.h"

struct other_list;
struct upstream_server;

/* For one execution. Zeroed: it has no servers. */
struct other_tools {
	const struct tool_host *host;		/* NULL: nothing was offered */
	bool waits;				/* for servers that are being started */
	struct execution *execution;		/* that asks for lists; NULL: none has */
	const char *server[TOOL_SERVERS_MAX];	/* that the tenant may use */
	LIST_HEAD(, other_list) lists;		/* that have no answer yet */
};

/* Lets a request ask once for the list of each server that its tenant may use. host: that of the
 * run, borrowed as long as it exists. waits: whether to wait for servers that are being started. */
void other_tools_offer(struct other_tools *tools, const struct tool_host *host, bool waits,
		       struct execution_request *request);

/* Answers the execution, now or later; a call of a tool is refused. As on_tool of
 * execution_watcher. */
void other_tools_answer(struct other_tools *tools, struct execution *execution,
			const struct execution_tool *asked);

/* A server that the execution may use; it may be its client. */
const struct upstream_server *other_tools_find(const struct other_tools *tools, const char *name);

/* The execution has ended or was cancelled. Does nothing if no list was offered. */
void other_tools_end(struct other_tools *tools);

/* Does the configuration name a server that the tenant may use? */
bool other_tools_any(const struct config *config);

/* ---- descriptions ---- */

/* From now on other_tools_text counts tools. NULL: there is no server. */
struct upstream;
void other_tools_know(const struct upstream *upstream);

/* A sentence with a blank before it, for a description: the names of the servers, and how many
 * tools each has. "": there are none. Malloc'd. */
char *other_tools_text(const struct config *config);

#endif
