/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the executions of run_script calls.
 * A run lives from an accepted start to its outcome or cancellation. */
#include "tools/script/run_script.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "policy/config.h"
#include "tools/job/background.h"
#include "tools/packages/found.h"
#include "tools/packages/needs.h"
#include "tools/script/script_input.h"
#include "tools/script/script_tools.h"
#include "tools/sets/set.h"
#include "tools/shared/environment.h"
#include "tools/shared/other_tools.h"
#include "tools/shared/resources.h"

/* First the script's requirements are checked, if it has any; then it runs. */
struct tool_run {
	const struct script_tool *kind;
	struct tool_host host;
	json_t *json;			/* arguments borrows from it until the script runs */
	struct run_script_arguments arguments;
	struct needs *needs;		/* NULL: they are satisfied, or there are none */
	char environment[SET_NAME + 1];	/* the set that satisfies them; "": none is needed */
	json_t *packages;		/* which are in it */
	struct found found;
	const char *profile;		/* the profile that was checked */
	size_t candidate;		/* index of the profile, if any profile with such a
					 * Python will do */
	char *unfit;			/* about the first profile, if others are tried after it */
	bool *over;			/* if not NULL: set when the run is freed */
	struct execution *execution;
	struct script_input input;
	struct script_tools tools;
	bool cancelling;
};

static char *
run_script_make_description(const struct config *config)
{
	char *packages = environment_names_text(config), *text;
	own_mem char *others = other_tools_text(config);
	own_mem char *folder = run_script_folder_text(config);
	int n;

	n = asprintf(&text,
		"Run a Python %s script in a fresh, isolated process. Returns what it "
		"printed, the value of its last line, an error with its traceback, figures, "
		"objects given to display(), and the files it left in /workspace, where it "
		"starts.\n"
		"Nothing survives the call: send a whole program each time, or use run_repl. "
		"The script sees no files of the machine%s and %s. Top-level await, threads and "
		"subprocesses work.%s%s%s\n"
		"Example: {\"script\": \"import math\\nmath.factorial(10)\"} gives result "
		"3628800.",
		environment_version(), folder, run_script_network_text(config),
		script_input_text(config), packages, others);
	free(packages);
	return xalloc_check(n < 0 ? NULL : text);
}

static void
run_script_describe(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = run_script_tool.name,
		.title = "Run a Python script",
		.icon = ICON_RUN,
		.hint = "run_script runs a whole program in a fresh process: nothing survives the "
			"call.",
		.description = run_script_make_description(config),
		.installed = environment_names_text(config),
		.input_schema = run_script_input_schema(RUN_FOR_SCRIPT, config),
		.output_schema = run_script_output_schema(RUN_FOR_SCRIPT, config),
		/* The script changes nothing outside its own worker, and reaches only hosts that
		 * [network] names. */
		.read_only = false,
		.destructive = false,
		.idempotent = false,
		.open_world = config->network.allow.n > 0,
		.task = TOOL_TASK_MAY,
	};
}

static void
drop_arguments(struct tool_run *run)
{
	run_script_arguments_done(&run->arguments);
	json_decref(run->json);
	run->json = NULL;
}

static void
run_script_free_run(struct tool_run *run)
{
	if (run->over)
		*run->over = true;
	drop_arguments(run);
	script_tools_end(&run->tools);
	json_decref(run->packages);
	found_done(&run->found);
	free(run->unfit);
	free(run);
}

static void
run_script_on_output(void *arg, enum stream stream, const char *bytes, size_t len)
{
	struct tool_run *run = arg;

	/* Stopping a worker drains its pipes; this output is not used. */
	if (run->cancelling || !run->host.on_output)
		return;
	run->host.on_output(run->host.arg, stream, bytes, len);
}

static void
run_script_on_outcome(void *arg, const struct outcome *outcome)
{
	struct tool_run *run = arg;
	const struct script_tool *kind = run->kind;
	unsigned int flags = run->arguments.flags;
	struct tool_host host = run->host;

	script_tools_end(&run->tools);
	run->execution = NULL;
	if (run->cancelling)
		return;
	script_input_end(&run->input, &host, outcome->id);
	run_script_free_run(run);
	kind->answer(outcome, flags, &host);
}

