/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Has the tables of revisions and methods, and functions that write messages. */
#include "mcp/revision.h"

#include <string.h>

#include "base/jsonout.h"
#include "mcp/catalog.h"
#include "mcp/tool.h"
#include "policy/config.h"

#define SERVER_NAME "mcp-pythond"
#define SERVER_TITLE "Python in a jail"
#define SERVER_ABOUT "Runs Python scripts, each in a fresh and isolated worker process."

static const struct revision revisions[] = {
	{ .name = "2024-11-05", .batches = true },
	{ .name = "2025-03-26", .batches = true, .event_ids = true,
	  .tool_annotations = true, .progress_message = true, .audio = true },
	{ .name = "2025-06-18", .event_ids = true,
	  .tool_annotations = true, .progress_message = true, .audio = true,
	  .titles = true, .structured = true, .links = true, .elicits = true },
	{ .name = "2025-11-25", .event_ids = true, .primes = true,
	  .tool_annotations = true, .progress_message = true, .audio = true,
	  .titles = true, .structured = true, .links = true, .elicits = true,
	  .elicit_mode = true, .about = true, .icons = true },
	{ .name = "2026-07-28", .modern = true,
	  .tool_annotations = true, .progress_message = true, .audio = true,
	  .titles = true, .structured = true, .links = true, .elicits = true,
	  .elicit_mode = true, .about = true, .icons = true },
};

/* The part of a catalog that a method belongs to. */
enum offer { ALWAYS, RESOURCES, SUBSCRIBING, PROMPTS, SKILLS, COMPLETION, LOGGING };

static const struct {
	const char *name;
	bool legacy, modern;
	enum offer offer;
} methods[METHOD_UNKNOWN] = {
#define METHOD(method, name, legacy, modern, offer, serve) { name, legacy, modern, offer },
#include "mcp/methods.def"
};

#define MODERN_LIST "[\"2026-07-28\"]"

#define N(array) (sizeof(array) / sizeof(*(array)))
#define NEWEST_LEGACY (&revisions[3])

const struct revision *
revision_find(const char *name)
{
	for (size_t i = 0; i < N(revisions); i++)
		if (strcmp(revisions[i].name, name) == 0)
			return &revisions[i];
	return NULL;
}

bool
revision_is_legacy(const char *name)
{
	const struct revision *revision = revision_find(name);

	return revision && !revision->modern;
}

const struct revision *
revision_negotiate(const char *name)
{
	const struct revision *revision = revision_find(name);

	return revision && !revision->modern ? revision : NEWEST_LEGACY;
}

/* Clients that show models only the structured content, according to their public sources and issue
 * threads: anthropics/claude-code#54737 and #79944, openai/codex ("we prefer structured_content"),
 * anomalyco/opencode#32868. */
static const char *const structured_alone[] = { "claude-code", "codex-mcp-client", "opencode" };

const struct revision *
revision_for_client(const struct revision *revision, uint32_t structured, const char *client)
{
	static struct revision plain[N(revisions)];
	bool drops = structured == STRUCTURED_NO;

	for (size_t i = 0; client && i < N(structured_alone); i++)
		drops |= structured == STRUCTURED_AUTO && strcmp(client, structured_alone[i]) == 0;
	for (size_t i = 0; drops && i < N(revisions); i++)
		if (revision == &revisions[i]) {
			plain[i] = *revision;
			plain[i].structured = false;
			return &plain[i];
		}
	return revision;
}

enum mcp_method
method_find(const char *name)
{
	enum mcp_method method = 0;

	while (method < METHOD_UNKNOWN && strcmp(methods[method].name, name) != 0)
		method++;
	return method;
}

static bool
offers(const struct catalog *catalog, enum offer offer)
{
	switch (offer) {
	case ALWAYS:
		return true;
	case RESOURCES:
		return catalog->resources;
	case SUBSCRIBING:
		return catalog->resources && catalog->resources->subscribes;
	case PROMPTS:
		return catalog->prompts;
	case SKILLS:
		return catalog->skills;
	case COMPLETION:
		return catalog->complete;
	case LOGGING:
		return catalog->logging;
	}
	return false;
}

bool
revision_has(const struct revision *revision, const struct catalog *catalog,
	     enum mcp_method method)
{
	return method < METHOD_UNKNOWN &&
	       (revision->modern ? methods[method].modern : methods[method].legacy) &&
	       offers(catalog, methods[method].offer);
}

