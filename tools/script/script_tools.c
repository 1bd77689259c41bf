/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the calls of a script that have no answer yet.
 * Reads:   arguments of scripts, hostile; results of other servers, which it passes on as they are,
 * within bounds: only the script reads them. */
#include "tools/script/script_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/handle.h"
#include "base/jsonbound.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/upstream.h"
#include "govern/approvals.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "policy/shown.h"
#include "policy/tools.h"
#include "tools/script/script_input.h"

#define UNWRITTEN "the use of its approval could not be written down: tell the operator"
#define STRING(x) STRING_(x)
#define STRING_(x) #x
#define TEXT_MAX 512	/* bytes of the service's own sentences */
#define PATIENCE_S 5	/* a client that cannot be asked is answered after this time */

struct script_call {
	LIST_ENTRY(script_call) link;
	struct script_tools *tools;
	uint32_t number;
	const struct upstream_server *server;
	char *tool;
	char *arguments;		/* canonical JSON: what is approved, recorded and sent */
	char hash[CHAIN_DIGITS + 1];	/* of the arguments */
	char about[CHAIN_DIGITS + 1];	/* of what its server said of the tool when it was called */
	bool reads;			/* the tool changes nothing, as its server says */
	bool made;			/* it is with its server, or waits for its record */
	struct writing_wait recorded;
	struct upstream_call *call;	/* NULL: it was not made yet, or is its client's */
	struct event *late;		/* of a call of a client's tool, from when it was made */
	bool sent;			/* ... the client is asked for it */
	json_t *shown;			/* it waits for an approval: the text for the approver */
	bool waits;			/* ... for an operator; else for the session's user */
	char approval[HANDLE_MAX + 1];	/* ... its id */
	uint64_t since_us;
};

/* A tool whose further calls need no approval, as its server described it when it was approved. */
struct script_grant {
	LIST_ENTRY(script_grant) link;
	const struct upstream_server *server;
	char *tool;
	char about[CHAIN_DIGITS + 1];
};

/* ---- life ---- */

static struct upstream *
upstream_of(const struct script_tools *t)
{
	return engine_upstream(t->host->engine);
}

static struct approvals *
approvals_of(const struct script_tools *t)
{
	return t->host->gate ? gate_approvals(t->host->gate) : NULL;
}

static void
script_tools_free_call(struct script_call *c)
{
	if (c->call)
		upstream_drop(c->call);
	if (c->late)
		event_free(c->late);
	writing_unwait(&c->recorded);
	if (c->waits)
		approvals_unwatch(approvals_of(c->tools),
				  tenant_principal(c->tools->host->tenant), c);
	if (c->tools->asking == c->number)
		c->tools->asking = 0;
	c->tools->n_sent -= c->sent;
	LIST_REMOVE(c, link);
	json_decref(c->shown);
	free(c->tool);
	free(c->arguments);
	free(c);
}

/* The call is over. */
static void
script_tools_answer(struct script_call *c, enum tool_status status, const char *body, size_t len)
{
	struct script_tools *t = c->tools;
	uint32_t number = c->number;

	script_tools_free_call(c);
	execution_answer_tool(t->execution, number, status, body, len);
}

void
script_tools_offer(struct script_tools *t, const struct tool_host *host,
		   struct script_input *input, struct execution_request *request)
{
	const struct config_tool_calls *calls = &host->config->tool_calls;

	*t = (struct script_tools){ .host = host, .input = input };
	LIST_INIT(&t->calls);
	LIST_INIT(&t->grants);
	other_tools_offer(&t->others, host, true, request);
	request->consent_ms = host->config->limits.input_ms;
	request->tool_calls = calls->calls;
	request->tool_calls_at_once = calls->at_once;
}

/* ---- records ---- */

/* The members that all records of a call have. */
static json_t *
script_tools_about(const struct script_call *c, json_t *more)
{
	xalloc_check(more);
	json_object_set_new(more, "server", xalloc_check(json_string(c->server->name)));
	/* The name comes from the script: it is UTF-8 without NUL. */
	json_object_set_new(more, "tool", xalloc_check(json_string(c->tool)));
	json_object_set_new(more, "number", xalloc_check(json_integer(c->number)));
	if (*c->hash)
		json_object_set_new(more, "arguments_sha256", xalloc_check(json_string(c->hash)));
	return more;
}