static void
run_script_on_prompt(void *arg, unsigned int number, const char *prompt, size_t len)
{
	struct tool_run *run = arg;

	if (run->cancelling)
		execution_answer_prompt(run->execution, NULL, 0);
	else if (script_tools_asks(&run->tools))
		script_input_keep(&run->input, number, prompt, len);
	else
		script_input_ask(&run->input, &run->host, run->execution, number, prompt, len);
}

static void
run_script_on_module(void *arg, const struct execution_module *module)
{
	struct tool_run *run = arg;

	if (run->cancelling)
		execution_answer_module(run->execution, NULL);
	else
		found_answer(&run->found, &run->host, run->execution, module,
			     run->found.set ? run->found.set : run->packages);
}

static bool
run_script_would_find(void *arg, const struct execution_module *module, const char *environment)
{
	const struct tool_run *run = arg;

	return !run->cancelling && found_would_be(&run->host, module, environment);
}

static void
run_script_on_tool(void *arg, const struct execution_tool *tool)
{
	struct tool_run *run = arg;

	if (run->cancelling)
		execution_answer_tool(run->execution, tool->number, TOOL_REFUSED, "", 0);
	else
		script_tools_call(&run->tools, run->execution, tool);
}

static int
start_execution(struct tool_run *run, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	struct execution_request request = {
		.script = arguments->script,
		.script_len = arguments->script_len,
		.script_name = arguments->script_name,
		.args = arguments->args,
		.n_args = arguments->n_args,
		.stdin_text = arguments->stdin_text,
		.stdin_len = arguments->stdin_len,
		.input = arguments->files.item,
		.n_inputs = arguments->files.n,
		.profile = arguments->profile,
		.network = &run->host.config->network,
		.spill = arguments->spill,
		.patient = run->host.job != NULL,
		.volume = arguments->volume,
		.folder = true,
		.imports = arguments->imports.item,
		.n_imports = arguments->imports.n,
		.globals = arguments->globals,
		.tell_names = arguments->tell_names,
		.environment = *run->environment ? run->environment : NULL,
	};
	const struct execution_watcher watcher = {
		.on_output = run->host.on_output || run->host.config->n_tools > 0
				     ? run_script_on_output : NULL,
		.on_outcome = run_script_on_outcome,
		.on_prompt = run_script_on_prompt,
		.on_module = run_script_on_module,
		.would_find = run_script_would_find,
		.on_tool = run_script_on_tool,
		.arg = run,
	};
	int r = limits_merge(&run->host.config->limits, &arguments->asked, &request.limits,
			     why_r);

	if (r == 0)
		r = run_script_files_resolve(&run->arguments.files, run->host.config,
					     run->host.tenant, why_r);
	if (r == 0 && run->kind->asks)
		script_input_offer(&run->host, &request);
	found_offer(&run->host, &request);
	script_tools_offer(&run->tools, &run->host, &run->input, &request);
	if (r == 0)
		r = execution_start(run->host.engine, run->host.tenant, &request, &watcher,
				    &run->execution, why_r);
	if (r == 0)
		drop_arguments(run);
	return r;
}

/* The reason for an error of execution_start(). */
static const char *
reason_of(int error)
{
	return error == -EDQUOT ? TOOL_QUOTA_EXCEEDED :
	       error == -EPERM ? TOOL_DENIED :
	       error == -EIO ? TOOL_AUDIT_UNAVAILABLE : RUN_INVALID_ARGUMENTS;
}

/* ---- requirements ---- */

static int check_first(struct tool_run *run, struct why *why_r);

