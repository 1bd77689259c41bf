/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Serves requests that are answered at once.
 * Reads:   params of a client, in any shape. */
#include <string.h>

#include "base/xalloc.h"
#include "mcp/client_tools.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/task.h"
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
serve_initialize(struct request *request, enum mcp_method)
{
	struct mcp_conversation *conversation = request->conversation;
	const json_t *params = request->message->params;
	const json_t *capabilities = json_object_get(params, "capabilities");
	const json_t *client = json_object_get(params, "clientInfo");
	const char *wanted = text_member(params, "protocolVersion");
	struct client_tools *client_tools;
	const struct mcp_options *options = &conversation->mcp->options;
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
						    options->config->mcp.structured,
						    text_member(client, "name"));
	conversation->abilities = revision_abilities(conversation->session, capabilities);
	tools = mcp_tool_list(conversation->mcp, conversation->options.tenant);
	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_initialized(conversation->session, &out,
				   conversation->mcp->options.catalog,
				   tools->instructions);
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
serve_ping(struct request *request, enum mcp_method)
{
	answer_empty(request);
}

static void
serve_discover(struct request *request, enum mcp_method)
{
	struct mcp *mcp = request->conversation->mcp;
	struct tool_list *tools = mcp_tool_list(mcp, request->conversation->options.tenant);
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_discovered(request->revision, &out, mcp->options.catalog,
				  tools->instructions);
	tool_list_release(tools);
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

static void
serve_set_level(struct request *request, enum mcp_method)
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
serve_subscribe(struct request *request, enum mcp_method method)
{
	struct mcp_conversation *conversation = request->conversation;
	const char *uri = text_member(request->message->params, "uri");

	if (!uri || strlen(uri) > URI_MAX) {
		methods_refuse_params(request, "uri is required and must be a string");
		return;
	}
	if (!conversation->subscribed)
		conversation->subscribed = xalloc_check(json_object());
	if (method == METHOD_RESOURCES_UNSUBSCRIBE) {
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

/* A task is named by its id and belongs to its tenant. */
static void
answer_task(const struct request *request, const struct mcp_task *task)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_open_result(request->revision, &out, "complete");
	if (task)
		mcp_task_write(task, request->revision, &out);
	jsonout_close(&out, '}');
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

static void
serve_tasks(struct request *request, enum mcp_method method)
{
	const struct mcp_conversation *conversation = request->conversation;
	const json_t *params = request->message->params;
	const json_t *responses = json_object_get(params, "inputResponses");
	const char *id = text_member(params, "taskId");
	struct mcp_task *task = NULL;

	if (!(request->abilities & CLIENT_TAKES_TASKS)) {
		refuse_lacking(request, CLIENT_TAKES_TASKS);
		return;
	}
	if (id)
		task = mcp_task_find(conversation->mcp->tables.tasks,
				     conversation->options.tenant, id);
	if (!task || (method == METHOD_TASKS_UPDATE && !json_is_object(responses))) {
		request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS,
			      task ? "inputResponses must be an object"
				   : "there is no such task: its time is over, or the "
				     "service was restarted, which ends all tasks", NULL);
		return;
	}
	if (method == METHOD_TASKS_UPDATE)
		mcp_task_update(task, responses);
	else if (method == METHOD_TASKS_CANCEL)
		mcp_task_cancel(task);
	else
		mcp_task_seen(task);
	answer_task(request, method == METHOD_TASKS_GET ? task : NULL);
}

static void
serve_unknown(struct request *request, enum mcp_method)
{
	request_error(request, MCP_SENT_NO_METHOD, JSONRPC_METHOD_NOT_FOUND, "unknown method", NULL);
}

void
serve_method(struct request *request, enum mcp_method method)
{
	static serve_fn *const serve[] = {
#define METHOD(method, name, legacy, modern, offer, by) [METHOD_##method] = serve_##by,
#include "mcp/methods.def"
		[METHOD_UNKNOWN] = serve_unknown,
	};

	serve[method](request, method);
}
