/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools.   Owns: a server's list of tools.
 * Reads:   tools as their server describes them, hostile; shape.c bounds the parts that are passed
 * on.
 */
#include "upstream/listing.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jsonbound.h"
#include "base/xalloc.h"
#include "policy/shape.h"
#include "proto/message.h"

#define HEADER "x-mcp-header"
#define HEADER_MAX 64		/* bytes of its name */
#define HEADERS_MAX 16		/* of one tool */
#define DEEPEST 8		/* properties within properties */

/* ---- headers ---- */

static bool
listing_is_token(const char *name, size_t len)
{
	if (len == 0 || len > HEADER_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("!#$%&'*+-.^_`|~", name[i]))
			return false;
	return true;
}

static bool
has_type(const json_t *schema)
{
	const char *type = json_string_value(json_object_get(schema, "type"));

	return type && (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 ||
			strcmp(type, "boolean") == 0);
}

static bool
is_used(const json_t *headers, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(headers, i, one)
		if (strcasecmp(json_string_value(json_array_get(one, 0)), name) == 0)
			return true;
	return false;
}

/* Adds [name, key, key ...] for each annotation below schema. False: one is malformed. */
static bool
find_headers(const json_t *schema, const json_t *path, json_t *headers)
{
	const json_t *properties = json_object_get(schema, "properties");
	const char *key;
	json_t *one;

	if (json_array_size(path) > DEEPEST)
		return true;
	json_object_foreach((json_t *)properties, key, one) {
		const json_t *said = json_object_get(one, HEADER);
		const char *name = json_string_value(said);
		json_t *here = xalloc_check(json_copy((json_t *)path));
		bool ok = true;

		json_array_append_new(here, xalloc_check(json_string(key)));
		if (said)
			ok = name && listing_is_token(name, json_string_length(said)) &&
			     has_type(one) && !is_used(headers, name) &&
			     json_array_size(headers) < HEADERS_MAX;
		if (said && ok) {
			json_t *header = xalloc_check(json_copy(here));

			json_array_set_new(header, 0, xalloc_check(json_string(name)));
			json_array_append_new(headers, header);
		}
		ok = ok && find_headers(one, here, headers);
		json_decref(here);
		if (!ok)
			return false;
	}
	return true;
}

/* A JSON value as a header has it; NULL: it is none that a header can have. */
static json_t *
listing_value_of(const json_t *argument)
{
	char text[32];

	if (json_is_string(argument))
		return json_copy((json_t *)argument);
	if (json_is_boolean(argument))
		return json_string(json_is_true(argument) ? "true" : "false");
	if (!json_is_integer(argument))
		return NULL;
	snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(argument));
	return json_string(text);
}

json_t *
listing_headers(const struct listing *l, const char *tool, const json_t *arguments)
{
	const json_t *headers = json_object_get(json_object_get(l->known, tool), "headers"), *one;
	json_t *values = headers ? xalloc_check(json_object()) : NULL, *value;
	size_t i;

	json_array_foreach(headers, i, one) {
		const json_t *at = arguments;

		for (size_t n = 1; n < json_array_size(one); n++)
			at = json_object_get(at, json_string_value(json_array_get(one, n)));
		value = listing_value_of(at);
		if (value)
			json_object_set_new(values, json_string_value(json_array_get(one, 0)),
					    value);
	}
	return values;
}

/* ---- the list ---- */

void
listing_drop(struct listing *l)
{
	json_decref(l->tools);
	l->tools = NULL;
}

void
listing_begin(struct listing *l)
{
	listing_drop(l);
	l->tools = xalloc_check(json_array());
	l->bytes = l->values = 0;
	l->pages = l->left_out = 0;
}

static bool
is_listed(const struct listing *l, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(l->tools, i, one)
		if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0)
			return true;
	return false;
}

