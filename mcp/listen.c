/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: subscriptions: requests that stay open, and that report
 * changes of tasks, tools and resources. A subscription is answered only when it ends.
 * Reads:   the topics that a client names; unknown topics are left out. */
#include <string.h>

#include "base/xalloc.h"
#include "mcp/catalog.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/task.h"
#include "mcp/tool_list.h"

#define NAMES_MAX 256			/* tasks of one subscription; also its resources */

struct listening;

struct task_ear {
	struct mcp_task_watch watch;
	struct listening *listening;
};

struct listening {
	LIST_ENTRY(listening) link;
	struct mcp_conversation *conversation;
	struct mcp_exchange *exchange;
	struct jsonrpc_id id;
	const struct revision *revision;
	size_t bytes;			/* memory that it is charged with */
	struct task_ear *ear;
	size_t n_ears;
	json_t *resources;		/* an array of uris; NULL: none */
	struct tool_list *tools;	/* the list that the client knows; NULL: not subscribed */
};

static void
write_meta(const struct listening *listening, struct jsonout *out)
{
	jsonout_member_open(out, "_meta", '{');
	jsonout_member_raw(out, META_SUBSCRIPTION, listening->id.raw);
	jsonout_close(out, '}');
}

static void
open_note(const struct listening *listening, struct jsonout *out, const char *method)
{
	conversation_open_note(out, method);
	write_meta(listening, out);
}

static void
send_task(const struct listening *listening, const struct mcp_task *task)
{
	struct jsonout out;

	open_note(listening, &out, "notifications/tasks");
	mcp_task_write(task, listening->revision, &out);
	conversation_notify(listening->exchange, &out);
}

static void
on_task_change(struct mcp_task_watch *watch, const struct mcp_task *task, bool gone)
{
	if (!gone)
		send_task(((const struct task_ear *)watch)->listening, task);
}

static bool
listen_hears(const struct listening *listening, const struct mcp_task *task)
{
	for (size_t i = 0; i < listening->n_ears; i++)
		if (listening->ear[i].watch.task == task)
			return true;
	return false;
}

/* Watches the named tasks. Tasks of other tenants are treated as unknown. */
static void
listen_to_tasks(struct listening *listening, const json_t *ids)
{
	const struct mcp_conversation *conversation = listening->conversation;
	size_t i;
	json_t *id;

	listening->ear = xcalloc(json_array_size(ids), sizeof(*listening->ear));
	json_array_foreach(ids, i, id) {
		struct task_ear *ear = &listening->ear[listening->n_ears];
		struct mcp_task *task =
			mcp_task_find(conversation->mcp->tables.tasks,
				      conversation->options.tenant, json_string_value(id));

		if (!task || listen_hears(listening, task))
			continue;
		ear->listening = listening;
		ear->watch.on_change = on_task_change;
		mcp_task_watch(task, &ear->watch);
		listening->n_ears++;
	}
}

static void
send_acknowledged(const struct listening *listening)
{
	struct jsonout out;
	const json_t *uri;
	size_t i;

	open_note(listening, &out, "notifications/subscriptions/acknowledged");
	jsonout_member_open(&out, "notifications", '{');
	if (listening->n_ears) {
		jsonout_member_open(&out, "taskIds", '[');
		for (i = 0; i < listening->n_ears; i++) {
			const char *id = mcp_task_id(listening->ear[i].watch.task);

			jsonout_text(&out, id, strlen(id));
		}
		jsonout_close(&out, ']');
	}
	if (listening->tools)
		jsonout_member_bool(&out, "toolsListChanged", true);
	if (listening->resources) {
		jsonout_member_open(&out, "resourceSubscriptions", '[');
		json_array_foreach(listening->resources, i, uri)
			jsonout_text(&out, json_string_value(uri), json_string_length(uri));
		jsonout_close(&out, ']');
	}
	jsonout_close(&out, '}');
	conversation_notify(listening->exchange, &out);
}

/* Is names absent, or an array of strings that is not too long? */
static bool
is_names(const json_t *names)
{
	const json_t *name;
	size_t i;

	if (!names)
		return true;
	if (!json_is_array(names) || json_array_size(names) > NAMES_MAX)
		return false;
	json_array_foreach(names, i, name)
		if (!json_is_string(name))
			return false;
	return true;
}

static bool
is_filter(const json_t *filter)
{
	static const char *const flags[] = { "toolsListChanged", "promptsListChanged",
					     "resourcesListChanged" };

	if (!json_is_object(filter) || !is_names(json_object_get(filter, "taskIds")) ||
	    !is_names(json_object_get(filter, "resourceSubscriptions")))
		return false;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		const json_t *flag = json_object_get(filter, flags[i]);

		if (flag && !json_is_boolean(flag))
			return false;
	}
	return true;
}

