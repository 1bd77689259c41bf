/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Serves tasks/get, tasks/update and tasks/cancel.
 * Reads:   params of a client; a task is named by its id and belongs to its tenant. */
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/task.h"

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

void
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