/* Reads python_version: X.Y matches every X.Y.Z; else it is the name of an interpreter. */
static int
choose_interpreter(struct tool_run *run, struct why *why_r)
{
	struct run_script_arguments *arguments = &run->arguments;
	const struct config *config = run->host.config;
	const char *name = arguments->python;

	if (arguments->profile || *tenant_profile(run->host.tenant))
		run->candidate = config->n_profiles;	/* there is no other one */
	if (!name)
		return 0;
	if (isdigit((unsigned char)*name)) {
		const char *dot = strchr(name, '.');

		snprintf(arguments->requires_python, sizeof(arguments->requires_python),
			 "==%s%s", name, dot && strchr(dot + 1, '.') ? "" : ".*");
		return 0;
	}
	for (size_t i = 0; i < config->n_profiles; i++) {
		const struct config_profile *profile = &config->profile[i];

		if (!profile->interpreter || strcmp(profile->interpreter, name) != 0 ||
		    (arguments->profile && strcmp(arguments->profile, profile->name) != 0))
			continue;
		arguments->profile = profile->name;
		run->candidate = config->n_profiles;
		return 0;
	}
	return why_say(why_r, -ENOENT, "python_version",
		       "python_version: no profile that could be had has an interpreter %s",
		       name);
}

static void
run_script_on_needs(void *arg, const struct needs_result *result)
{
	struct tool_run *run = arg;
	struct why why = { .field = "" };
	int r = 0;

	run->needs = NULL;
	if (result->status == NEEDS_MET) {
		if (result->environment) {
			memcpy(run->environment, result->environment,
			       sizeof(run->environment));
			run->packages = json_incref((json_t *)result->packages);
		}
		r = start_execution(run, &why);
		if (r < 0)
			run->kind->refuse(reason_of(r), why.text, &run->host);
	} else if (result->status == NEEDS_PYTHON &&
		   environment_next_profile(&run->host, &run->candidate, &run->profile)) {
		if (!run->unfit)
			run->unfit = xasprintf("%s. No other profile has a Python that fits",
					       result->text);
		run->arguments.profile = run->profile;
		r = check_first(run, &why);
		if (r < 0)
			run->kind->refuse(RUN_INVALID_ARGUMENTS, why.text, &run->host);
	} else {
		r = -ECANCELED;
		if (result->status == NEEDS_TROUBLE)
			run->kind->answer(result->trouble, run->arguments.flags, &run->host);
		else
			run->kind->refuse(result->reason,
					  result->status == NEEDS_PYTHON && run->unfit
						  ? run->unfit : result->text, &run->host);
	}
	if (r < 0)
		run_script_free_run(run);
}

/* Runs the script once its requirements are satisfied, which may be at once; the run may be over
 * afterwards. */
static int
check_first(struct tool_run *run, struct why *why_r)
{
	struct requirements_probe probe = {
		.script = run->arguments.script,
		.script_len = run->arguments.script_len,
		.dependencies = run->arguments.dependencies,
		.requires_python = *run->arguments.requires_python
					   ? run->arguments.requires_python : NULL,
		.dependencies_replace = run->arguments.dependencies_replace,
	};
	struct needs *needs = NULL;
	int r = environment_profile(&run->host, run->arguments.profile, &probe.profile,
				    why_r);

	run->profile = probe.profile;
	if (r == 0)
		r = needs_start(&run->host, &probe, run_script_on_needs, run, &needs, why_r);
	/* Otherwise they are known already, and the run may be over. */
	if (needs)
		run->needs = needs;
	return r;
}

static int
run_script_begin(struct tool_run *run, struct why *why_r)
{
	const struct run_script_arguments *arguments = &run->arguments;
	const char *profile;
	/* Without an argument too: the profile that a tenant is bound to may be there no more. */
	int r = environment_profile(&run->host, arguments->profile, &profile, why_r);

	if (r < 0)
		return r;
	if (*arguments->requires_python ||
	    requirements_any(arguments->script, arguments->script_len, arguments->dependencies))
		return check_first(run, why_r);
	return start_execution(run, why_r);
}

struct tool_run *
run_script_start(const struct script_tool *kind, const struct tool_host *host,
		 const json_t *json)
{
	struct run_script_arguments arguments = { .script = NULL };
	struct why why = { .field = "" };
	bool over = false;
	struct tool_run *run;
	int r;

	if (kind->read(json, host->config, &arguments, &why) < 0) {
		run_script_arguments_done(&arguments);
		kind->refuse(RUN_INVALID_ARGUMENTS, why.text, host);
		return NULL;
	}
	run = xcalloc(1, sizeof(*run));
	run->kind = kind;
	run->input.tool = kind->asks;
	run->host = *host;
	run->json = json_incref((json_t *)json);
	run->arguments = arguments;
	run->over = &over;
	r = choose_interpreter(run, &why);
	if (r < 0) {
		run_script_free_run(run);
		kind->refuse(RUN_PYTHON_UNAVAILABLE, why.text, host);
		return NULL;
	}
	r = run_script_begin(run, &why);
	if (over)
		return NULL;
	if (r < 0) {
		run_script_free_run(run);
		kind->refuse(reason_of(r), why.text, host);
		return NULL;
	}
	run->over = NULL;
	return run;
}

