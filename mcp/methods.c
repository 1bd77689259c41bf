/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Serves requests that are answered at once.
 * Reads:   params of a client, in any shape. */
#include <string.h>

#include "base/xalloc.h"
#include "mcp/catalog.h"
#include "mcp/client_tools.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/tool_list.h"
#include "policy/config.h"

#define SUBSCRIPTIONS_MAX 256		/* of one conversation */
#define URI_MAX 4096			/* bytes */

static void
methods_refuse_params(const struct request *request, const char *text)
{
	request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS, text, NULL);
}

static void
serve_initialize(const struct request *request)
{
	struct mcp_conversation *conversation = request->conversation;
	const json_t *params = request->message->params;
	const json_t *capabilities = json_object_get(params, "capabilities");
	const json_t *client = json_object_get(params, "clientInfo");
	const char *wanted = text_member(params, "protocolVersion");
	struct client_tools *client_tools;
	const char *wrong;
	struct tool_list *tools;
	struct jsonout out;

	if (conversation->session || request->batch) {
		request_error(request, MCP_SENT_REFUSAL, JSONRPC_INVALID_REQUEST,
			      request->batch ? "initialize may not be part of a batch"
					     : "this stream is initialized already", NULL);
		return;
	}
	if (!wanted || !json_is_object(capabilities) || !text_member(client, "name") ||
	    !text_member(client, "version")) {
		methods_refuse_params(request, "initialize needs protocolVersion, capabilities and "
				       "clientInfo with name and version");
		return;
	}
	wrong = client_tools_read(json_object_get(capabilities, "experimental"), &client_tools);
	if (wrong) {
		methods_refuse_params(request, wrong);
		return;
	}
	conversation->client_tools = client_tools;
	conversation->session = revision_for_client(revision_negotiate(wanted),
						    mcp_config(conversation->mcp)->mcp.structured,
						    text_member(client, "name"));
	conversation->abilities = revision_abilities(conversation->session, capabilities);
	tools = mcp_tool_list(conversation->mcp, conversation->options.tenant);
	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_initialized(conversation->session, &out,
				   mcp_catalog(conversation->mcp),
				   tool_list_instructions(tools));
	tool_list_release(tools);
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

static void
answer_empty(const struct request *request)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_empty(request->revision, &out);
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

static void
serve_discover(const struct request *request)
{
	struct mcp *mcp = request->conversation->mcp;
	struct tool_list *tools = mcp_tool_list(mcp, request->conversation->options.tenant);
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_discovered(request->revision, &out, mcp_catalog(mcp),
				  tool_list_instructions(tools));
	tool_list_release(tools);
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

static void
serve_set_level(const struct request *request)
{
	const char *name = text_member(request->message->params, "level");
	int level = name ? revision_log_level(name) : -1;

	if (level < 0) {
		methods_refuse_params(request, "level is not a log level");
		return;
	}
	request->conversation->log_level = (enum log_level)level;
	answer_empty(request);
}

static void
serve_subscribe(const struct request *request, bool subscribe)
{
	struct mcp_conversation *conversation = request->conversation;
	const char *uri = text_member(request->message->params, "uri");

	if (!uri || strlen(uri) > URI_MAX) {
		methods_refuse_params(request, "uri is required and must be a string");
		return;
	}
	if (!conversation->subscribed)
		conversation->subscribed = xalloc_check(json_object());
	if (!subscribe) {
		json_object_del(conversation->subscribed, uri);
	} else if (json_object_size(conversation->subscribed) == SUBSCRIPTIONS_MAX) {
		request_error(request, MCP_SENT_ERROR, JSONRPC_INTERNAL_ERROR,
			      "too many subscriptions", NULL);
		return;
	} else {
		json_object_set_new(conversation->subscribed, uri, json_true());
	}
	answer_empty(request);
}

void
serve_method(struct request *request, enum mcp_method method)
{
	switch (method) {
	case METHOD_INITIALIZE:
		serve_initialize(request);
		break;
	case METHOD_PING:
		answer_empty(request);
		break;
	case METHOD_DISCOVER:
		serve_discover(request);
		break;
	case METHOD_TOOLS_LIST:
		serve_tools_list(request);
		break;
	case METHOD_TOOLS_CALL:
		serve_tools_call(request);
		break;
	case METHOD_RESOURCES_LIST:
		serve_resources_list(request);
		break;
	case METHOD_RESOURCES_TEMPLATES:
		serve_templates_list(request);
		break;
	case METHOD_RESOURCES_READ:
		serve_resources_read(request);
		break;
	case METHOD_RESOURCES_SUBSCRIBE:
	case METHOD_RESOURCES_UNSUBSCRIBE:
		serve_subscribe(request, method == METHOD_RESOURCES_SUBSCRIBE);
		break;
	case METHOD_PROMPTS_LIST:
		serve_prompts_list(request);
		break;
	case METHOD_PROMPTS_GET:
		serve_prompts_get(request);
		break;
	case METHOD_SKILLS_LIST:
	case METHOD_SKILLS_GET:
		serve_skills(request, method == METHOD_SKILLS_LIST);
		break;
	case METHOD_COMPLETE:
		serve_complete(request);
		break;
	case METHOD_SET_LEVEL:
		serve_set_level(request);
		break;
	case METHOD_LISTEN:
		serve_listen(request);
		break;
	case METHOD_TASKS_GET:
	case METHOD_TASKS_UPDATE:
	case METHOD_TASKS_CANCEL:
		serve_tasks(request, method);
		break;
	case METHOD_NOTE_INITIALIZED:
	case METHOD_NOTE_CANCELLED:
	case METHOD_UNKNOWN:
		request_error(request, MCP_SENT_NO_METHOD, JSONRPC_METHOD_NOT_FOUND,
			      "unknown method", NULL);
		break;
	}
}