static void
script_tools_record(const struct script_call *c, enum audit_event event, json_t *more)
{
	const struct script_tools *t = c->tools;

	audit_write(gate_audit(t->host->gate), event, tenant_principal(t->host->tenant),
		    execution_id(t->execution), script_tools_about(c, more));
}

static void
record_end(const struct script_call *c, unsigned int end, const char *body, size_t len)
{
	char hash[CHAIN_DIGITS + 1];
	uint64_t ms = (clock_us() - c->since_us) / 1000;

	chain_hash(body, len, hash);
	script_tools_record(c, AUDIT_TOOL_ENDED, json_pack("{s:s,s:I,s:I,s:s}", "status",
							   tool_end_name(end), "ms", (json_int_t)ms,
							   "bytes", (json_int_t)len, "result_sha256", hash));
}

void
script_tools_end(struct script_tools *t)
{
	struct script_call *c, *next;
	struct script_grant *grant;

	if (!t->host)
		return;
	if (t->patience)
		event_free(t->patience);
	t->patience = NULL;
	while ((grant = LIST_FIRST(&t->grants))) {
		LIST_REMOVE(grant, link);
		free(grant->tool);
		free(grant);
	}
	other_tools_end(&t->others);
	for (c = LIST_FIRST(&t->calls); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->made)
			record_end(c, TOOL_CANCELLED, "", 0);
		script_tools_free_call(c);
	}
	/* A late reply finds nothing. */
	t->execution = NULL;
}

/* ---- refusals ---- */

/* Refuses a call; nothing was done. why: the reason, for the audit log and for the script. */
static void
script_tools_refuse(struct script_call *c, const char *why)
{
	script_tools_record(c, AUDIT_TOOL_REFUSED, json_pack("{s:s}", "reason", why));
	script_tools_answer(c, TOOL_REFUSED, why, strlen(why));
}

/* ---- the call itself ---- */

/* Whether the results of the run have room for this one. */
static bool
script_tools_charge(struct script_tools *t, size_t len)
{
	if (len > t->host->config->tool_calls.results_bytes - t->bytes)
		return false;
	t->bytes += len;
	return true;
}

static void
on_called(void *arg, enum tool_status status, const char *body, size_t len)
{
	static const char full[] = "the results of this run have used up [tool-calls] "
				   "results_bytes; the call was made";
	struct script_call *c = arg;

	c->call = NULL;
	record_end(c, status, body, len);
	if (!script_tools_charge(c->tools, len))
		script_tools_answer(c, TOOL_FAILED, full, strlen(full));
	else
		script_tools_answer(c, status, body, len);
}

/* ---- ... of a client's tool ---- */

static void
write_key(const struct script_call *c, char *key, size_t size)
{
	snprintf(key, size, "call-%u", c->number);
}

static void script_tools_go_on(struct script_tools *t, struct execution *execution);

static void
script_tools_on_late(evutil_socket_t, short, void *arg)
{
	struct script_call *c = arg;
	struct script_tools *t = c->tools;
	char key[QUESTION_KEY_MAX], text[TEXT_MAX];
	bool told;

	write_key(c, key, sizeof(key));
	told = c->sent && t->host->on_withdraw(t->host->arg, key);
	snprintf(text, sizeof(text), "the client did not answer in time ([tool-calls] seconds is "
		 "%u); %s", t->host->config->tool_calls.seconds,
		 told ? "the call may have been done or not" : "it was not told of the call");
	on_called(c, TOOL_FAILED, text, strlen(text));
	script_tools_go_on(t, t->execution);
}

/* The oldest call of a client's tool that was not sent to the client. NULL: none. */
static struct script_call *
next_unsent(const struct script_tools *t)
{
	struct script_call *c, *oldest = NULL;

	LIST_FOREACH(c, &t->calls, link)
		if (c->late && !c->sent && (!oldest || c->number < oldest->number))
			oldest = c;
	return oldest;
}

