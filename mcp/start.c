/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing for longer than a request's dispatch.
 * Serves the requests that need a run: a new one, one that waits for answers, or one that exists
 * already.
 * Reads:   params of a client, in any shape. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/arguments.h"
#include "mcp/call.h"
#include "mcp/catalog.h"
#include "mcp/client_tools.h"
#include "mcp/context.h"
#include "mcp/conversation_parts.h"
#include "mcp/outcome.h"
#include "mcp/parking.h"
#include "mcp/permission.h"
#include "mcp/repeat.h"
#include "mcp/run.h"
#include "mcp/seal.h"
#include "mcp/tool_list.h"
#include "policy/config.h"

/* The run that a request wants. */
struct wanted {
	const struct tool *tool;
	enum tool_task task;
	enum mcp_method method;
	const json_t *arguments;	/* an object */
	bool asks_again;		/* answers in the request are ignored: all questions are
					 * asked again */
};

static void
start_refuse_params(const struct request *request, const char *text)
{
	request_error(request, MCP_SENT_ERROR, JSONRPC_INVALID_PARAMS, text, NULL);
}

/* Makes the binding of the call, for its requestState. */
static void
bind_to_request(const struct request *request, struct seal_binding *binding_r)
{
	seal_bind(tenant_principal(request->conversation->options.tenant),
		  request->message->method, request->message->params, binding_r);
}

/* May a run of the tool ask the client of this request? */
static bool
may_be_asked(const struct request *request, const struct wanted *wanted)
{
	return wanted->tool->reply &&
	       (request->abilities & (CLIENT_ELICITS | CLIENT_SAMPLES | CLIENT_HAS_ROOTS |
				     CLIENT_HAS_TOOLS));
}

/* Makes the run that a request wants. NULL: there is no room for it, and the request was answered.
 */
static struct mcp_run *
make_run(const struct request *request, const struct wanted *wanted)
{
	const struct mcp_conversation *conversation = request->conversation;
	struct tenant *tenant = conversation->options.tenant;
	const size_t bytes = conversation->line_bytes;

	if (!mcp_run_has_room(tenant, bytes)) {
		request_error(request, MCP_SENT_ERROR, JSONRPC_INTERNAL_ERROR,
			      "too many bytes in runs of this user", NULL);
		return NULL;
	}
	if (!request_has_room(request))
		return NULL;
	return mcp_run_new(conversation->mcp, tenant, wanted->tool, wanted->method, bytes);
}

/* Adds a call for the request to the list of open calls; there is room for it. */
static struct mcp_call *
enter_call(const struct request *request, const struct wanted *wanted)
{
	struct mcp_conversation *conversation = request->conversation;
	struct mcp_call *call = mcp_call_new(request, wanted->method, conversation->line_bytes);

	conversation_add_call(conversation, call);
	return call;
}

/* ---- a run that waits for answers ---- */

/* Asks again for answers that are missing or wrong. Answers without a question are ignored. */
static void
ask_on(const struct request *request, struct mcp_call *call, struct mcp_run *run)
{
	mcp_call_join(call, run, request);
	mcp_run_take_responses(run, json_object_get(request->message->params,
						    "inputResponses"));
	if (mcp_run_unanswered(run) > 0)
		mcp_call_ask(call);
}

static void
answer_with_outcome(struct mcp_call *call, const struct mcp_run *run)
{
	const struct tool_failure *failure;
	const struct tool_answer *answer;

	mcp_outcome_read(run->outcome, &answer, &failure, NULL);
	mcp_call_end(call, answer, failure);
}

static void
start_go_on(const struct request *request, const struct wanted *wanted, struct mcp_run *run,
	    const struct seal_binding *binding)
{
	struct mcp_call *call = enter_call(request, wanted);

	call->binding = *binding;
	if (run->is_over)
		answer_with_outcome(call, run);
	else
		ask_on(request, call, run);
	mcp_run_release(run, CANCEL_DISCONNECTED);
}

static void serve_new(const struct request *request, const struct wanted *wanted);

