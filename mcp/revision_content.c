/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing; this file writes the content of a run's answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "mcp/revision.h"
#include "mcp/tool.h"

static const char *const level_names[] = {
	[LEVEL_DEBUG] = "debug",       [LEVEL_INFO] = "info",
	[LEVEL_NOTICE] = "notice",     [LEVEL_WARNING] = "warning",
	[LEVEL_ERROR] = "error",       [LEVEL_CRITICAL] = "critical",
	[LEVEL_ALERT] = "alert",       [LEVEL_EMERGENCY] = "emergency",
};

int
revision_log_level(const char *name)
{
	for (int i = 0; i < (int)(sizeof(level_names) / sizeof(*level_names)); i++)
		if (strcmp(level_names[i], name) == 0)
			return i;
	return -1;
}

/* ---- content blocks ---- */

static void
revision_content_member_if(struct jsonout *out, const char *key, const char *text)
{
	if (text)
		jsonout_member_text(out, key, text);
}

static void
write_text_block(struct jsonout *out, const char *text, size_t len)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "type", "text");
	jsonout_key(out, "text");
	jsonout_text(out, text, len);
	jsonout_close(out, '}');
}

/* Writes a text in place of a block of a kind that the revision lacks. */
static void
write_instead(struct jsonout *out, const struct content *block)
{
	own_mem char *text = block->kind == CONTENT_LINK
		? xasprintf("%s: %s", block->name, block->uri)
		: xasprintf("[%s, %zu bytes]", block->mime_type, block->data_len);

	write_text_block(out, text, strlen(text));
}

static void
write_media(struct jsonout *out, const char *type, const struct content *block)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "type", type);
	jsonout_key(out, "data");
	jsonout_base64(out, block->data, block->data_len);
	jsonout_member_text(out, "mimeType", block->mime_type);
	jsonout_close(out, '}');
}

/* Writes the contents of a resource: for the result of resources/read, or for the inside of a
 * block. */
static void
write_contents(struct jsonout *out, const struct content *block)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "uri", block->uri);
	revision_content_member_if(out, "mimeType", block->mime_type);
	jsonout_key(out, block->text ? "text" : "blob");
	if (block->text)
		jsonout_text(out, block->text, block->text_len);
	else
		jsonout_base64(out, block->data, block->data_len);
	if (block->meta)
		jsonout_member_raw(out, "_meta", block->meta);
	jsonout_close(out, '}');
}

static void
write_link(struct jsonout *out, const struct content *block)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "type", "resource_link");
	jsonout_member_text(out, "uri", block->uri);
	jsonout_member_text(out, "name", block->name);
	revision_content_member_if(out, "title", block->title);
	revision_content_member_if(out, "description", block->description);
	revision_content_member_if(out, "mimeType", block->mime_type);
	if (block->size)
		jsonout_member_uint(out, "size", block->size);
	jsonout_close(out, '}');
}

static void
write_block(const struct revision *revision, struct jsonout *out,
	    const struct content *block)
{
	switch (block->kind) {
	case CONTENT_TEXT:
		write_text_block(out, block->text, block->text_len);
		break;
	case CONTENT_IMAGE:
		write_media(out, "image", block);
		break;
	case CONTENT_AUDIO:
		if (revision->audio)
			write_media(out, "audio", block);
		else
			write_instead(out, block);
		break;
	case CONTENT_RESOURCE:
		jsonout_open(out, '{');
		jsonout_member_text(out, "type", "resource");
		jsonout_key(out, "resource");
		write_contents(out, block);
		jsonout_close(out, '}');
		break;
	case CONTENT_LINK:
		if (revision->links)
			write_link(out, block);
		else
			write_instead(out, block);
		break;
	}
}

/* ---- answers ---- */

static void
write_called(const struct revision *revision, struct jsonout *out,
	     const struct tool_answer *answer)
{
	jsonout_member_open(out, "content", '[');
	if (answer->text)
		write_text_block(out, answer->text, answer->text_len);
	for (size_t i = 0; i < answer->n_content; i++)
		write_block(revision, out, &answer->content[i]);
	jsonout_close(out, ']');
	if (revision->structured && answer->structured) {
		jsonout_key(out, "structuredContent");
		jsonout_raw(out, answer->structured, answer->structured_len);
	}
	jsonout_member_bool(out, "isError", answer->is_error);
}

static void
write_messages(const struct revision *revision, struct jsonout *out,
	       const struct tool_answer *answer)
{
	if (answer->text) {
		jsonout_key(out, "description");
		jsonout_text(out, answer->text, answer->text_len);
	}
	jsonout_member_open(out, "messages", '[');
	for (size_t i = 0; i < answer->n_content; i++) {
		const struct content *block = &answer->content[i];

		jsonout_open(out, '{');
		jsonout_member_text(out, "role", block->role ? block->role : "user");
		jsonout_key(out, "content");
		write_block(revision, out, block);
		jsonout_close(out, '}');
	}
	jsonout_close(out, ']');
}