static struct script_call *
find_sent(const struct script_tools *t, const char *key)
{
	struct script_call *c;
	unsigned int number;

	if (sscanf(key, "call-%u", &number) != 1)
		return NULL;
	LIST_FOREACH(c, &t->calls, link)
		if (c->sent && c->number == number)
			return c;
	return NULL;
}

/* The params of the call as JSON, malloc'd. c->tool needs no escapes: it was found in the list of
 * tools, so it has the form of a name. */
static char *
params_of(const struct script_call *c)
{
	return xasprintf("{\"name\":\"%s\",\"arguments\":%s}", c->tool, c->arguments);
}

/* Does a form wait that the client's user has to answer? It is sent when the client has no open
 * call of its tools. */
static bool
form_waits(const struct script_tools *t)
{
	const struct script_call *c;

	LIST_FOREACH(c, &t->calls, link)
		if (c->shown && !c->waits && !c->made)
			return true;
	return t->input->later != NULL;
}

/* Sends the client the calls of its tools that it has not got yet, unless another question to it
 * is open, or will be. */
static void
ask_client(struct script_tools *t)
{
	static const char gone[] = "the client that has this tool is not there any more";
	size_t most = t->host->config->tool_calls.result_bytes;
	struct tool_question question[QUESTIONS_MAX];
	struct script_call *sent[QUESTIONS_MAX], *c;
	char key[QUESTIONS_MAX][QUESTION_KEY_MAX], *params[QUESTIONS_MAX];
	size_t n = 0;
	int r = 0;

	if (t->asking || t->input->number || form_waits(t))
		return;
	for (; t->n_sent < QUESTIONS_MAX && (c = next_unsent(t)); n++, t->n_sent++) {
		c->sent = true;
		sent[n] = c;
		write_key(c, key[n], sizeof(key[n]));
		params[n] = params_of(c);
		question[n] = (struct tool_question){ .key = key[n], .kind = QUESTION_TOOL,
						      .params = params[n],
						      .most = most };
	}
	if (n > 0)
		r = t->host->on_ask(t->host->arg, question, n, NULL);
	for (size_t i = 0; i < n; i++) {
		free(params[i]);
		if (r < 0)
			on_called(sent[i], TOOL_FAILED, gone, strlen(gone));
	}
}

static void
make_in_client(struct script_call *c)
{
	struct script_tools *t = c->tools;
	const struct timeval wait = { .tv_sec = t->host->config->tool_calls.seconds };

	c->late = xalloc_check(evtimer_new(t->host->base, script_tools_on_late, c));
	evtimer_add(c->late, &wait);
	ask_client(t);
}

static void
script_tools_take_result(struct script_call *c, const struct tool_reply *reply)
{
	static const char none[] = "the client has not made this call, or has not told its result";
	json_t *body = json_object_get(reply->content, "body");

	if (reply->action == REPLY_ACCEPT)
		on_called(c, (enum tool_status)json_integer_value(
			json_object_get(reply->content, "status")),
			json_string_value(body), json_string_length(body));
	else
		on_called(c, TOOL_FAILED, none, strlen(none));
}

static void
take_results(struct script_tools *t, const struct tool_reply *reply, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct script_call *c = find_sent(t, reply[i].key);

		if (c)
			script_tools_take_result(c, &reply[i]);
	}
}

/* The run's client sees how far a call of its script is. */
static void
script_tools_on_progress(void *arg, const char *text)
{
	const struct script_call *c = arg;
	const struct tool_host *host = c->tools->host;
	own_mem char *message = NULL;

	if (!host->on_progress)
		return;
	message = xasprintf("%s.%s: %s", c->server->name, c->tool, text);
	host->on_progress(host->arg, &(struct tool_progress){ .message = message,
							      .is_note = true });
}