static bool
is_required(const json_t *tool)
{
	const char *support = json_string_value(json_object_get(json_object_get(tool, "execution"),
								"taskSupport"));

	return support && strcmp(support, "required") == 0;
}

static bool
listing_take_tool(struct listing *l, const json_t *tool, bool with_headers)
{
	json_t *headers = xalloc_check(json_array()), *path;
	struct shape_tool shaped;
	size_t values;
	bool ok;

	path = xalloc_check(json_pack("[n]"));
	ok = !with_headers || find_headers(json_object_get(tool, "inputSchema"), path, headers);
	json_decref(path);
	if (!ok || json_array_size(l->tools) == TOOLS_MAX || !shape_tool(tool, &shaped)) {
		json_decref(headers);
		return false;
	}
	values = jsonbound_values(shaped.about, strlen(shaped.about));
	ok = l->bytes + strlen(shaped.about) <= TOOLS_ABOUT_MAX &&
	     values <= TOOLS_VALUES_MAX - l->values && !is_listed(l, shaped.name);
	if (ok) {
		l->bytes += strlen(shaped.about);
		l->values += values;
		json_array_append_new(l->tools, xalloc_check(json_pack(
			"{s:s,s:b,s:s,s:b,s:O}", "name", shaped.name, "read_only",
			shaped.read_only, "about", shaped.about, "task", is_required(tool),
			"headers", headers)));
	}
	json_decref(headers);
	free(shaped.about);
	return ok;
}

void
listing_take(struct listing *l, const json_t *tools, bool with_headers)
{
	const json_t *tool;
	size_t i;

	json_array_foreach(tools, i, tool)
		if (!listing_take_tool(l, tool, with_headers))
			l->left_out++;
}

void
listing_add_reader(struct listing *l)
{
	json_t *tool;

	if (is_listed(l, LISTING_READER))
		return;
	tool = xalloc_check(json_pack(
		"{s:s,s:s,s:{s:s,s:{s:{s:s}},s:[s]},s:{s:b}}", "name", LISTING_READER,
		"description", "Reads a resource of this server, such as a resource_link in a "
		"result: text, or bytes.", "inputSchema", "type", "object", "properties", "uri",
		"type", "string", "required", "uri", "annotations", "readOnlyHint", 1));
	if (listing_take_tool(l, tool, false))
		json_object_set_new(json_array_get(l->tools, json_array_size(l->tools) - 1),
				    "reader", json_true());
	json_decref(tool);
}

/* Notes what a call of the tool needs, if anything. */
static void
listing_know(struct listing *l, const char *name, json_t *one)
{
	json_object_del(one, "about");
	if (json_is_true(json_object_get(one, "task")) || json_object_get(one, "reader") ||
	    json_array_size(json_object_get(one, "headers")) > 0)
		json_object_set(l->known, name, one);
}

uint32_t
listing_end(struct listing *l, uint32_t number, void (*tell)(void *arg, const struct msg *msg),
	    void *arg)
{
	uint32_t n = (uint32_t)json_array_size(l->tools);
	json_t *one;
	size_t i;

	json_decref(l->known);
	l->known = xalloc_check(json_object());
	json_array_foreach(l->tools, i, one) {
		const char *name = json_string_value(json_object_get(one, "name"));
		const char *about = json_string_value(json_object_get(one, "about"));

		tell(arg, &(struct msg){
			.type = MSG_TOOLS_TOOL,
			.tools_tool = {
				.server = number, .name = msg_str(name),
				.read_only = json_is_true(json_object_get(one, "read_only")),
				.about = msg_str(about) } });
		listing_know(l, name, one);
	}
	listing_drop(l);
	return n;
}

bool
listing_wants_task(const struct listing *l, const char *tool)
{
	return json_is_true(json_object_get(json_object_get(l->known, tool), "task"));
}

bool
listing_is_reader(const struct listing *l, const char *tool)
{
	return json_object_get(json_object_get(l->known, tool), "reader") != NULL;
}