void
serve_listen(struct request *request, enum mcp_method)
{
	struct mcp_conversation *conversation = request->conversation;
	const struct resource_provider *resources = conversation->mcp->options.catalog->resources;
	json_t *filter = json_object_get(request->message->params, "notifications");
	const json_t *tasks = json_object_get(filter, "taskIds");
	struct listening *listening;

	if (!is_filter(filter)) {
		request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS,
			      "notifications must say what to listen to", NULL);
		return;
	}
	if (tasks && !(request->abilities & CLIENT_TAKES_TASKS)) {
		refuse_lacking(request, CLIENT_TAKES_TASKS);
		return;
	}
	if (!request_has_room(request))
		return;
	listening = xcalloc(1, sizeof(*listening));
	listening->conversation = conversation;
	listening->bytes = conversation->line_bytes;
	listening->exchange = request->exchange;
	listening->id = jsonrpc_id_take(&request->message->id);
	listening->revision = request->revision;
	LIST_INSERT_HEAD(&conversation->listenings, listening, link);
	conversation->in_flight++;
	exchange_owe(listening->exchange);
	listen_to_tasks(listening, tasks);
	if (resources && resources->subscribes)
		listening->resources =
			json_incref(json_object_get(filter, "resourceSubscriptions"));
	if (json_is_true(json_object_get(filter, "toolsListChanged")))
		listening->tools = mcp_tool_list(conversation->mcp,
						 conversation->options.tenant);
	send_acknowledged(listening);
	/* Earlier changes are reported at once, so that none is missed. */
	for (size_t i = 0; i < listening->n_ears; i++)
		send_task(listening, listening->ear[i].watch.task);
}

/* ---- the end ---- */

static void
listen_send_end(const struct listening *listening)
{
	struct jsonout out;

	if (listening->conversation->options.by_stream) {
		conversation_open_note(&out, "notifications/cancelled");
		jsonout_member_raw(&out, "requestId", listening->id.raw);
		conversation_notify(listening->exchange, &out);
	}
	jsonout_init(&out);
	jsonrpc_open_result(&out, listening->id.raw);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "resultType", "complete");
	write_meta(listening, &out);
	jsonout_close(&out, '}');
	jsonrpc_close_result(&out);
	conversation_send(listening->exchange, MCP_SENT_ANSWER, &out);
}

static void
listening_free(struct listening *listening)
{
	const struct mcp_conversation_options *options = &listening->conversation->options;

	listening->conversation->in_flight--;
	options->let_go(options->arg, listening->bytes);
	LIST_REMOVE(listening, link);
	for (size_t i = 0; i < listening->n_ears; i++)
		mcp_task_unwatch(&listening->ear[i].watch);
	free(listening->ear);
	json_decref(listening->resources);
	tool_list_release(listening->tools);
	jsonrpc_id_done(&listening->id);
	free(listening);
}

bool
end_listening(struct mcp_conversation *conversation, const json_t *id,
	      const struct mcp_exchange *exchange, bool say_so)
{
	struct listening *listening, *next;
	bool any = false;

	for (listening = LIST_FIRST(&conversation->listenings); listening; listening = next) {
		struct mcp_exchange *at = listening->exchange;

		next = LIST_NEXT(listening, link);
		if ((id && !json_equal(listening->id.value, id)) ||
		    (exchange && at != exchange))
			continue;
		any = true;
		if (say_so)
			listen_send_end(listening);
		listening_free(listening);
		if (id || say_so)
			exchange_settle(at);	/* may free the conversation */
		else if (at)
			at->owed--;
	}
	return any;
}

bool
is_listening(const struct mcp_conversation *conversation, const json_t *id)
{
	const struct listening *listening;

	LIST_FOREACH(listening, &conversation->listenings, link)
		if (json_equal(listening->id.value, id))
			return true;
	return false;
}

/* ---- tools ---- */

static const char tools_changed[] = "notifications/tools/list_changed";

/* Compares the list of tools with the known one. True: it has changed, and *known is the new one.
 */
static bool
listen_renew(struct tool_list **known, const struct mcp_conversation *conversation)
{
	struct tool_list *now = mcp_tool_list(conversation->mcp,
					      conversation->options.tenant), *before = *known;
	bool differs = before->hash != now->hash;

	*known = now;
	tool_list_release(before);
	return differs;
}

void
tell_tools_changed(struct mcp_conversation *conversation)
{
	struct listening *listening;
	struct jsonout out;

	LIST_FOREACH(listening, &conversation->listenings, link)
		if (listening->tools && listen_renew(&listening->tools, conversation)) {
			open_note(listening, &out, tools_changed);
			conversation_notify(listening->exchange, &out);
		}
	/* If the notification could not be sent, the client still has the earlier list. */
	if (!conversation->exchange || !conversation->tools ||
	    !listen_renew(&conversation->tools, conversation))
		return;
	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "jsonrpc", "2.0");
	jsonout_member_text(&out, "method", tools_changed);
	jsonout_close(&out, '}');
	conversation_send(conversation->exchange, MCP_SENT_MESSAGE, &out);
}

/* ---- resources ---- */

static void
tell_listening(const struct listening *listening, const char *uri)
{
	const json_t *wanted;
	struct jsonout out;
	size_t i;

	json_array_foreach(listening->resources, i, wanted) {
		if (strcmp(json_string_value(wanted), uri) != 0)
			continue;
		open_note(listening, &out, "notifications/resources/updated");
		jsonout_member_text(&out, "uri", uri);
		conversation_notify(listening->exchange, &out);
		return;
	}
}

void
tell_resource_changed(struct mcp_conversation *conversation, const char *uri)
{
	const struct listening *listening;
	struct jsonout out;

	LIST_FOREACH(listening, &conversation->listenings, link)
		tell_listening(listening, uri);
	if (!conversation->exchange || !json_object_get(conversation->subscribed, uri))
		return;
	conversation_open_note(&out, "notifications/resources/updated");
	jsonout_member_text(&out, "uri", uri);
	conversation_notify(conversation->exchange, &out);
}
