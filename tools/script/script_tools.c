/* Runs in: the supervisor.   Owns: the calls of a script that have no answer yet.
 * Reads:   arguments of scripts, hostile; results of other servers, which it passes on as they are,
 * within bounds: only the script reads them. */
#include "tools/script/script_tools.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/quote.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/upstream.h"
#include "govern/approvals.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "policy/tools.h"

#define TEXT_MAX 512	/* bytes of our own sentences */

struct script_call {
	LIST_ENTRY(script_call) link;
	struct script_tools *tools;
	uint32_t number;
	const struct upstream_server *server;
	char *tool;			/* NULL: it asks for the list */
	char *arguments;		/* canonical JSON: what is approved, recorded and sent */
	char hash[CHAIN_DIGITS + 1];	/* of the arguments */
	struct upstream_call *call;	/* NULL: it was not made yet */
	bool waits;			/* for a decision of an operator */
	uint64_t since_us;
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
free_call(struct script_call *c)
{
	if (c->call)
		upstream_drop(c->call);
	if (c->waits)
		approvals_unwatch(approvals_of(c->tools), c);
	LIST_REMOVE(c, link);
	free(c->tool);
	free(c->arguments);
	free(c);
}

/* The call is over. */
static void
answer(struct script_call *c, enum tool_status status, const char *body, size_t len)
{
	struct script_tools *t = c->tools;
	uint32_t number = c->number;

	free_call(c);
	execution_answer_tool(t->execution, number, status, body, len);
}

void
script_tools_offer(struct script_tools *t, const struct tool_host *host,
		   struct execution_request *request)
{
	const struct upstream *upstream = engine_upstream(host->engine);
	const struct config_tool_calls *calls = &host->config->tool_calls;
	const struct upstream_server *server;

	*t = (struct script_tools){ .host = host };
	LIST_INIT(&t->calls);
	for (size_t i = 0; (server = upstream_server(upstream, i)) != NULL; i++)
		if (tools_allows_server(host->config, server->name))
			t->server[request->n_tools++] = server->name;
	request->tools = t->server;
	request->tool_calls = calls->calls;
	request->tool_calls_at_once = calls->at_once;
}

/* ---- records ---- */

static struct audit *
audit_of(const struct script_tools *t)
{
	return t->host->gate ? gate_audit(t->host->gate) : NULL;
}

static int
record(const struct script_call *c, enum audit_event event, json_t *more)
{
	const struct script_tools *t = c->tools;

	xalloc_check(more);
	json_object_set_new(more, "server", xalloc_check(json_string(c->server->name)));
	/* A script's: it is UTF-8 without NUL. */
	json_object_set_new(more, "tool", xalloc_check(json_string(c->tool)));
	json_object_set_new(more, "number", xalloc_check(json_integer(c->number)));
	if (*c->hash)
		json_object_set_new(more, "arguments_sha256", xalloc_check(json_string(c->hash)));
	return audit_write(audit_of(t), event, tenant_principal(t->host->tenant),
			   execution_id(t->execution), more);
}

static void
record_end(const struct script_call *c, const char *status, const char *body, size_t len)
{
	char hash[CHAIN_DIGITS + 1];
	uint64_t ms = (clock_us() - c->since_us) / 1000;

	chain_hash(body, len, hash);
	record(c, AUDIT_TOOL_ENDED, json_pack("{s:s,s:I,s:I,s:s}", "status", status, "ms",
					      (json_int_t)ms, "bytes", (json_int_t)len,
					      "result_sha256", hash));
}

void
script_tools_end(struct script_tools *t)
{
	struct script_call *c, *next;

	if (!t->host)
		return;
	for (c = LIST_FIRST(&t->calls); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->tool && c->call)
			record_end(c, "cancelled", "", 0);
		free_call(c);
	}
}

/* ---- refusals ---- */

/* Nothing was done. why: for the record, and after it the text for the script. */
static void
refuse(struct script_call *c, const char *why)
{
	if (c->tool)
		record(c, AUDIT_TOOL_REFUSED, json_pack("{s:s}", "reason", why));
	answer(c, TOOL_REFUSED, why, strlen(why));
}

/* ---- the call itself ---- */

/* Whether the results of the run have room for this one. */
static bool
charge(struct script_tools *t, size_t len)
{
	if (len > t->host->config->tool_calls.results_bytes - t->bytes)
		return false;
	t->bytes += len;
	return true;
}

static void
on_called(void *arg, enum tool_status status, const char *body, size_t len)
{
	static const char *const names[] = { "ok", "error", "refused", "failed" };
	static const char full[] = "the results of this run have used up [tool-calls] "
				   "results_bytes; the call was made";
	struct script_call *c = arg;

	c->call = NULL;
	record_end(c, names[status], body, len);
	if (!charge(c->tools, len))
		answer(c, TOOL_FAILED, full, strlen(full));
	else
		answer(c, status, body, len);
}

/* The record comes first: without it nothing may happen. */
static void
make(struct script_call *c)
{
	const struct config_tool_calls *calls = &c->tools->host->config->tool_calls;

	if (record(c, AUDIT_TOOL_CALLED, json_object()) < 0) {
		refuse(c, "the audit log cannot be written");
		return;
	}
	c->since_us = clock_us();
	c->call = upstream_call(upstream_of(c->tools), c->server, c->tool, c->arguments,
				calls->seconds, (uint32_t)calls->result_bytes, on_called, c);
}

/* ---- approvals ---- */