static void
start_resume(const struct request *request, struct wanted *wanted)
{
	struct mcp_conversation *conversation = request->conversation;
	const char *state = text_member(request->message->params, "requestState");
	enum parked_where where = PARKED_NOWHERE;
	struct seal_binding binding;
	struct parked *parked;

	bind_to_request(request, &binding);
	if (state)
		where = mcp_parking_find(conversation->mcp->tables.parking,
					 conversation->options.tenant, state, &binding, &parked);
	switch (where) {
	case PARKED_HERE:
		/* If there is no room, the run stays parked, and its requestState is still valid.
		 */
		if (request_has_room(request))
			start_go_on(request, wanted, mcp_parking_take(parked), &binding);
		break;
	case PARKED_BEFORE:
		/* The answers of the request are not used: they may have been used before. */
		wanted->asks_again = true;
		serve_new(request, wanted);
		break;
	case PARKED_HALFWAY:
		start_refuse_params(request, "the call that asked this is gone, for the service was "
				    "restarted; make it again from its beginning, without "
				    "requestState and inputResponses");
		break;
	case PARKED_NOWHERE:
		start_refuse_params(request, "requestState is not valid, or not any more");
		break;
	}
}

/* ---- a new run ---- */

static void
start_begin(const struct request *request, const struct wanted *wanted, struct mcp_run *run)
{
	const json_t *responses = json_object_get(request->message->params, "inputResponses");
	bool must = wanted->task == TOOL_TASK_MUST && request->revision->modern;
	bool wants_output = request->envelope.progress_token || run->keeps ||
			    may_be_asked(request, wanted);
	struct mcp_call *call = enter_call(request, wanted);

	if (request->client_tools)
		run->client_tools = client_tools_hold(request->client_tools);
	mcp_call_join(call, run, request);
	if (request->revision->modern && may_be_asked(request, wanted))
		bind_to_request(request, &call->binding);
	if (request->revision->modern && !wanted->asks_again)
		mcp_run_set_early(run, responses);
	if (must && mcp_run_become_task(run, NULL) < 0) {
		const struct tool_failure failure = { .kind = FAIL_RPC,
						      .code = JSONRPC_INTERNAL_ERROR,
						      .text = "too many tasks of this user" };

		mcp_call_end(call, NULL, &failure);
		return;
	}
	mcp_run_start(run, wanted->arguments, wants_output);
	/* If the run asks for consent, it has not ended, and the call still exists: the question is
	 * sent later. */
	if (mcp_run_asks_consent(run) && !run->task)
		bind_to_request(request, &call->binding);
}

static void
refuse_key(const struct request *request, const struct wanted *wanted, const char *text)
{
	const struct tool_answer answer = { .text = text, .text_len = strlen(text),
					    .is_error = true };
	struct jsonout out;

	jsonout_init(&out);
	jsonrpc_open_result(&out, request->message->id.raw);
	revision_write_answer(request->revision, &out, wanted->method, &answer);
	jsonrpc_close_result(&out);
	request_answer(request, MCP_SENT_ANSWER, &out);
}

/* Attaches a call to an existing run, ended or not. */
static void
start_attach(const struct request *request, const struct wanted *wanted, struct mcp_run *run)
{
	struct mcp_call *call;

	if (!request_has_room(request))
		return;
	call = enter_call(request, wanted);
	/* The script of a run calls the tools of the client that has started the run, and of no
	 * other client. */
	call->audience.abilities &= ~(unsigned int)CLIENT_HAS_TOOLS;
	if (may_be_asked(request, wanted) || mcp_run_asks_consent(run))
		bind_to_request(request, &call->binding);
	if (run->task && (request->abilities & CLIENT_TAKES_TASKS)) {
		call->audience.type->on_task(&call->audience, run->task);
	} else if (run->is_over) {
		answer_with_outcome(call, run);
	} else {
		mcp_call_join(call, run, request);
		(void)mcp_run_answer_job(run);
	}
}

