/* SPDX-License-Identifier: Apache-2.0 */
/* Tools and results of another MCP server: for any JSON, the parts that are passed on have the form
 * that the supervisor and scripts rely on.
 *
 * - what is told of a tool is one line of JSON within its bound, with a name of few characters, an
 *   inputSchema, and hints that are booleans; read-only is what these hints say;
 * - a result is one line of JSON within its bound, with blocks that have a type, or a sentence;
 * - what a client declares of its tools is taken whole, as lines of that form, or not at all;
 * - a text for people is printable ASCII. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "engine/upstream.h"
#include "mcp/client_tools.h"
#include "mcp/revision.h"
#include "policy/shape.h"

static json_t *
read_line(const char *text)
{
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	MUST(json_is_object(json) && strchr(text, '\n') == NULL);
	return json;
}

static void
check_tool(const json_t *value)
{
	struct shape_tool tool;
	const json_t *hints, *hint;
	const char *key;
	json_t *about;

	if (!shape_tool(value, &tool))
		return;
	MUST(strlen(tool.about) <= TOOL_ABOUT_MAX);
	about = read_line(tool.about);
	MUST(strcmp(json_string_value(json_object_get(about, "name")), tool.name) == 0);
	MUST(*tool.name && strlen(tool.name) <= TOOL_NAME_MAX);
	for (const char *at = tool.name; *at; at++)
		MUST(*at > ' ' && *at <= '~');
	MUST(json_is_object(json_object_get(about, "inputSchema")));
	hints = json_object_get(about, "annotations");
	MUST(json_is_object(hints));
	json_object_foreach((json_t *)hints, key, hint)
		MUST(json_is_boolean(hint));
	MUST(tool.read_only == json_is_true(json_object_get(hints, "readOnlyHint")));
	json_decref(about);
	free(tool.about);
}

static void
check_result(const json_t *value, size_t max)
{
	char *body = NULL;
	enum tool_status status = shape_result(value, max, &body);
	const json_t *block;
	json_t *result;
	size_t i;

	MUST(status == TOOL_RETURNED || status == TOOL_RAISED || status == TOOL_FAILED);
	MUST(body && *body);
	if (status != TOOL_FAILED) {
		MUST(strlen(body) <= max);
		result = read_line(body);
		MUST(json_is_array(json_object_get(result, "content")));
		json_array_foreach(json_object_get(result, "content"), i, block)
			MUST(json_is_string(json_object_get(block, "type")));
		json_decref(result);
	}
	free(body);
}

/* What a client declares: the tools of a server, or the reason why not. */
static void
check_declared(json_t *value)
{
	struct client_tools *tools;
	const char *wrong;
	json_t *declared;

	if (!value)
		return;
	declared = json_pack("{s:{s:O}}", EXTENSION_CLIENT_TOOLS, "tools", value);
	wrong = client_tools_read(declared, &tools);
	MUST(!wrong == (tools != NULL));
	if (tools) {
		const struct upstream_server *server = client_tools_server(tools);

		MUST(server->n_tools == json_array_size(value));
		for (size_t i = 0; i < server->n_tools; i++) {
			json_t *about = read_line(server->tool[i].about);

			MUST(json_is_object(about));
			json_decref(about);
		}
	}
	client_tools_release(client_tools_hold(tools));
	client_tools_release(tools);
	json_decref(declared);
}

static void
check_text(const uint8_t *data, size_t size)
{
	char *text = calloc(1, size + 1), line[32];

	memcpy(text, data, size);
	shape_text(line, sizeof(line), text);
	MUST(strlen(line) < sizeof(line));
	for (const char *at = line; *at; at++)
		MUST(*at >= ' ' && *at <= '~');
	free(text);
}

/* The first byte bounds results. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *value;

	if (size == 0)
		return 0;
	check_text(data, size);
	value = json_loadb((const char *)data + 1, size - 1,
			   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	check_tool(value);
	check_declared(value);
	check_result(value, 16 * (size_t)data[0]);
	json_decref(value);
	return 0;
}