static void
on_decided(void *arg, enum approval_state state, const char *reason)
{
	struct script_call *c = arg;
	struct approvals *approvals = approvals_of(c->tools);
	char text[TEXT_MAX], said[TEXT_MAX / 2], *item;
	bool used;

	c->waits = false;
	if (state == APPROVAL_GRANTED) {
		if (asprintf(&item, "tool %s.%s %s", c->server->name, c->tool, c->hash) < 0)
			abort();
		used = approvals_use(approvals, tenant_principal(c->tools->host->tenant), item);
		free(item);
		if (used)
			make(c);
		else
			refuse(c, "the approval was used up by another call");
		return;
	}
	quote_word(said, sizeof(said), reason ? reason : "", reason ? strlen(reason) : 0);
	snprintf(text, sizeof(text), "%s%s%s", state == APPROVAL_EXPIRED
		 ? "nobody decided about this call in time" : "an approver refused this call",
		 reason ? "; the approver's reason: " : "", reason ? said : "");
	refuse(c, text);
}

/* Policy wants somebody to agree to exactly this call. */
static void
approve(struct script_call *c, const json_t *arguments)
{
	const struct script_tools *t = c->tools;
	struct approvals *approvals = approvals_of(t);
	const char *principal = tenant_principal(t->host->tenant);
	own_mem char *item = NULL, *name = NULL;
	struct why why = { .text = "" };
	const struct approval *approval;
	struct approval_request request;
	int r;

	if (asprintf(&name, "tools.%s.%s", c->server->name, c->tool) < 0 ||
	    asprintf(&item, "tool %s.%s %s", c->server->name, c->tool, c->hash) < 0)
		abort();
	if (!approvals) {
		refuse(c, "the call has to be approved, and nobody can be asked here");
		return;
	}
	if (approvals_use(approvals, principal, item)) {
		make(c);
		return;
	}
	request = (struct approval_request){
		.requester = gate_subject(t->host->gate, principal), .config = t->host->config,
		.tool = name, .item = (const char *const *)&item, .n_items = 1, .once = true,
		.shown = xalloc_check(json_pack("{s:s,s:s,s:O}", "server", c->server->name,
						"tool", c->tool, "arguments", arguments)),
	};
	r = approvals_check_denied(approvals, &request, &why);
	if (r == 0)
		r = approvals_ask(approvals, &request, on_decided, c, &approval, &why);
	json_decref(request.shown);
	if (r < 0)
		refuse(c, why.text);
	else
		c->waits = true;
}

/* ---- what a script asks for ---- */

static void
decide(struct script_call *c, const json_t *arguments)
{
	const struct script_tools *t = c->tools;
	const struct upstream_tool *tool = upstream_find_tool(c->server, c->tool);
	char text[TEXT_MAX];

	if (!tool) {
		snprintf(text, sizeof(text), c->server->state == TOOL_SERVER_DOWN
			 ? "the server does not run now: %.300s"
			 : "the server has no such tool%.0s", c->server->text);
		refuse(c, text);
		return;
	}
	switch (tools_verdict(t->host->config, c->server->name, c->tool, tool->read_only)) {
	case POLICY_ALLOW:
		make(c);
		break;
	case POLICY_APPROVE:
		approve(c, arguments);
		break;
	case POLICY_UNSAID:
	case POLICY_DENY:
		refuse(c, "policy does not allow this call ([tool-calls])");
		break;
	}
}

/* The list as the tenant may see it: tools that are denied are not there. */
static void
on_known(void *arg, enum tool_status status, const char *body, size_t len)
{
	struct script_call *c = arg;
	const char *between = "";
	char *text = NULL;
	size_t text_len;
	FILE *to;

	c->call = NULL;
	if (status != TOOL_RETURNED) {
		answer(c, status, body, len);
		return;
	}
	to = xalloc_check(open_memstream(&text, &text_len));
	fputc('[', to);
	for (size_t i = 0; i < c->server->n_tools; i++) {
		const struct upstream_tool *tool = &c->server->tool[i];

		if (tools_verdict(c->tools->host->config, c->server->name, tool->name,
				  tool->read_only) == POLICY_DENY)
			continue;
		fprintf(to, "%s%s", between, tool->about);
		between = ",";
	}
	fputc(']', to);
	if (fclose(to) != 0)
		abort();
	answer(c, TOOL_RETURNED, text, text_len);
	free(text);
}

void
script_tools_call(struct script_tools *t, struct execution *execution,
		  const struct execution_tool *asked)
{
	struct script_call *c = xcalloc(1, sizeof(*c));
	json_error_t error;
	json_t *arguments;

	t->execution = execution;
	*c = (struct script_call){ .tools = t, .number = asked->number,
				   .server = upstream_find(upstream_of(t), asked->server),
				   .tool = asked->tool ? xstrdup(asked->tool) : NULL };
	LIST_INSERT_HEAD(&t->calls, c, link);
	if (!asked->tool) {
		c->call = upstream_await(upstream_of(t), c->server, on_known, c);
		return;
	}
	arguments = json_loadb(asked->arguments, asked->arguments_len,
			       JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (json_is_object(arguments)) {
		c->arguments = xalloc_check(json_dumps(arguments,
						       JSON_COMPACT | JSON_SORT_KEYS));
		chain_hash(c->arguments, strlen(c->arguments), c->hash);
		decide(c, arguments);
	} else {
		refuse(c, "the arguments are no JSON object that can be passed on");
	}
	json_decref(arguments);
}
