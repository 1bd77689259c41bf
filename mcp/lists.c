/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Serves the lists, page by page, and completion.
 * Reads:   cursors, which a client can make up; a cursor only names a position to continue from. */
#include <string.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "mcp/catalog.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/cursor.h"
#include "mcp/tool_list.h"

#define PAGE_MAX 100

/* Reads the request's cursor, malloc'd; "": the list begins. NULL: the cursor is not valid, and the
 * request was answered. */
static char *
read_cursor(const struct request *request)
{
	const json_t *cursor = json_object_get(request->message->params, "cursor");
	char *after = NULL;

	if (!cursor)
		return xstrdup("");
	if (json_is_string(cursor))
		after = cursor_read(json_string_value(cursor), json_string_length(cursor));
	if (!after)
		request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS,
			      "unknown cursor", NULL);
	return after;
}

static void
open_list(const struct request *request, struct jsonout *out, const char *key)
{
	jsonout_init(out);
	jsonrpc_open_result(out, request->message->id.raw);
	revision_open_result(request->revision, out, "complete");
	jsonout_member_open(out, key, '[');
}

/* Ends a page, and answers the request. last: the last item of the page, for the cursor of the next
 * one; NULL: there is no next page. */
static void
close_list(const struct request *request, struct jsonout *out, const char *last,
	   unsigned int ttl_ms)
{
	jsonout_close(out, ']');
	if (last) {
		char *cursor = cursor_write(last);

		jsonout_member_text(out, "nextCursor", cursor);
		free(cursor);
	}
	revision_write_caching(request->revision, out, ttl_ms, "private");
	jsonout_close(out, '}');
	jsonrpc_close_result(out);
	request_answer(request, MCP_SENT_ANSWER, out);
}

/* Checks the cursor for a list with a single page: only an empty one, the beginning, is accepted.
 * False: the request was answered. */
static bool
takes_no_cursor(const struct request *request)
{
	own_mem char *after = read_cursor(request);
	bool fine = after && !*after;

	if (after && *after)
		request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS,
			      "unknown cursor", NULL);
	return fine;
}

