/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the list of arguments that have a header.
 * Reads:   the service's own schemas; headers and arguments of a client. */
#include "http/param.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>

#include "base/xalloc.h"
#include "http/head.h"
#include "mcp/catalog.h"
#include "mcp/context.h"
#include "mcp/tool_list.h"
#include "mcp/tool.h"
#include "policy/config.h"

#define DEPTH_MAX 4		/* levels of nested properties */
#define HEADER "Mcp-Param-"

struct http_param {
	LIST_ENTRY(http_param) link;
	const char *tool;		/* a static string */
	char *key[DEPTH_MAX];		/* the path, from the arguments inwards */
	size_t depth;
	char *header;
	bool required;			/* clients know of it */
};

struct http_params {
	LIST_HEAD(, http_param) list;
	bool all_listed;
};

/* ---- from the schemas ---- */

static void
param_add(struct http_params *params, const char *tool, const char *const *key, size_t depth,
	  const json_t *property)
{
	const char *name = json_string_value(json_object_get(property, "x-mcp-header"));
	struct http_param *param = xcalloc(1, sizeof(*param));

	param->tool = tool;
	param->depth = depth;
	param->required = params->all_listed || !json_object_get(property, LISTING_KEYWORD);
	for (size_t i = 0; i < depth; i++)
		param->key[i] = xstrdup(key[i]);
	param->header = xasprintf(HEADER "%s", name);
	LIST_INSERT_HEAD(&params->list, param, link);
}

static void
read_schema(struct http_params *params, const char *tool, json_t *schema, const char **key,
	    size_t depth)
{
	json_t *properties = json_object_get(schema, "properties"), *property;

	if (depth == DEPTH_MAX)
		return;
	json_object_foreach(properties, key[depth], property) {
		if (json_is_string(json_object_get(property, "x-mcp-header")))
			param_add(params, tool, key, depth + 1, property);
		read_schema(params, tool, property, key, depth + 1);
	}
}

struct http_params *
http_params_new(const struct mcp *mcp)
{
	struct http_params *params = xcalloc(1, sizeof(*params));
	const char *key[DEPTH_MAX];

	LIST_INIT(&params->list);
	params->all_listed = mcp->options.config->mcp.arguments == ARGUMENTS_ALL;
	for (size_t i = 0; i < mcp->options.catalog->n_tools; i++) {
		const struct tool_description *tool = &mcp->tools[i];
		json_t *schema = xalloc_check(json_loads(tool->input_schema, 0, NULL));

		read_schema(params, tool->name, schema, key, 0);
		json_decref(schema);
	}
	return params;
}

void
http_params_free(struct http_params *params)
{
	struct http_param *param;

	while (params && (param = LIST_FIRST(&params->list))) {
		LIST_REMOVE(param, link);
		for (size_t i = 0; i < param->depth; i++)
			free(param->key[i]);
		free(param->header);
		free(param);
	}
	free(params);
}

/* ---- of a call ---- */

static const json_t *
param_argument_of(const struct http_param *param, const json_t *call)
{
	const json_t *value = json_object_get(call, "arguments");

	for (size_t i = 0; i < param->depth; i++)
		value = json_object_get(value, param->key[i]);
	return json_is_null(value) ? NULL : value;
}

static bool
param_equals(const json_t *value, const char *text, size_t len)
{
	char number[32];

	if (json_is_string(value))
		return json_string_length(value) == len &&
		       memcmp(json_string_value(value), text, len) == 0;
	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
	else if (json_is_boolean(value))
		snprintf(number, sizeof(number), "%s", json_is_true(value) ? "true" : "false");
	else
		return false;
	return strlen(number) == len && memcmp(number, text, len) == 0;
}

static const char *
param_mismatch(const json_t *value, const char *said, bool required)
{
	bool same;
	char *text;
	size_t len;

	if (!said && (!value || !required))
		return NULL;
	if (!value || !said)
		return said ? "a header Mcp-Param- repeats a missing argument"
			    : "the header Mcp-Param- of an argument is required";
	text = http_name_decode(said + strspn(said, " \t"), &len);
	if (!text)
		return "a header Mcp-Param- holds malformed base64";
	same = param_equals(value, text, len);
	free(text);
	return same ? NULL : "a header Mcp-Param- differs from the body";
}

const char *
http_params_mismatch(const struct http_params *params, const struct json_t *call,
		     const struct evkeyvalq *headers)
{
	const char *tool = json_string_value(json_object_get(call, "name"));
	const struct http_param *param;
	const char *wrong;

	LIST_FOREACH(param, &params->list, link) {
		if (!tool || strcmp(tool, param->tool) != 0)
			continue;
		wrong = param_mismatch(param_argument_of(param, call),
				       evhttp_find_header(headers, param->header),
				       param->required);
		if (wrong)
			return wrong;
	}
	return NULL;
}