static void
write_read(const struct revision *revision, struct jsonout *out,
	   const struct tool_answer *answer)
{
	jsonout_member_open(out, "contents", '[');
	for (size_t i = 0; i < answer->n_content; i++)
		if (answer->content[i].kind == CONTENT_RESOURCE)
			write_contents(out, &answer->content[i]);
	jsonout_close(out, ']');
	revision_write_caching(revision, out, TTL_MOVING_MS, "private");
}

void
revision_write_answer(const struct revision *revision, struct jsonout *out,
		      enum mcp_method method, const struct tool_answer *answer)
{
	revision_open_result(revision, out, "complete");
	if (method == METHOD_PROMPTS_GET)
		write_messages(revision, out, answer);
	else if (method == METHOD_RESOURCES_READ)
		write_read(revision, out, answer);
	else
		write_called(revision, out, answer);
	jsonout_close(out, '}');
}

/* ---- failures ---- */

static void
write_lacks(struct jsonout *out, unsigned int abilities)
{
	jsonout_open(out, '{');
	jsonout_member_open(out, "requiredCapabilities", '{');
	if (abilities & CLIENT_ELICITS)
		jsonout_member_raw(out, "elicitation", "{\"form\":{}}");
	if (abilities & CLIENT_SAMPLES)
		jsonout_member_raw(out, "sampling", "{}");
	if (abilities & CLIENT_HAS_ROOTS)
		jsonout_member_raw(out, "roots", "{}");
	if (abilities & CLIENT_TAKES_TASKS)
		jsonout_member_raw(out, "extensions", "{\"" EXTENSION_TASKS "\":{}}");
	jsonout_close(out, '}');
	jsonout_close(out, '}');
}

/* The JSON text of an error's data, malloc'd. */
static char *
data_of(const struct tool_failure *failure)
{
	struct jsonout data;

	jsonout_init(&data);
	if (failure->kind == FAIL_CLIENT_LACKS) {
		write_lacks(&data, failure->lacks);
	} else {
		jsonout_open(&data, '{');
		jsonout_member_text(&data, "uri", failure->text);
		jsonout_close(&data, '}');
	}
	return jsonout_take(&data);
}

static const char client_lacks[] = "this needs a client that can be asked, and yours has not "
				   "declared that it can";

void
revision_write_error(const struct revision *revision, struct jsonout *out,
		     const struct tool_failure *failure)
{
	int code = failure->code;
	const char *text = failure->text;
	char *data;

	if (failure->kind == FAIL_RPC) {
		jsonrpc_write_error_object(out, code, text, failure->data);
		return;
	}
	data = data_of(failure);
	if (failure->kind == FAIL_NO_RESOURCE) {
		code = revision->modern ? JSONRPC_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND;
		text = strchr(failure->text, ':') && strncmp(failure->text, "file:", 5) != 0
			? "there is no such resource: it never was, its time is over, or it was in "
			  "memory when the service was restarted"
			: "a path is no uri of a resource: files have uris in the answers of calls, and "
			  "what a session has in /workspace is read by its cells";
	} else {
		code = revision->modern ? MCP_CLIENT_LACKS : JSONRPC_INTERNAL_ERROR;
		text = client_lacks;
	}
	jsonrpc_write_error_object(out, code, text, data);
	free(data);
}

void
revision_write_failure(const struct revision *revision, struct jsonout *out,
		       const char *id_raw, enum mcp_method method,
		       const struct tool_failure *failure)
{
	const struct tool_answer answer = { .text = client_lacks,
					    .text_len = sizeof(client_lacks) - 1,
					    .is_error = true };

	if (failure->kind == FAIL_CLIENT_LACKS && !revision->modern &&
	    method == METHOD_TOOLS_CALL) {
		jsonrpc_open_result(out, id_raw);
		revision_write_answer(revision, out, method, &answer);
	} else {
		jsonrpc_open_error(out, id_raw);
		revision_write_error(revision, out, failure);
	}
	jsonrpc_close_result(out);
}

/* ---- notifications ---- */

void
revision_write_log(struct jsonout *out, const struct tool_log *log)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "jsonrpc", "2.0");
	jsonout_member_text(out, "method", "notifications/message");
	jsonout_member_open(out, "params", '{');
	jsonout_member_text(out, "level", level_names[log->level]);
	revision_content_member_if(out, "logger", log->logger);
	jsonout_member_raw(out, "data", log->data);
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
	jsonout_member_open(out, "params", '{');
	jsonout_member_raw(out, "progressToken", note->token);
	jsonout_member_real(out, "progress", note->progress);
	if (note->total > 0) {
		jsonout_member_real(out, "total", note->total);
	}
	if (revision->progress_message && note->message_len) {
		jsonout_key(out, "message");
		jsonout_text(out, note->message, note->message_len);
	}
	if (note->stream) {
		jsonout_member_open(out, "_meta", '{');
		jsonout_member_open(out, META_OUTPUT, '{');
		jsonout_member_text(out, "stream", note->stream);
		jsonout_member_uint(out, "offset", note->offset);
		jsonout_key(out, "text");
		jsonout_text(out, note->text, note->text_len);
		jsonout_close(out, '}');
		jsonout_close(out, '}');
	}
	jsonout_close(out, '}');
	jsonout_close(out, '}');
}
