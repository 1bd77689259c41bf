/* Runs in: the supervisor.   Owns: nothing; tables and writers. */
#include "supervisor/revision.h"

#include <string.h>

#include "supervisor/jsonout.h"
#include "supervisor/tools/tool.h"

#define SERVER_NAME "mcp-pythond"
#define SERVER_TITLE "Python in a jail"
#define SERVER_ABOUT "Runs Python scripts, each in a fresh and isolated worker process."

/* How long clients may keep what they were told: it changes with the configuration, that
 * is, with a restart. What tenants see may come to differ, hence private for tools. */
#define DISCOVER_TTL_MS 3600000
#define TOOLS_TTL_MS 300000

/* clang-format off */
static const struct revision revisions[] = {
	{ .name = "2024-11-05", .batches = true },
	{ .name = "2025-03-26", .batches = true,
	  .tool_annotations = true, .progress_message = true },
	{ .name = "2025-06-18",
	  .tool_annotations = true, .progress_message = true,
	  .titles = true, .structured = true },
	{ .name = "2025-11-25",
	  .tool_annotations = true, .progress_message = true,
	  .titles = true, .structured = true, .about = true },
	{ .name = "2026-07-28", .modern = true,
	  .tool_annotations = true, .progress_message = true,
	  .titles = true, .structured = true, .about = true },
};

static const struct {
	const char *name;
	enum mcp_method method;
	bool legacy, modern;
} methods[] = {
	{ "initialize",                METHOD_INITIALIZE,       true,  false },
	{ "ping",                      METHOD_PING,             true,  false },
	{ "server/discover",           METHOD_DISCOVER,         false, true },
	{ "tools/list",                METHOD_TOOLS_LIST,       true,  true },
	{ "tools/call",                METHOD_TOOLS_CALL,       true,  true },
	{ "notifications/initialized", METHOD_NOTE_INITIALIZED, true,  false },
	{ "notifications/cancelled",   METHOD_NOTE_CANCELLED,   true,  true },
};
/* clang-format on */

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

const struct revision *
revision_negotiate(const char *name)
{
	const struct revision *revision = revision_find(name);

	return revision && !revision->modern ? revision : NEWEST_LEGACY;
}

enum mcp_method
method_find(const char *name)
{
	for (size_t i = 0; i < N(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return methods[i].method;
	return METHOD_UNKNOWN;
}

bool
revision_has(const struct revision *revision, enum mcp_method method)
{
	for (size_t i = 0; i < N(methods); i++)
		if (methods[i].method == method)
			return revision->modern ? methods[i].modern : methods[i].legacy;
	return false;
}

const char *
revision_modern_list(void)
{
	return "[\"2026-07-28\"]";
}

static void
write_implementation(const struct revision *revision, struct jsonout *out)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "name", SERVER_NAME);
	jsonout_member_text(out, "version", PACKAGE_VERSION);
	if (revision->titles)
		jsonout_member_text(out, "title", SERVER_TITLE);
	if (revision->about)
		jsonout_member_text(out, "description", SERVER_ABOUT);
	jsonout_close(out, '}');
}

/* Opens a result; every modern one says what it is and who made it. */
static void
open_result(const struct revision *revision, struct jsonout *out)
{
	jsonout_open(out, '{');
	if (!revision->modern)
		return;
	jsonout_member_text(out, "resultType", "complete");
	jsonout_key(out, "_meta");
	jsonout_open(out, '{');
	jsonout_key(out, META_SERVER_INFO);
	write_implementation(revision, out);
	jsonout_close(out, '}');
}

static void
write_caching(const struct revision *revision, struct jsonout *out, unsigned int ttl_ms,
	      const char *scope)
{
	if (!revision->modern)
		return;
	jsonout_member_uint(out, "ttlMs", ttl_ms);
	jsonout_member_text(out, "cacheScope", scope);
}

void
revision_write_initialized(const struct revision *revision, struct jsonout *out,
			   const char *instructions)
{
	open_result(revision, out);
	jsonout_member_text(out, "protocolVersion", revision->name);
	jsonout_member_raw(out, "capabilities", "{\"tools\":{}}");
	jsonout_key(out, "serverInfo");
	write_implementation(revision, out);
	jsonout_member_text(out, "instructions", instructions);
	jsonout_close(out, '}');
}

