/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the tools that clients have declared.
 * Reads:   declarations of a client, in any shape. */
#include "mcp/client_tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "engine/upstream.h"
#include "mcp/revision.h"
#include "policy/shape.h"
#include "policy/tools.h"

struct client_tools {
	unsigned int holders;
	struct upstream_server server;
	size_t bytes;
};

/* Adds a declared tool. NULL; or the mistake in the declaration, static. */
static const char *
client_tools_add(struct client_tools *t, const json_t *tool)
{
	struct upstream_server *server = &t->server;
	struct shape_tool shape;

	if (!shape_tool(tool, &shape))
		return EXTENSION_CLIENT_TOOLS ": a tool has no inputSchema, no name of at most 128 "
		       "letters, digits and _-./: or is too large";
	for (size_t i = 0; i < server->n_tools; i++) {
		if (strcmp(server->tool[i].name, shape.name) != 0)
			continue;
		free(shape.about);
		return EXTENSION_CLIENT_TOOLS ": two tools have one name";
	}
	server->tool[server->n_tools++] = (struct upstream_tool){
		.name = xstrdup(shape.name), .read_only = shape.read_only, .about = shape.about };
	t->bytes += strlen(shape.about);
	return t->bytes > CLIENT_TOOLS_ABOUT_MAX
		? EXTENSION_CLIENT_TOOLS ": the tools together are too large" : NULL;
}

const char *
client_tools_read(const json_t *declared, struct client_tools **tools_r)
{
	const json_t *settings = json_object_get(declared, EXTENSION_CLIENT_TOOLS);
	const json_t *tools = json_object_get(settings, "tools"), *tool;
	const char *wrong = NULL;
	struct client_tools *t;
	size_t i;

	*tools_r = NULL;
	if (!settings)
		return NULL;
	if (!json_is_object(settings) || json_object_size(settings) > (tools != NULL))
		return EXTENSION_CLIENT_TOOLS ": it must be an object that has tools and nothing else";
	if (!json_is_array(tools) || json_array_size(tools) > CLIENT_TOOLS_MAX)
		return EXTENSION_CLIENT_TOOLS ": tools must be an array of at most 128 tools";
	t = xcalloc(1, sizeof(*t));
	*t = (struct client_tools){ .holders = 1, .server = {
		.name = TOOLS_CLIENT, .state = TOOL_SERVER_SERVING, .text = xstrdup(""),
		.revision = xstrdup(""),
		.tool = xcalloc(CLIENT_TOOLS_MAX, sizeof(*t->server.tool)) } };
	json_array_foreach(tools, i, tool)
		if (!wrong)
			wrong = client_tools_add(t, tool);
	if (wrong)
		client_tools_release(t);
	else
		*tools_r = t;
	return wrong;
}

struct client_tools *
client_tools_hold(struct client_tools *t)
{
	if (t)
		t->holders++;
	return t;
}

void
client_tools_release(struct client_tools *t)
{
	if (!t || --t->holders > 0)
		return;
	for (size_t i = 0; i < t->server.n_tools; i++) {
		free(t->server.tool[i].name);
		free(t->server.tool[i].about);
	}
	free(t->server.tool);
	free(t->server.text);
	free(t->server.revision);
	free(t);
}

const struct upstream_server *
client_tools_server(const struct client_tools *t)
{
	return t ? &t->server : NULL;
}
