/* Runs in: the supervisor.   Owns: the executions of run_script calls.
 * A run lives from an accepted start to its outcome or cancellation. */
#include "supervisor/tools/run_script.h"

#include "policy/config.h"
#include "supervisor/xalloc.h"

struct tool_run {
	struct tool_host host;
	struct execution *execution;
	bool cancelling;
};

static void
describe(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = run_script_tool.name,
		.title = "Run a Python script",
		.description = run_script_description(config),
		.input_schema = run_script_input_schema(config),
		.output_schema = run_script_output_schema(),
		/* The script changes nothing outside its own worker, and reaches nobody. */
		.read_only = false,
		.destructive = false,
		.idempotent = false,
		.open_world = false,
	};
}

static void
on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct tool_run *run = arg;

	/* Stopping a worker drains its pipes: what comes then is for nobody. */
	if (run->cancelling)
		return;
	run->host.on_output(run->host.arg, stream, bytes, len);
}

static void
on_outcome(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;
	struct tool_host host = run->host;

	run->execution = NULL;
	if (run->cancelling)
		return;
	free(run);
	run_script_answer(outcome, &host);
}

static int
start_execution(struct tool_run *run, const struct run_script_arguments *arguments,
		struct why *why_r)
{
	struct execution_request request = {
		.script = arguments->script,
		.script_len = arguments->script_len,
		.args = arguments->args,
		.n_args = arguments->n_args,
		.stdin_text = arguments->stdin_text,
		.stdin_len = arguments->stdin_len,
		.profile = arguments->profile,
	};
	const struct execution_watcher watcher = {
		.on_output = run->host.on_output ? on_output : NULL,
		.on_outcome = on_outcome,
		.arg = run,
	};
	int r = limits_merge(&run->host.config->limits, &arguments->asked, &request.limits,
			     why_r);

	if (r < 0)
		return r;
	return execution_start(run->host.engine, run->host.tenant, &request, &watcher,
			       &run->execution, why_r);
}

static struct tool_run *
start(const struct tool_host *host, const json_t *json)
{
	struct run_script_arguments arguments;
	struct why why = { .field = "" };
	struct tool_run *run;
	int r;

	if (run_script_read(json, host->config, &arguments, &why) < 0) {
		run_script_refuse(&why, host);
		return NULL;
	}
	run = xcalloc(1, sizeof(*run));
	run->host = *host;
	r = start_execution(run, &arguments, &why);
	run_script_arguments_done(&arguments);
	if (r < 0) {
		free(run);
		run_script_refuse(&why, host);
		return NULL;
	}
	return run;
}

static void
cancel(struct tool_run *run, enum cancel_reason reason)
{
	run->cancelling = true;
	execution_cancel(run->execution, reason);
	if (run->execution)
		execution_unwatch(run->execution);
	free(run);
}

const struct tool run_script_tool = {
	.name = "run_script",
	.describe = describe,
	.start = start,
	.cancel = cancel,
};