/* Does policy deny the call now? If so, it does not get the answer of an earlier call, either. */
static bool
is_denied(const struct request *request, const struct wanted *wanted)
{
	struct mcp_conversation *conversation = request->conversation;
	struct why why = { .field = "" };
	struct tool_host host;
	bool denied;

	mcp_host(conversation->mcp, conversation->options.tenant, &host);
	denied = permission_verdict(&host, wanted->tool, wanted->arguments, &why) ==
		 POLICY_DENY;
	config_free(host.config);
	return denied;
}

/* Serves a call with a key: a call that was run for that key is not run again. */
static void
serve_once(const struct request *request, const struct wanted *wanted, const char *key)
{
	struct mcp_conversation *conversation = request->conversation;
	struct mcp_repeats *repeats = conversation->mcp->tables.repeats;
	struct tenant *tenant = conversation->options.tenant;
	struct mcp_run *run;
	int r;

	switch (mcp_repeat_find(repeats, tenant, wanted->tool, key, wanted->arguments, &run)) {
	case REPEAT_OTHER:
		refuse_key(request, wanted, "this idempotency key was used before, with other "
			   "arguments; nothing was run");
		return;
	case REPEAT_LOST:
		refuse_key(request, wanted, "a call with this idempotency key has begun before, and "
			   "its answer is lost: the service was restarted, or it had no more room for "
			   "the answer. Nothing was run now. Find out what the first call has done; "
			   "to run it again, use another key");
		return;
	case REPEAT_SAME:
		start_attach(request, wanted, run);
		return;
	case REPEAT_NEW:
		break;
	}
	run = make_run(request, wanted);
	if (!run)
		return;
	r = mcp_repeat_add(repeats, key, wanted->arguments, run);
	if (r == 0) {
		start_begin(request, wanted, run);
	} else {
		conversation->options.let_go(conversation->options.arg, conversation->line_bytes);
		refuse_key(request, wanted, r == -EDQUOT || r == -EUSERS
			   ? "no further idempotency key can be remembered now; nothing was run. Wait "
			     "some minutes, or call without a key"
			   : "this idempotency key cannot be written down, so a second call would not "
			     "be recognised; nothing was run. Tell the operator");
	}
	mcp_run_release(run, CANCEL_BY_CLIENT);
}

static void
serve_new(const struct request *request, const struct wanted *wanted)
{
	const char *key = wanted->tool->once ? wanted->tool->once(wanted->arguments) : NULL;
	struct mcp_run *run;

	if (key && !is_denied(request, wanted)) {
		serve_once(request, wanted, key);
	} else if ((run = make_run(request, wanted))) {
		start_begin(request, wanted, run);
		mcp_run_release(run, CANCEL_BY_CLIENT);
	}
}

static void
serve_wanted(const struct request *request, struct wanted *wanted)
{
	if (request->revision->modern &&
	    json_object_get(request->message->params, "requestState"))
		start_resume(request, wanted);
	else
		serve_new(request, wanted);
}

/* ---- the three methods ---- */

/* Reads "arguments" of the params. If it is absent, *arguments_r is a new empty object. *made_r: the
 * same object, for the caller to release; NULL: no object was made. False: "arguments" is not an
 * object, and the request was answered. */
static bool
start_read_arguments(const struct request *request, const json_t **arguments_r, json_t **made_r)
{
	const json_t *arguments = json_object_get(request->message->params, "arguments");

	*made_r = NULL;
	if (arguments && !json_is_object(arguments)) {
		start_refuse_params(request, "arguments must be an object");
		return false;
	}
	*arguments_r = arguments ? arguments : (*made_r = xalloc_check(json_object()));
	return true;
}

/* Finds the tools of the request's client. The caller releases *tools_r. False: their declaration
 * is wrong, and the request was answered. */
static bool
find_client_tools(struct request *request, struct client_tools **tools_r)
{
	const json_t *declared = json_object_get(request->envelope.capabilities, "extensions");
	const char *wrong = NULL;

	if (request->revision->modern)
		wrong = client_tools_read(declared, tools_r);
	else
		*tools_r = client_tools_hold(request->conversation->client_tools);
	if (wrong)
		start_refuse_params(request, wrong);
	else
		request->client_tools = *tools_r;
	return !wrong;
}