void
serve_tools_list(struct request *request, enum mcp_method)
{
	const struct mcp_conversation *conversation = request->conversation;
	struct tool_list *list;
	struct jsonout out;

	if (!takes_no_cursor(request))
		return;
	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	list = mcp_tool_list(conversation->mcp, conversation->options.tenant);
	revision_write_tools(request->revision, &out, list->tool, list->n,
			     request->abilities & CLIENT_SHOWS_VIEWS);
	tool_list_release(list);
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

static void
lists_member_if(struct jsonout *out, const char *key, const char *text)
{
	if (text)
		jsonout_member_text(out, key, text);
}

static void
write_described(const struct revision *revision, struct jsonout *out, const char *name,
		const char *title, const char *description)
{
	jsonout_member_text(out, "name", name);
	if (revision->titles)
		lists_member_if(out, "title", title);
	lists_member_if(out, "description", description);
}

/* Replaces *place, the position for the provider's next page. */
static void
move_on(char **place, const char *to)
{
	char *copy = xstrdup(to);

	free(*place);
	*place = copy;
}

void
serve_resources_list(struct request *request, enum mcp_method method)
{
	const struct mcp_conversation *conversation = request->conversation;
	const struct resource_provider *provider = conversation->mcp->options.catalog->resources;
	const bool templates = method == METHOD_RESOURCES_TEMPLATES;
	bool (*next)(struct tenant *tenant, const char *after, struct resource *resource_r) =
		templates ? provider->next_template : provider->next;
	struct tenant *tenant = conversation->options.tenant;
	char *place = read_cursor(request);
	struct resource resource;
	struct jsonout out;
	size_t n = 0;
	bool more = true;

	if (!place)
		return;
	open_list(request, &out, templates ? "resourceTemplates" : "resources");
	for (; n < PAGE_MAX && more; n++) {
		memset(&resource, 0, sizeof(resource));
		more = next(tenant, place, &resource);
		if (!more)
			break;
		jsonout_open(&out, '{');
		jsonout_member_text(&out, templates ? "uriTemplate" : "uri", resource.uri);
		write_described(request->revision, &out, resource.name, resource.title,
				resource.description);
		lists_member_if(&out, "mimeType", resource.mime_type);
		if (resource.size)
			jsonout_member_uint(&out, "size", resource.size);
		jsonout_close(&out, '}');
		move_on(&place, resource.uri);
	}
	more = more && next(tenant, place, &resource);
	close_list(request, &out, more ? place : NULL, templates ? TTL_LIST_MS : TTL_MOVING_MS);
	free(place);
}

static void
write_prompt(const struct revision *revision, struct jsonout *out,
	     const struct prompt *prompt)
{
	jsonout_open(out, '{');
	write_described(revision, out, prompt->name, prompt->title, prompt->description);
	if (prompt->n_arguments) {
		jsonout_member_open(out, "arguments", '[');
		for (size_t i = 0; i < prompt->n_arguments; i++) {
			jsonout_open(out, '{');
			jsonout_member_text(out, "name", prompt->argument[i].name);
			lists_member_if(out, "description", prompt->argument[i].description);
			jsonout_member_bool(out, "required", prompt->argument[i].required);
			jsonout_close(out, '}');
		}
		jsonout_close(out, ']');
	}
	jsonout_close(out, '}');
}

void
serve_prompts_list(struct request *request, enum mcp_method)
{
	const struct prompt_provider *provider =
		request->conversation->mcp->options.catalog->prompts;
	struct jsonout out;

	if (!takes_no_cursor(request))
		return;
	open_list(request, &out, "prompts");
	for (size_t i = 0; i < provider->n_prompts; i++)
		write_prompt(request->revision, &out, &provider->prompt[i]);
	close_list(request, &out, NULL, TTL_LIST_MS);
}

static void
serve_skill(const struct request *request, const struct skill_provider *provider)
{
	const char *uri = text_member(request->message->params, "uri");
	const struct skill *skill = uri ? provider->find(uri) : NULL;
	struct jsonout out;

	if (!skill) {
		request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS,
			      "uri must name the SKILL.md of a skill", NULL);
		return;
	}
	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_open_result(request->revision, &out, "complete");
	jsonout_member_raw(&out, "skill", skill->listed);
	revision_write_caching(request->revision, &out, TTL_DISCOVER_MS, "private");
	jsonout_close(&out, '}');
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

void
serve_skills(struct request *request, enum mcp_method method)
{
	const struct skill_provider *provider = request->conversation->mcp->options.catalog->skills;
	struct jsonout out;

	if (method == METHOD_SKILLS_GET) {
		serve_skill(request, provider);
		return;
	}
	if (!takes_no_cursor(request))
		return;
	open_list(request, &out, "skills");
	for (size_t i = 0; i < provider->n; i++)
		jsonout_raw(&out, provider->skill[i].listed, strlen(provider->skill[i].listed));
	close_list(request, &out, NULL, TTL_DISCOVER_MS);
}

static bool
read_completion(const json_t *params, struct completion_request *request_r)
{
	const json_t *ref = json_object_get(params, "ref");
	const json_t *argument = json_object_get(params, "argument");
	const char *type = text_member(ref, "type");

	*request_r = (struct completion_request){
		.argument = text_member(argument, "name"),
		.value = text_member(argument, "value"),
	};
	if (type && strcmp(type, "ref/prompt") == 0)
		request_r->prompt = text_member(ref, "name");
	else if (type && strcmp(type, "ref/resource") == 0)
		request_r->resource = text_member(ref, "uri");
	return request_r->argument && request_r->value &&
	       (request_r->prompt || request_r->resource);
}

static void
answer_completion(const struct request *request, const struct completion *completion)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_open_result(request->revision, &out, "complete");
	jsonout_member_open(&out, "completion", '{');
	jsonout_member_open(&out, "values", '[');
	for (size_t i = 0; i < completion->n; i++)
		jsonout_text(&out, completion->value[i], strlen(completion->value[i]));
	jsonout_close(&out, ']');
	if (completion->total)
		jsonout_member_uint(&out, "total", completion->total);
	jsonout_member_bool(&out, "hasMore", completion->has_more);
	jsonout_close(&out, '}');
	jsonout_close(&out, '}');
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

void
serve_complete(struct request *request, enum mcp_method)
{
	const struct mcp_conversation *conversation = request->conversation;
	const struct catalog *catalog = conversation->mcp->options.catalog;
	struct completion_request wanted;
	struct completion completion = { .n = 0 };

	if (!read_completion(request->message->params, &wanted) ||
	    !catalog->complete(conversation->options.tenant, &wanted, &completion))
		request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS,
			      "ref and argument must name something that can be completed",
			      NULL);
	else
		answer_completion(request, &completion);
}