static void
make_recorded(struct script_call *c, int error)
{
	const struct config_tool_calls *calls = &c->tools->host->config->tool_calls;

	if (error < 0) {
		c->made = false;
		script_tools_refuse(c, "the audit log cannot be written");
		return;
	}
	c->since_us = clock_us();
	execution_begin_tool(c->tools->execution, c->number, c->reads);
	if (c->server == c->tools->host->client_tools)
		make_in_client(c);
	else
		c->call = upstream_call(upstream_of(c->tools), c->server, c->tool, c->arguments,
					calls->seconds, (uint32_t)calls->result_bytes, on_called,
					c);
	if (c->call)
		upstream_on_progress(c->call, script_tools_on_progress);
}

static void
script_tools_on_recorded(void *arg, int error)
{
	struct script_call *c = arg;
	struct script_tools *t = c->tools;

	make_recorded(c, error);
	script_tools_go_on(t, t->execution);
}

/* The record comes first: without it nothing may happen. */
static void
script_tools_make(struct script_call *c)
{
	const struct script_tools *t = c->tools;
	int r;

	c->made = true;
	c->since_us = clock_us();
	c->recorded = (struct writing_wait){ .on_written = script_tools_on_recorded, .arg = c };
	r = audit_write_first(gate_audit(t->host->gate), AUDIT_TOOL_CALLED,
			      tenant_principal(t->host->tenant), execution_id(t->execution),
			      script_tools_about(c, json_object()), &c->recorded);
	if (r != -EINPROGRESS)
		make_recorded(c, r);
}

/* ---- approvals ---- */

/* The script's wall clock is stopped while a person decides. */
static void
look_at_consents(const struct script_tools *t)
{
	const struct script_call *c;
	bool awaits = false;

	LIST_FOREACH(c, &t->calls, link)
		awaits |= c->shown != NULL && !c->made;
	if (t->execution)
		execution_await_consent(t->execution, awaits);
}

/* The item of the approval: exactly this call, of the tool as its server describes it now.
 * Malloc'd. */
static char *
item_of(const struct script_call *c)
{
	return xasprintf("tool %s.%s %s described %s", c->server->name, c->tool, c->hash,
			 c->about);
}

/* item: has to live as long as the request. */
static struct approval_request
request_of(const struct script_call *c, const char *const *item)
{
	const struct tool_host *host = c->tools->host;

	return (struct approval_request){
		.requester = gate_subject(host->gate, tenant_principal(host->tenant)),
		.config = host->config, .tool = APPROVAL_OF_CALLS, .item = item, .n_items = 1,
		.once = true, .shown = c->shown,
	};
}

static void
hash_about(const struct upstream_tool *tool, char *hash_r)
{
	chain_hash(tool->about, strlen(tool->about), hash_r);
}

/* Is the server's description of the tool the same as at the call? The approval may have taken an
 * hour. */
static bool
is_as_called(const struct script_call *c)
{
	const struct upstream_tool *tool = upstream_find_tool(c->server, c->tool);
	char now[CHAIN_DIGITS + 1] = "";

	if (tool)
		hash_about(tool, now);
	return strcmp(now, c->about) == 0;
}

static bool
is_granted_for_run(const struct script_call *c)
{
	const struct script_grant *grant;

	LIST_FOREACH(grant, &c->tools->grants, link)
		if (grant->server == c->server && strcmp(grant->tool, c->tool) == 0 &&
		    strcmp(grant->about, c->about) == 0)
			return true;
	return false;
}

static void
make_as_called(struct script_call *c)
{
	if (is_as_called(c))
		script_tools_make(c);
	else
		script_tools_refuse(c, "the server has changed what it says of this tool since the call was "
				    "asked for; call it again, and it is asked about again");
}

static void
make_noted(struct script_call *c, int error)
{
	c->made = false;
	if (error == 0)
		make_as_called(c);
	else
		script_tools_refuse(c, UNWRITTEN);
}

static void
script_tools_on_noted(void *arg, int error)
{
	struct script_call *c = arg;
	struct script_tools *t = c->tools;

	make_noted(c, error);
	script_tools_go_on(t, t->execution);
}

