/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: requests for lists that have no answer yet.
 * Reads:   what other servers say of their tools, which it passes on as it is. */
#include "tools/shared/other_tools.h"

#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/upstream.h"
#include "policy/config.h"
#include "policy/tools.h"

struct other_list {
	LIST_ENTRY(other_list) link;
	struct other_tools *tools;
	uint32_t number;
	const struct upstream_server *server;
	struct upstream_call *call;
};

static bool
is_seen(const struct config *config, const struct upstream_server *server,
	const struct upstream_tool *tool)
{
	return tools_verdict(config, server->name, tool->name, tool->read_only) != POLICY_DENY;
}

/* ---- lists ---- */

void
other_tools_offer(struct other_tools *t, const struct tool_host *host, bool waits,
		  struct execution_request *request)
{
	const struct upstream *upstream = engine_upstream(host->engine);
	const struct upstream_server *server;

	*t = (struct other_tools){ .host = host, .waits = waits };
	LIST_INIT(&t->lists);
	for (size_t i = 0; (server = upstream_server(upstream, i)); i++)
		if (tools_allows_server(host->config, server->name))
			t->server[request->n_tools++] = server->name;
	if (host->client_tools && (host->client & CLIENT_HAS_TOOLS) &&
	    tools_allows_server(host->config, TOOLS_CLIENT))
		t->server[request->n_tools++] = TOOLS_CLIENT;
	request->tools = t->server;
	request->tool_calls = TOOL_SERVERS_MAX;
	request->tool_calls_at_once = 1;
}

static void
free_list(struct other_list *list)
{
	if (list->call)
		upstream_drop(list->call);
	LIST_REMOVE(list, link);
	free(list);
}

/* As the tenant may see it: tools that are denied are not there. */
static void
answer_list(const struct other_tools *t, uint32_t number, const struct upstream_server *server)
{
	const char *between = "";
	own_mem char *text = NULL;
	size_t text_len;
	FILE *to = xalloc_check(open_memstream(&text, &text_len));

	fputc('[', to);
	for (size_t i = 0; i < server->n_tools; i++) {
		if (!is_seen(t->host->config, server, &server->tool[i]))
			continue;
		fprintf(to, "%s%s", between, server->tool[i].about);
		between = ",";
	}
	fputc(']', to);
	xassert(fclose(to) == 0);
	execution_answer_tool(t->execution, number, TOOL_RETURNED, text, text_len);
}

static void
other_tools_on_known(void *arg, enum tool_status status, const char *body, size_t len)
{
	struct other_list list = *(struct other_list *)arg;
	const struct other_tools *t = list.tools;

	((struct other_list *)arg)->call = NULL;
	free_list(arg);
	if (status == TOOL_RETURNED)
		answer_list(t, list.number, list.server);
	else
		execution_answer_tool(t->execution, list.number, status, body, len);
}

const struct upstream_server *
other_tools_find(const struct other_tools *t, const char *name)
{
	return strcmp(name, TOOLS_CLIENT) == 0 ? t->host->client_tools
					       : upstream_find(engine_upstream(t->host->engine),
							       name);
}

void
other_tools_answer(struct other_tools *t, struct execution *execution,
		   const struct execution_tool *asked)
{
	struct upstream *upstream = engine_upstream(t->host->engine);
	const struct upstream_server *server = other_tools_find(t, asked->server);
	const char *refusal = asked->tool ? "this program calls no tools" :
			      !t->waits && server->state == TOOL_SERVER_STARTING
			      ? "the server is just being started" : NULL;
	struct other_list *list;

	t->execution = execution;
	if (refusal) {
		execution_answer_tool(execution, asked->number, TOOL_REFUSED, refusal,
				      strlen(refusal));
		return;
	}
	if (server == t->host->client_tools) {
		answer_list(t, asked->number, server);
		return;
	}
	list = xcalloc(1, sizeof(*list));
	*list = (struct other_list){ .tools = t, .number = asked->number, .server = server };
	LIST_INSERT_HEAD(&t->lists, list, link);
	list->call = upstream_await(upstream, list->server, other_tools_on_known, list);
}

void
other_tools_end(struct other_tools *t)
{
	while (t->host && !LIST_EMPTY(&t->lists))
		free_list(LIST_FIRST(&t->lists));
}

bool
other_tools_any(const struct config *config)
{
	for (size_t i = 0; i < config->n_tools; i++)
		if (tools_allows_server(config, config->tools[i].name))
			return true;
	return false;
}

/* ---- descriptions ---- */

static const struct upstream *known;

void
other_tools_know(const struct upstream *upstream)
{
	known = upstream;
}

/* 0: none, or its list has not come yet. */
static size_t
other_tools_count(const struct config *config, const char *name)
{
	const struct upstream_server *server = upstream_find(known, name);
	size_t n = 0;

	for (size_t i = 0; server && i < server->n_tools; i++)
		n += is_seen(config, server, &server->tool[i]);
	return n;
}

char *
other_tools_text(const struct config *config)
{
	const char *between = " `import tools` calls tools of ";
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	for (size_t i = 0; i < config->n_tools; i++) {
		const char *name = config->tools[i].name;
		size_t n = other_tools_count(config, name);

		if (!tools_allows_server(config, name))
			continue;
		fprintf(to, "%s%s", between, name);
		if (n)
			fprintf(to, " (%zu)", n);
		between = ", ";
	}
	if (other_tools_any(config))
		fputs(" (search_tools).", to);
	xalloc_check(fclose(to) == 0 ? text : NULL);
	return text;
}