void
revision_write_discovered(const struct revision *revision, struct jsonout *out,
			  const char *instructions)
{
	open_result(revision, out);
	jsonout_member_raw(out, "supportedVersions", revision_modern_list());
	jsonout_member_raw(out, "capabilities", "{\"tools\":{}}");
	jsonout_member_text(out, "instructions", instructions);
	write_caching(revision, out, DISCOVER_TTL_MS, "public");
	jsonout_close(out, '}');
}

void
revision_write_empty(const struct revision *revision, struct jsonout *out)
{
	open_result(revision, out);
	jsonout_close(out, '}');
}

static void
write_tool(const struct revision *revision, struct jsonout *out,
	   const struct tool_description *tool)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "name", tool->name);
	if (revision->titles)
		jsonout_member_text(out, "title", tool->title);
	jsonout_member_text(out, "description", tool->description);
	jsonout_member_raw(out, "inputSchema", tool->input_schema);
	if (revision->structured)
		jsonout_member_raw(out, "outputSchema", tool->output_schema);
	if (revision->tool_annotations) {
		jsonout_key(out, "annotations");
		jsonout_open(out, '{');
		jsonout_member_text(out, "title", tool->title);
		jsonout_member_bool(out, "readOnlyHint", tool->read_only);
		jsonout_member_bool(out, "destructiveHint", tool->destructive);
		jsonout_member_bool(out, "idempotentHint", tool->idempotent);
		jsonout_member_bool(out, "openWorldHint", tool->open_world);
		jsonout_close(out, '}');
	}
	jsonout_close(out, '}');
}

void
revision_write_tools(const struct revision *revision, struct jsonout *out,
		     const struct tool_description *tools, size_t n_tools)
{
	open_result(revision, out);
	jsonout_key(out, "tools");
	jsonout_open(out, '[');
	for (size_t i = 0; i < n_tools; i++)
		write_tool(revision, out, &tools[i]);
	jsonout_close(out, ']');
	write_caching(revision, out, TOOLS_TTL_MS, "private");
	jsonout_close(out, '}');
}

void
revision_write_answer(const struct revision *revision, struct jsonout *out,
		      const struct tool_answer *answer)
{
	open_result(revision, out);
	jsonout_key(out, "content");
	jsonout_open(out, '[');
	jsonout_open(out, '{');
	jsonout_member_text(out, "type", "text");
	jsonout_key(out, "text");
	jsonout_text(out, answer->text, answer->text_len);
	jsonout_close(out, '}');
	jsonout_close(out, ']');
	if (revision->structured) {
		jsonout_key(out, "structuredContent");
		jsonout_raw(out, answer->structured, answer->structured_len);
	}
	jsonout_member_bool(out, "isError", answer->is_error);
	jsonout_close(out, '}');
}

static void
write_piece(struct jsonout *out, const struct progress_note *note)
{
	jsonout_key(out, "_meta");
	jsonout_open(out, '{');
	jsonout_key(out, META_OUTPUT);
	jsonout_open(out, '{');
	jsonout_member_text(out, "stream", note->stream);
	jsonout_member_uint(out, "offset", note->offset);
	jsonout_key(out, "text");
	jsonout_text(out, note->text, note->text_len);
	jsonout_close(out, '}');
	jsonout_close(out, '}');
}

void
revision_write_progress(const struct revision *revision, struct jsonout *out,
			const struct progress_note *note)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "jsonrpc", "2.0");
	jsonout_member_text(out, "method", "notifications/progress");
	jsonout_key(out, "params");
	jsonout_open(out, '{');
	jsonout_member_raw(out, "progressToken", note->token);
	jsonout_member_uint(out, "progress", note->progress);
	if (revision->progress_message && note->message_len) {
		jsonout_key(out, "message");
		jsonout_text(out, note->message, note->message_len);
	}
	if (note->stream)
		write_piece(out, note);
	jsonout_close(out, '}');
	jsonout_close(out, '}');
}