void
run_script_cancel(struct tool_run *run, enum cancel_reason reason)
{
	run->cancelling = true;
	script_tools_end(&run->tools);
	if (run->execution)
		script_input_end(&run->input, &run->host, execution_id(run->execution));
	if (run->needs) {
		needs_cancel(run->needs, reason);
	} else {
		execution_cancel(run->execution, reason);
		if (run->execution)
			execution_unwatch(run->execution);
	}
	run_script_free_run(run);
}

bool
run_script_uses(struct tool_run *run, struct execution_now *now_r)
{
	return run->execution && execution_uses(run->execution, now_r);
}

/* ---- run_script itself ---- */

static int
run_script_read_arguments(const json_t *json, const struct config *config,
			  struct run_script_arguments *arguments_r, struct why *why_r)
{
	int r = run_script_read(RUN_FOR_SCRIPT, json, config, arguments_r, why_r);

	if (r == 0)
		arguments_r->flags = arguments_r->text_tokens;
	return r;
}

static void
run_script_answer_run(const struct outcome *outcome, unsigned int flags,
		      const struct tool_host *host)
{
	resources_keep(host->config, host->tenant, outcome);
	run_script_answer(outcome, flags, NULL, host);
}

static void
run_script_refuse(const char *reason, const char *text, const struct tool_host *host)
{
	run_script_refuse_as(reason, text, NULL, host);
}

static void
start_in_background(const struct tool_host *host, const json_t *json)
{
	struct why why = { .field = "" };
	const char *job;
	int r = background_start(host, &run_script_tool, json, &job, &why);

	if (r == 0)
		run_script_answer_job(job, NULL, true, NULL, host);
	else if (r < 0)
		run_script_refuse_as(RUN_TOO_MANY_JOBS, why.text, NULL, host);
}

static struct tool_run *
run_script_start_run(const struct tool_host *host, const json_t *json)
{
	static const struct script_tool kind = {
		run_script_read_arguments, run_script_answer_run, run_script_refuse, "run_script" };

	if (background_wanted(json) && host->job) {
		json_auto_t *own = background_arguments(host, json);

		return run_script_start(&kind, host, own);
	}
	if (background_wanted(json)) {
		start_in_background(host, json);
		return NULL;
	}
	return run_script_start(&kind, host, json);
}

static void
run_script_tell_job(struct tool_run *run, const struct tool_host *job, const char *waits,
		    const struct tool_host *caller)
{
	if (run)
		run->host = *job;
	run_script_answer_job(job->job, waits, run && run->execution, NULL, caller);
}

static bool
run_script_waits(struct tool_run *run, char *text_r, size_t size)
{
	return script_tools_waits(&run->tools, text_r, size);
}

void
run_script_reply(struct tool_run *run, const struct tool_reply *replies, size_t n, const char *)
{
	if (run->needs)
		needs_reply(run->needs, replies);
	else
		script_tools_reply_to(&run->tools, run->execution, replies, n);
}

const char *
run_script_once(const json_t *arguments)
{
	const json_t *key = json_object_get(arguments, RUN_KEY_ARGUMENT);

	/* A value that the start will refuse is not a key. */
	return run_script_is_key(key) ? json_string_value(key) : NULL;
}

const struct tool run_script_tool = {
	.name = "run_script",
	.view = VIEW_URI,
	.policy = "run_script",
	.refuse = run_script_refuse,
	.long_status = "the script is running",
	.describe = run_script_describe,
	.start = run_script_start_run,
	.cancel = run_script_cancel,
	.uses = run_script_uses,
	.waits = run_script_waits,
	.answer_job = run_script_tell_job,
	.reply = run_script_reply,
	.once = run_script_once,
	.bind = run_script_bind,
};