/* The use of the approval is in the file before the call is made. */
static void
make_when_noted(struct script_call *c)
{
	int r;

	c->made = true;
	c->recorded = (struct writing_wait){ .on_written = script_tools_on_noted, .arg = c };
	r = approvals_sync(approvals_of(c->tools), &c->recorded);
	if (r != -EINPROGRESS)
		make_noted(c, r);
}

/* Makes the call, if the call or its tool was granted. A grant for the call is used up by that.
 * Refuses the call if the server has changed its description of the tool. for_run: the tool is
 * granted, too, for the rest of the run. May free the call. False: there is no grant, and nothing
 * was done. */
static bool
make_if_granted(struct script_call *c, bool for_run)
{
	const struct script_tools *t = c->tools;
	own_mem char *item = item_of(c);
	int r = approvals_use(approvals_of(t), tenant_principal(t->host->tenant), item);

	if (r <= 0 && !is_granted_for_run(c)) {
		if (r < 0)
			script_tools_refuse(c, UNWRITTEN);
		return r < 0;
	}
	if (for_run) {
		struct script_grant *grant = xcalloc(1, sizeof(*grant));

		grant->server = c->server;
		grant->tool = xstrdup(c->tool);
		memcpy(grant->about, c->about, sizeof(grant->about));
		LIST_INSERT_HEAD(&c->tools->grants, grant, link);
	}
	r > 0 ? make_when_noted(c) : make_as_called(c);
	return true;
}

static void
on_decided(void *arg, const struct approval_decision *decision)
{
	struct script_call *c = arg;
	const struct script_tools *t = c->tools;
	char text[TEXT_MAX];

	c->waits = false;
	if (decision->state == APPROVAL_GRANTED) {
		if (!make_if_granted(c, decision->for_run))
			script_tools_refuse(c, "the approval was used up by another call");
		look_at_consents(t);
		return;
	}
	approval_say_decision(decision, "this call", text, sizeof(text));
	script_tools_refuse(c, text);
	look_at_consents(t);
}

bool
script_tools_waits(const struct script_tools *t, char *text_r, size_t size)
{
	const struct script_call *c;

	if (!t->host)
		return false;
	LIST_FOREACH(c, &t->calls, link) {
		if (!c->waits)
			continue;
		snprintf(text_r, size, "waits for the approval of %.40s.%.40s: mcp-python approve %s",
			 c->server->name, c->tool, c->approval);
		return true;
	}
	return false;
}

/* No operator has decided yet, and the client does not know what its call waits for. */
static void
on_impatient(evutil_socket_t, short, void *arg)
{
	static const struct timeval again = { .tv_sec = PATIENCE_S };
	struct script_tools *t = arg;
	struct script_call *c, *next;
	char text[TOOL_WAITS_MAX];
	int r;

	if (!script_tools_waits(t, text, sizeof(text)))
		return;
	r = t->host->on_job(t->host->arg, text);
	if (r == 0) {
		/* What it waits for from now on is asked by script_tools_waits. */
		(void)t->host->on_job(t->host->arg, NULL);
		return;
	}
	if (r == -EAGAIN) {
		evtimer_add(t->patience, &again);
		return;
	}
	for (c = LIST_FIRST(&t->calls); c; c = next) {
		next = LIST_NEXT(c, link);
		if (!c->waits)
			continue;
		snprintf(text, sizeof(text), "the call has to be approved (mcp-python approve %s), "
			 "and %s; make it again once it is", c->approval,
			 r == -EBUSY ? "as many jobs run as may" : "this call cannot wait for that");
		script_tools_refuse(c, text);
	}
	look_at_consents(t);
}

/* The script waits for an operator: its client is told, as a task or, after a moment, by a job. In
 * sets of tools without jobs the script is told, and its client by the script's error. */
static void
have_patience(struct script_tools *t)
{
	static const struct timeval wait = { .tv_sec = PATIENCE_S };
	char text[TOOL_WAITS_MAX];

	if (!script_tools_waits(t, text, sizeof(text)) || t->host->on_task(t->host->arg, text) == 0)
		return;
	if (!t->patience)
		t->patience = xalloc_check(evtimer_new(t->host->base, on_impatient, t));
	evtimer_add(t->patience, &wait);
}