char *
revision_unsupported(const json_t *requested)
{
	struct jsonout data;

	jsonout_init(&data);
	jsonout_open(&data, '{');
	jsonout_member_raw(&data, "supported", MODERN_LIST);
	jsonout_member_string(&data, "requested", json_string_value(requested),
			      json_string_length(requested));
	jsonout_close(&data, '}');
	return jsonout_take(&data);
}

static void
write_icon(const struct revision *revision, struct jsonout *out, enum icon icon)
{
	const char *svg = icon_svg(icon);

	if (!revision->icons || !svg)
		return;
	jsonout_member_open(out, "icons", '[');
	jsonout_open(out, '{');
	jsonout_key(out, "src");
	jsonout_data_uri(out, ICON_TYPE, svg, strlen(svg));
	jsonout_member_text(out, "mimeType", ICON_TYPE);
	jsonout_member_raw(out, "sizes", "[\"any\"]");
	jsonout_close(out, '}');
	jsonout_close(out, ']');
}

/* Writes the name and version of this server. icon: ICON_NONE in answers to every request, because
 * an icon is large. */
static void
write_implementation(const struct revision *revision, struct jsonout *out, enum icon icon)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "name", SERVER_NAME);
	jsonout_member_text(out, "version", PACKAGE_VERSION);
	if (revision->titles)
		jsonout_member_text(out, "title", SERVER_TITLE);
	if (revision->about)
		jsonout_member_text(out, "description", SERVER_ABOUT);
	write_icon(revision, out, icon);
	jsonout_close(out, '}');
}

/* Writes the beginning of a result. A modern result has its type and the name of the server. */
static void
open_result(const struct revision *revision, struct jsonout *out, const char *type,
	    enum icon icon)
{
	jsonout_open(out, '{');
	if (!revision->modern)
		return;
	jsonout_member_text(out, "resultType", type);
	jsonout_member_open(out, "_meta", '{');
	jsonout_key(out, META_SERVER_INFO);
	write_implementation(revision, out, icon);
	jsonout_close(out, '}');
}

void
revision_open_result(const struct revision *revision, struct jsonout *out, const char *type)
{
	open_result(revision, out, type, ICON_NONE);
}

void
revision_write_caching(const struct revision *revision, struct jsonout *out,
		       unsigned int ttl_ms, const char *scope)
{
	if (!revision->modern)
		return;
	jsonout_member_uint(out, "ttlMs", ttl_ms);
	jsonout_member_text(out, "cacheScope", scope);
}

static void
write_capabilities(const struct revision *revision, struct jsonout *out,
		   const struct catalog *catalog)
{
	jsonout_member_open(out, "capabilities", '{');
	jsonout_member_raw(out, "tools", "{\"listChanged\":true}");
	if (catalog->resources)
		jsonout_member_raw(out, "resources",
				   catalog->resources->subscribes ? "{\"subscribe\":true}"
								  : "{}");
	if (catalog->prompts)
		jsonout_member_raw(out, "prompts", "{}");
	if (catalog->complete && revision->tool_annotations)	/* the same revisions have both */
		jsonout_member_raw(out, "completions", "{}");
	if (catalog->logging)
		jsonout_member_raw(out, "logging", "{}");
	jsonout_member_open(out, revision->modern ? "extensions" : "experimental", '{');
	if (revision->modern)
		jsonout_member_raw(out, EXTENSION_TASKS, "{}");
	jsonout_member_raw(out, EXTENSION_CLIENT_TOOLS, "{}");
	if (revision->modern && catalog->skills)
		jsonout_member_raw(out, EXTENSION_SKILLS, "{}");
	jsonout_close(out, '}');
	jsonout_close(out, '}');
}

void
revision_write_initialized(const struct revision *revision, struct jsonout *out,
			   const struct catalog *catalog, const char *instructions)
{
	revision_open_result(revision, out, "complete");
	jsonout_member_text(out, "protocolVersion", revision->name);
	write_capabilities(revision, out, catalog);
	jsonout_key(out, "serverInfo");
	write_implementation(revision, out, ICON_SERVER);
	jsonout_member_text(out, "instructions", instructions);
	jsonout_close(out, '}');
}

