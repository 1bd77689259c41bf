/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools, and the supervisor for the tools of clients.   Owns: nothing.
 * Reads:   JSON of other servers, hostile. */
#include "policy/shape.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/xalloc.h"

#define DESCRIPTION_MAX 16384	/* bytes */
#define TITLE_MAX 256		/* bytes */
#define COMPACT (JSON_COMPACT | JSON_ENCODE_ANY)

void
shape_text(char *to, size_t size, const char *text)
{
	size_t len = 0;

	for (; *text && len < size - 1; text++)
		to[len++] = *text >= ' ' && *text <= '~' ? *text : '?';
	to[len] = '\0';
}

/* The names that people read, and that patterns of the configuration can name. */
static bool
is_name(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++)
		if (len == TOOL_NAME_MAX || (!isalnum((unsigned char)name[len]) &&
					     !strchr("_-./:", name[len])))
			return false;
	return len > 0;
}

/* Copies a text, cut at a bound and not within a character. */
static void
copy_text(json_t *to, const char *key, const json_t *from, size_t most)
{
	const json_t *text = json_object_get(from, key);
	size_t len = json_string_length(text);

	if (!json_is_string(text))
		return;
	if (len > most) {
		len = most;
		while (len > 0 && ((unsigned char)json_string_value(text)[len] & 0xc0) == 0x80)
			len--;
	}
	json_object_set_new(to, key, xalloc_check(json_stringn(json_string_value(text), len)));
}

static void
copy_object(json_t *to, const char *key, const json_t *from)
{
	json_t *object = json_object_get(from, key);

	if (json_is_object(object))
		json_object_set(to, key, object);
}

static void
copy_hints(json_t *to, const json_t *tool)
{
	static const char *const hints[] = { "readOnlyHint", "destructiveHint", "idempotentHint",
					     "openWorldHint" };
	const json_t *said = json_object_get(tool, "annotations");
	json_t *copy = xalloc_check(json_object());

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		json_t *hint = json_object_get(said, hints[i]);

		if (json_is_boolean(hint))
			json_object_set(copy, hints[i], hint);
	}
	json_object_set_new(to, "annotations", copy);
}

/* NULL: it is deeper than can be written. */
static char *
write_about(const json_t *about)
{
	char *text = json_dumps(about, COMPACT);

	if (text && strlen(text) > TOOL_ABOUT_MAX) {
		free(text);
		text = NULL;
	}
	return text;
}

bool
shape_tool(const json_t *tool, struct shape_tool *tool_r)
{
	const char *name = json_string_value(json_object_get(tool, "name"));
	json_t *about;

	if (!name || strlen(name) != json_string_length(json_object_get(tool, "name")) ||
	    !is_name(name) || !json_is_object(json_object_get(tool, "inputSchema")))
		return false;
	about = xalloc_check(json_object());
	json_object_set_new(about, "name", xalloc_check(json_string(name)));
	copy_text(about, "title", tool, TITLE_MAX);
	copy_text(about, "description", tool, DESCRIPTION_MAX);
	copy_object(about, "inputSchema", tool);
	copy_object(about, "outputSchema", tool);
	copy_hints(about, tool);
	*tool_r = (struct shape_tool){
		.name = name,
		.read_only = json_is_true(json_object_get(json_object_get(about, "annotations"),
							  "readOnlyHint")),
		.about = write_about(about),
	};
	/* If the description is too long, the schema of results is left out: scripts can call the
	 * tool without it. */
	if (!tool_r->about) {
		json_object_del(about, "outputSchema");
		tool_r->about = write_about(about);
	}
	json_decref(about);
	return tool_r->about != NULL;
}

static enum tool_status
wrong(char **body_r, const char *text)
{
	*body_r = xstrdup(text);
	return TOOL_FAILED;
}

static bool
are_blocks(const json_t *content)
{
	const json_t *block;
	size_t i;

	json_array_foreach(content, i, block)
		if (!json_is_string(json_object_get(block, "type")))
			return false;
	return json_is_array(content);
}

enum tool_status
shape_result(const json_t *result, size_t max, char **body_r)
{
	json_t *content = json_object_get(result, "content"), *body;
	const json_t *type = json_object_get(result, "resultType");
	json_t *structured = json_object_get(result, "structuredContent");
	bool is_error = json_is_true(json_object_get(result, "isError"));
	char text[160];

	if (json_is_string(type) && strcmp(json_string_value(type), "complete") != 0)
		return wrong(body_r, "the server wants more from its client before it answers, "
			     "which scripts cannot give");
	if (!json_is_object(result) || (content && !are_blocks(content)) ||
	    (!content && !structured))
		return wrong(body_r, "the server's answer is no result of a tool");
	body = xalloc_check(json_object());
	if (content)
		json_object_set(body, "content", content);
	else
		json_object_set_new(body, "content", xalloc_check(json_array()));
	if (structured && !json_is_null(structured))
		json_object_set(body, "structuredContent", structured);
	*body_r = json_dumps(body, COMPACT);
	json_decref(body);
	if (!*body_r)
		return wrong(body_r, "the server's answer cannot be written as JSON");
	if (strlen(*body_r) <= max)
		return is_error ? TOOL_RAISED : TOOL_RETURNED;
	snprintf(text, sizeof(text), "the result has %zu bytes, and [tool-calls] result_bytes is "
		 "%zu", strlen(*body_r), max);
	free(*body_r);
	return wrong(body_r, text);
}