static void
ask_operator(struct script_call *c)
{
	struct script_tools *t = c->tools;
	own_mem char *item = item_of(c);
	const char *const items[] = { item };
	const struct approval_request request = request_of(c, items);
	const struct approval *approval;
	struct why why = { .text = "" };

	if (approvals_ask(approvals_of(t), &request, on_decided, c, &approval, &why) < 0) {
		script_tools_refuse(c, why.text);
		return;
	}
	c->waits = true;
	snprintf(c->approval, sizeof(c->approval), "%s", approval_id(approval));
	have_patience(t);
}

/* ---- ... in the session ---- */

/* Malloc'd; NULL: the arguments have no room in a form. */
static char *
write_form(const struct script_call *c)
{
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));
	bool fits;

	fprintf(to, "A Python script that is running for you (%s) wants to call a tool of another "
		"server. May it make this call?\n\nEach line that begins with \"" SHOWN_MARK "\" is "
		"the script's and not this server's.\n\n", execution_id(c->tools->execution));
	fits = shown_write(to, c->shown, &shown_in_form);
	xassert(fclose(to) == 0);
	if (fits)
		return text;
	free(text);
	return NULL;
}

static bool
ask_session(struct script_call *c)
{
	const struct tool_host *host = c->tools->host;
	struct tool_question question = {
		.kind = QUESTION_ELICIT,
		.schema = "{\"type\":\"object\",\"properties\":{\"allow\":{\"type\":\"boolean\","
			  "\"title\":\"Allow this call\"},\"rest\":{\"type\":\"boolean\",\"default\":"
			  "false,\"title\":\"Also allow all further calls of this tool by this "
			  "script, with any arguments\"}},\"required\":[\"allow\"]}",
	};
	own_mem char *text = write_form(c);
	char key[QUESTION_KEY_MAX];

	snprintf(key, sizeof(key), "tool-%u", c->number);
	question.key = key;
	question.message = text;
	if (text == NULL || host->on_ask(host->arg, &question, 1, NULL) < 0)
		return false;
	c->tools->asking = c->number;
	return true;
}

bool
script_tools_asks(const struct script_tools *t)
{
	return t->asking != 0 || t->n_sent > 0;
}

static void
ask_consents(struct script_tools *t)
{
	struct script_call *c, *next;

	for (c = LIST_FIRST(&t->calls); c && !script_tools_asks(t) && !t->input->number; c = next) {
		next = LIST_NEXT(c, link);
		/* A call that a form cannot show whole is not asked about in the session. */
		if (!c->shown || c->waits || c->made)
			continue;
		if (is_granted_for_run(c))
			(void)make_if_granted(c, false);
		else if (!ask_session(c))
			ask_operator(c);
	}
}

/* A question has ended: asks the next one. Questions to a person come before calls of a client's
 * tools. */
static void
script_tools_go_on(struct script_tools *t, struct execution *execution)
{
	ask_consents(t);
	look_at_consents(t);
	if (!script_tools_asks(t) && !t->input->number)
		script_input_ask_kept(t->input, t->host, execution);
	ask_client(t);
}

static void
take_reply(struct script_tools *t, const struct tool_reply *reply)
{
	struct script_call *c;

	LIST_FOREACH(c, &t->calls, link)
		if (c->number == t->asking)
			break;
	t->asking = 0;
	if (c && reply->action == REPLY_ACCEPT &&
	    json_is_true(json_object_get(reply->content, "allow"))) {
		own_mem char *item = item_of(c);
		const char *const items[] = { item };
		const struct approval_request request = request_of(c, items);
		bool for_run = json_is_true(json_object_get(reply->content, "rest"));

		approvals_grant_by_session(approvals_of(t), &request, for_run);
		if (!make_if_granted(c, for_run))
			script_tools_refuse(c, "the approval could not be recorded");
	} else if (c) {
		script_tools_refuse(c, "the session's user did not agree to this call");
	}
}