void
revision_write_discovered(const struct revision *revision, struct jsonout *out,
			  const struct catalog *catalog, const char *instructions)
{
	open_result(revision, out, "complete", ICON_SERVER);
	jsonout_member_raw(out, "supportedVersions", MODERN_LIST);
	write_capabilities(revision, out, catalog);
	jsonout_member_text(out, "instructions", instructions);
	revision_write_caching(revision, out, TTL_DISCOVER_MS, "public");
	jsonout_close(out, '}');
}

/* Does object have this member? A value that is not an object counts as absent. */
static bool
declares(const json_t *object, const char *key)
{
	return json_is_object(json_object_get(object, key));
}

/* Does the client take forms? {} means that it does; a list of modes must name them. */
static bool
declares_forms(const struct revision *revision, const json_t *elicitation)
{
	if (!json_is_object(elicitation))
		return false;
	return !revision->elicit_mode || declares(elicitation, "form") ||
	       !declares(elicitation, "url");
}

/* Does the client show pages of the type that views have? */
static bool
declares_views(const json_t *views)
{
	const json_t *type;
	size_t i;

	json_array_foreach(json_object_get(views, "mimeTypes"), i, type)
		if (json_is_string(type) && strcmp(json_string_value(type), VIEW_TYPE) == 0)
			return true;
	return false;
}

unsigned int
revision_abilities(const struct revision *revision, const json_t *capabilities)
{
	const json_t *extensions = json_object_get(capabilities, "extensions");
	unsigned int abilities = 0;

	if (revision->elicits &&
	    declares_forms(revision, json_object_get(capabilities, "elicitation")))
		abilities |= CLIENT_ELICITS;
	if (declares(capabilities, "sampling"))
		abilities |= CLIENT_SAMPLES;
	if (declares(capabilities, "roots"))
		abilities |= CLIENT_HAS_ROOTS;
	if (revision->modern && declares(extensions, EXTENSION_TASKS))
		abilities |= CLIENT_TAKES_TASKS;
	if (declares_views(json_object_get(extensions, EXTENSION_VIEWS)))
		abilities |= CLIENT_SHOWS_VIEWS;
	if (declares(revision->modern ? extensions : json_object_get(capabilities, "experimental"),
		     EXTENSION_CLIENT_TOOLS))
		abilities |= CLIENT_HAS_TOOLS;
	return abilities;
}

void
revision_write_empty(const struct revision *revision, struct jsonout *out)
{
	revision_open_result(revision, out, "complete");
	jsonout_close(out, '}');
}

/* Hosts of before the extension's first revision know only the flat key. */
static void
write_view(struct jsonout *out, const char *uri)
{
	jsonout_member_open(out, "_meta", '{');
	jsonout_member_open(out, "ui", '{');
	jsonout_member_text(out, "resourceUri", uri);
	jsonout_close(out, '}');
	jsonout_member_text(out, "ui/resourceUri", uri);
	jsonout_close(out, '}');
}

static void
revision_write_tool(const struct revision *revision, struct jsonout *out,
		    const struct tool_description *tool, bool views)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "name", tool->name);
	if (revision->titles && tool->title)
		jsonout_member_text(out, "title", tool->title);
	write_icon(revision, out, tool->icon);
	jsonout_member_text(out, "description", tool->description);
	jsonout_member_raw(out, "inputSchema", tool->input_schema);
	if (revision->structured && tool->output_schema)
		jsonout_member_raw(out, "outputSchema", tool->output_schema);
	if (revision->tool_annotations) {
		jsonout_member_open(out, "annotations", '{');
		if (tool->title)
			jsonout_member_text(out, "title", tool->title);
		jsonout_member_bool(out, "readOnlyHint", tool->read_only);
		jsonout_member_bool(out, "destructiveHint", tool->destructive);
		jsonout_member_bool(out, "idempotentHint", tool->idempotent);
		jsonout_member_bool(out, "openWorldHint", tool->open_world);
		jsonout_close(out, '}');
	}
	if (views && tool->view)
		write_view(out, tool->view);
	jsonout_close(out, '}');
}

void
revision_write_tools(const struct revision *revision, struct jsonout *out,
		     const struct tool_description *tools, size_t n_tools, bool views)
{
	revision_open_result(revision, out, "complete");
	jsonout_member_open(out, "tools", '[');
	for (size_t i = 0; i < n_tools; i++)
		revision_write_tool(revision, out, &tools[i], views);
	jsonout_close(out, ']');
	revision_write_caching(revision, out, TTL_LIST_MS, "private");
	jsonout_close(out, '}');
}
