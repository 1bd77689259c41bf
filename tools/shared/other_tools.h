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

struct upstream_server;

/* For one execution. Zeroed: it has no servers. */
struct other_tools {
	const struct tool_host *host;		/* NULL: nothing was offered */
	bool waits;				/* a list waits for a server that is being started
						 */
	struct execution *execution;		/* the execution that asks; NULL: none has asked */
	const char *server[TOOL_SERVERS_MAX];	/* the servers that the tenant may use */
	LIST_HEAD(, other_list) lists;		/* requests for lists that have no answer yet */
};

/* Lets a request ask once for the list of each server that its tenant may use. host: of the run,
 * borrowed as long as the run exists. waits: an answer waits for a server that is being started. */
void other_tools_offer(struct other_tools *tools, const struct tool_host *host, bool waits,
		       struct execution_request *request);

/* Answers a request for a list, now or later. A call of a tool is refused. asked: as for on_tool of
 * struct execution_watcher. */
void other_tools_answer(struct other_tools *tools, struct execution *execution,
			const struct execution_tool *asked);

/* The server of this name, if the execution may use it. It can also be the client, with its own
 * tools. NULL: there is none. */
const struct upstream_server *other_tools_find(const struct other_tools *tools, const char *name);

/* To be called when the execution has ended or was cancelled. Does nothing if no list was offered.
 */
void other_tools_end(struct other_tools *tools);

/* Does the configuration name a server that the tenant may use? */
bool other_tools_any(const struct config *config);

/* ---- descriptions ---- */

/* From now on other_tools_text has the numbers of tools. upstream NULL: there is no server. */
struct upstream;
void other_tools_know(const struct upstream *upstream);

/* A sentence with a blank before it, for a description: the names of the servers, and how many
 * tools each has. "": there are none. Malloc'd. */
char *other_tools_text(const struct config *config);

#endif
