/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the executions of the service's own programs.
 * Reads:   a program's answer as a worker reports it, which is any JSON. */
#include "tools/shared/inside.h"

#include "base/why.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "policy/config.h"
#include "tools/shared/other_tools.h"

struct inside {
	struct execution *execution;
	inside_answered *answered;
	void (*on_output)(void *arg, enum stream stream, const char *bytes, size_t len);
	void *arg;
	struct other_tools tools;
};

static json_t *
inside_read_answer(const struct outcome *outcome)
{
	const char *text = outcome->status == OUTCOME_OK ? outcome->value_json : NULL;
	json_t *answer;

	if (!text || !jsonrpc_is_bounded(text, strlen(text)))
		return NULL;
	answer = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (json_is_object(answer))
		return answer;
	json_decref(answer);
	return NULL;
}

static void
inside_on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	const struct inside *inside = arg;

	inside->on_output(inside->arg, stream, bytes, len);
}

static void
inside_on_outcome(void *arg, const struct outcome *outcome)
{
	struct inside inside = *(struct inside *)arg;
	json_auto_t *answer = inside_read_answer(outcome);

	other_tools_end(&((struct inside *)arg)->tools);
	free(arg);
	inside.answered(inside.arg, answer, outcome);
}

static void
inside_on_tool(void *arg, const struct execution_tool *asked)
{
	struct inside *inside = arg;

	other_tools_answer(&inside->tools, inside->execution, asked);
}

static int
limits_of(const struct tool_host *host, const struct inside_probe *probe,
	  struct limits *limits_r, struct why *why_r)
{
	const struct limits_asked nothing = { 0 };
	int r;

	if (probe->limits) {
		*limits_r = *probe->limits;
		return 0;
	}
	r = limits_merge(&host->config->limits, &nothing, limits_r, why_r);
	if (limits_r->wall_ms > INSIDE_WALL_MS)
		limits_r->wall_ms = INSIDE_WALL_MS;
	return r;
}

int
inside_ask(const struct tool_host *host, const struct inside_probe *probe,
	   inside_answered *answered, void *arg, struct inside **inside_r, struct why *why_r)
{
	struct execution_request request = {
		.script = probe->program,
		.script_len = strlen(probe->program),
		.stdin_text = probe->input,
		.stdin_len = probe->input_len,
		.args = &probe->argument,
		.n_args = probe->argument ? 1 : 0,
		.profile = probe->profile,
		.channel = probe->channel,
		.network = probe->network,
		.internal = true,
	};
	struct inside *inside = xcalloc(1, sizeof(*inside));
	struct execution_watcher watcher = {
		.on_output = probe->on_output ? inside_on_output : NULL,
		.on_outcome = inside_on_outcome,
		.on_tool = probe->lists ? inside_on_tool : NULL,
		.arg = inside,
	};
	int r = limits_of(host, probe, &request.limits, why_r);

	inside->answered = answered;
	inside->on_output = probe->on_output;
	inside->arg = arg;
	if (probe->lists)
		other_tools_offer(&inside->tools, host, probe->lists == LISTS_AWAITED, &request);
	if (r == 0)
		r = execution_start(host->engine, host->tenant, &request, &watcher,
				    &inside->execution, why_r);
	if (r < 0)
		free(inside);
	else
		*inside_r = inside;
	return r;
}

struct tool_run *
inside_run(const struct tool_host *host, const struct inside_probe *probe,
	   inside_answered *answered, struct tool_run *run, struct inside **inside_r)
{
	struct why why;

	if (inside_ask(host, probe, answered, run, inside_r, &why) == 0)
		return run;
	tool_refuse(host, why.text);
	free(run);
	return NULL;
}

void
inside_cancel(struct inside *inside, enum cancel_reason reason)
{
	execution_cancel(inside->execution, reason);
	execution_unwatch(inside->execution);
	other_tools_end(&inside->tools);
	free(inside);
}