void
script_tools_reply_to(struct script_tools *t, struct execution *execution,
		      const struct tool_reply *reply, size_t n)
{
	if (t->n_sent)
		take_results(t, reply, n);
	else if (t->asking)
		take_reply(t, reply);
	else
		script_input_reply(t->input, t->host, execution, reply);
	script_tools_go_on(t, execution);
}

/* Asks for the approval of exactly this call, which policy requires. */
static void
script_tools_approve(struct script_call *c, const json_t *arguments)
{
	struct script_tools *t = c->tools;
	own_mem char *item = item_of(c);
	const char *const items[] = { item };
	struct why why = { .text = "" };
	struct approval_request request;

	if (!approvals_of(t)) {
		script_tools_refuse(c, "the call has to be approved, and no person can be asked here");
		return;
	}
	if (make_if_granted(c, false))
		return;
	/* A parsed value takes much more memory than its text, and a person has to read them. */
	if (jsonbound_values(c->arguments, strlen(c->arguments)) > APPROVAL_ITEMS_MAX) {
		script_tools_refuse(c, "the call has to be approved, and its arguments have more than "
				    STRING(APPROVAL_ITEMS_MAX) " values");
		return;
	}
	c->shown = xalloc_check(json_pack("{s:s,s:s,s:O}", "server", c->server->name, "tool",
					  c->tool, "arguments", arguments));
	request = request_of(c, items);
	if (approvals_check_denied(approvals_of(t), &request, &why) < 0)
		script_tools_refuse(c, why.text);
	else if (policy_asks_session(t->host->config) && (t->host->client & CLIENT_ELICITS))
		ask_consents(t);
	else
		ask_operator(c);
	look_at_consents(t);
}

/* ---- requests of the script ---- */

static void
script_tools_decide(struct script_call *c, const json_t *arguments)
{
	const struct script_tools *t = c->tools;
	const struct upstream_tool *tool = upstream_find_tool(c->server, c->tool);
	char text[TEXT_MAX];

	if (!tool) {
		snprintf(text, sizeof(text), c->server->state == TOOL_SERVER_DOWN
			 ? "the server does not run now: %.300s"
			 : "the server has no such tool%.0s", c->server->text);
		script_tools_refuse(c, text);
		return;
	}
	c->reads = tool->read_only;
	hash_about(tool, c->about);
	switch (tools_verdict(t->host->config, c->server->name, c->tool, c->reads)) {
	case POLICY_ALLOW:
		script_tools_make(c);
		break;
	case POLICY_APPROVE:
		script_tools_approve(c, arguments);
		break;
	case POLICY_UNSAID:
	case POLICY_DENY:
		script_tools_refuse(c, "policy does not allow this call ([tool-calls])");
		break;
	}
}

void
script_tools_call(struct script_tools *t, struct execution *execution,
		  const struct execution_tool *asked)
{
	struct script_call *c;
	json_error_t error;
	json_t *arguments;

	if (!asked->tool) {
		other_tools_answer(&t->others, execution, asked);
		return;
	}
	t->execution = execution;
	c = xcalloc(1, sizeof(*c));
	*c = (struct script_call){ .tools = t, .number = asked->number,
				   .server = other_tools_find(&t->others, asked->server),
				   .tool = xstrdup(asked->tool) };
	LIST_INSERT_HEAD(&t->calls, c, link);
	if (jsonbound_values(asked->arguments, asked->arguments_len) > JSON_VALUES_MAX) {
		script_tools_refuse(c, "the arguments have more than " STRING(JSON_VALUES_MAX) " values, or "
				    "are nested more than " STRING(JSON_DEPTH_MAX) " deep");
		return;
	}
	arguments = json_loadb(asked->arguments, asked->arguments_len,
			       JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (json_is_object(arguments)) {
		c->arguments = xalloc_check(json_dumps(arguments,
						       JSON_COMPACT | JSON_SORT_KEYS));
		chain_hash(c->arguments, strlen(c->arguments), c->hash);
		script_tools_decide(c, arguments);
	} else {
		script_tools_refuse(c, "the arguments are no JSON object that can be passed on");
	}
	json_decref(arguments);
}