static void
refuse_unknown_tool(const struct request *request)
{
	struct tool_list *list = mcp_tool_list(request->conversation->mcp,
					       request->conversation->options.tenant);
	char *names = tool_list_names(list), *text;

	tool_list_release(list);
	text = xasprintf("unknown tool; there are %s", names);
	free(names);
	start_refuse_params(request, text);
	free(text);
}

void
serve_tools_call(struct request *request, enum mcp_method)
{
	const struct mcp *mcp = request->conversation->mcp;
	const struct catalog *catalog = mcp->options.catalog;
	const char *name = text_member(request->message->params, "name");
	struct wanted wanted = { .method = METHOD_TOOLS_CALL };
	const json_t *given;
	struct client_tools *client_tools;
	json_t *made, *settled;
	size_t at = 0;

	if (name)
		wanted.tool = catalog_find(catalog, name);
	if (!wanted.tool) {
		if (name)
			refuse_unknown_tool(request);
		else
			start_refuse_params(request, "name is required and must be a string");
		return;
	}
	while (catalog->tool[at] != wanted.tool)
		at++;
	wanted.task = mcp->tools[at].task;
	if (wanted.task == TOOL_TASK_MUST && request->revision->modern &&
	    !(request->abilities & CLIENT_TAKES_TASKS)) {
		refuse_lacking(request, CLIENT_TAKES_TASKS);
		return;
	}
	if (!start_read_arguments(request, &given, &made))
		return;
	if (!find_client_tools(request, &client_tools)) {
		json_decref(made);
		return;
	}
	settled = arguments_settle(given, mcp->schema[at]);
	wanted.arguments = settled;
	serve_wanted(request, &wanted);
	client_tools_release(client_tools);
	json_decref(settled);
	json_decref(made);
}

void
serve_resources_read(struct request *request, enum mcp_method)
{
	const char *uri = text_member(request->message->params, "uri");
	struct wanted wanted = {
		.tool = request->conversation->mcp->options.catalog->resources->read,
		.method = METHOD_RESOURCES_READ,
	};
	json_auto_t *arguments = NULL;

	if (!uri) {
		start_refuse_params(request, "uri is required and must be a string");
		return;
	}
	arguments = xalloc_check(json_pack("{s:s}", "uri", uri));
	wanted.arguments = arguments;
	serve_wanted(request, &wanted);
}

static const struct prompt *
find_prompt(const struct prompt_provider *provider, const char *name)
{
	for (size_t i = 0; name && i < provider->n_prompts; i++)
		if (strcmp(provider->prompt[i].name, name) == 0)
			return &provider->prompt[i];
	return NULL;
}

/* Are all arguments strings, and are all required arguments present? */
static bool
prompt_takes(const struct prompt *prompt, const json_t *arguments)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)arguments, key, value)
		if (!json_is_string(value))
			return false;
	for (size_t i = 0; i < prompt->n_arguments; i++)
		if (prompt->argument[i].required &&
		    !json_object_get(arguments, prompt->argument[i].name))
			return false;
	return true;
}

void
serve_prompts_get(struct request *request, enum mcp_method)
{
	const struct prompt_provider *provider =
		request->conversation->mcp->options.catalog->prompts;
	const char *name = text_member(request->message->params, "name");
	const struct prompt *prompt = find_prompt(provider, name);
	struct wanted wanted = { .tool = provider->get, .method = METHOD_PROMPTS_GET };
	const json_t *given;
	json_t *made, *arguments;

	if (!prompt) {
		start_refuse_params(request, name ? "unknown prompt"
					    : "name is required and must be a string");
		return;
	}
	if (!start_read_arguments(request, &given, &made))
		return;
	if (!prompt_takes(prompt, given)) {
		start_refuse_params(request, "an argument is missing or is not a string");
	} else {
		arguments = xalloc_check(json_pack("{s:s,s:O}", "name", name, "arguments",
						   (json_t *)given));
		wanted.arguments = arguments;
		serve_wanted(request, &wanted);
		json_decref(arguments);
	}
	json_decref(made);
}
