/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any type.
 * Runs and checks are those of run_script, validate_script and check_environment; this file has
 * other arguments and other answers. */
#include "tools/shared/tools.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "policy/config.h"
#include "policy/rules.h"
#include "tools/check/check_environment.h"
#include "tools/check/validate_script.h"
#include "tools/compat/schema/execute_python_input.h"
#include "tools/compat/schema/no_input.h"
#include "tools/compat/schema/text_output.h"
#include "tools/compat/schema/validate_input.h"
#include "tools/packages/install.h"
#include "tools/packages/missing.h"
#include "tools/script/run_script.h"
#include "tools/script/script_tools.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/environment.h"
#include "tools/shared/readable.h"
#include "tools/shared/requirements.h"
#include "tools/shared/schema.h"

/* The bounds in force: the set's own, within the general ones. */
static uint32_t
most_seconds(const struct config *config)
{
	uint32_t cap = config->limits.cap.wall_ms / 1000;

	return cap < config->exec_sandbox.max_timeout ? cap
						      : config->exec_sandbox.max_timeout;
}

static uint32_t
default_seconds(const struct config *config)
{
	uint32_t most = most_seconds(config);

	return most < config->exec_sandbox.default_timeout
		       ? most : config->exec_sandbox.default_timeout;
}

/* ---- answers ---- */

/* Answers. whole: the text for programs; NULL: they get the same text. */
static void
exec_sandbox_give(struct tool_writer *w, const char *whole, size_t len)
{
	fflush(w->text);
	if (w->for_programs) {
		jsonout_open(&w->structured, '{');
		jsonout_member_string(&w->structured, "result", whole ? whole : w->written,
				      whole ? len : w->answer.text_len);
		jsonout_close(&w->structured, '}');
	}
	tool_give(w);
}

/* An answer holds its text twice. Escapes may make it longer than clients accept: then its end
 * is left out. */
static void
say_block(FILE *to, const char *title, const char *text, size_t len)
{
	size_t keep = jsonout_fit(text, len, RUN_ANSWER_MAX / 4 - 65536);

	if (len == 0)
		return;
	fprintf(to, "--- %s ---\n", title);
	fwrite(text, 1, keep, to);
	if (keep < len)
		fprintf(to, "\n... [%zu bytes left out]", len - keep);
	fputc('\n', to);
}

static void
exec_sandbox_say_end(FILE *to, int exit_code, uint64_t duration_ms)
{
	fprintf(to, "--- exit_code: %d ---\n--- duration_ms: %llu ---", exit_code,
		(unsigned long long)duration_ms);
}

static void
say_outcome(FILE *to, const struct outcome *outcome, const char *advice,
	    const struct reader *reader)
{
	static const char *const names[STREAM_COUNT] = { "stdout", "stderr" };

	/* reader NULL: without a bound. */
	for (int i = 0; i < STREAM_COUNT; i++) {
		const struct outcome_stream *stream = &outcome->stream[i];
		const struct readable readable = { .text = stream->text, .len = stream->len,
						   .name = names[i] };
		bool shared = outcome->stream[!i].len > 0;
		size_t len;
		char *text;

		if (!reader || !reader->tokens) {
			say_block(to, names[i], stream->text, stream->len);
			continue;
		}
		text = readable_make(&readable, reader_share(reader, shared ? 2 : 1), reader, &len);
		say_block(to, names[i], text, len);
		free(text);
	}
	/* The cause of the stop, if the script cannot know it. */
	if (outcome->status != OUTCOME_OK && outcome->status != OUTCOME_ERROR)
		fprintf(to, "--- %s: %s ---\n", outcome_status_name(outcome->status),
			outcome->message ? outcome->message : "");
	if (outcome->n_tool_calls > 0) {
		fputs("--- tool_calls ---\n", to);
		run_calls_say(outcome, to);
	}
	if (*advice)
		fprintf(to, "--- advice: %s ---\n", advice);
	exec_sandbox_say_end(to, outcome->exit_code, outcome->duration_ms);
	if (outcome->status == OUTCOME_TIMEOUT)
		fputs("\n--- timed_out: true ---", to);
}

/* As in that server, a script that fails is a normal answer: not isError. */
static void
exec_sandbox_answer(const struct outcome *outcome, unsigned int, const struct tool_host *host)
{
	const struct reader reader = { .host = host, .execution_id = outcome->id,
				       .tokens = host->config->exec_sandbox.text_tokens };
	bool ran = outcome_ran(outcome->status);
	char advice[MISSING_ADVICE] = "";
	own_mem char *whole = NULL;
	struct tool_writer w;
	FILE *to;
	size_t len;

	missing_advise(host, outcome, false, advice);
	to = xalloc_check(open_memstream(&whole, &len));
	say_outcome(to, outcome, advice, NULL);
	xalloc_check(fclose(to) == 0 ? whole : NULL);
	tool_write(&w, host);
	w.answer.is_error = w.answer.not_run = !ran;
	say_outcome(w.text, outcome, advice, &reader);
	exec_sandbox_give(&w, whole, len);
}

/* Wrong arguments are an error of the call; a missing package or session is an error of the
 * script. */
static void
exec_sandbox_refuse(const char *reason, const char *text, const struct tool_host *host)
{
	bool wrong = strcmp(reason, RUN_DEPENDENCY_UNAVAILABLE) != 0 &&
		     strcmp(reason, RUN_PYTHON_UNAVAILABLE) != 0 &&
		     strcmp(reason, TOOL_APPROVAL_PENDING) != 0;
	struct tool_writer w;

	tool_write(&w, host);
	w.answer.is_error = wrong;
	w.answer.not_run = true;
	if (wrong) {
		fputs(text, w.text);
	} else {
		say_block(w.text, "stderr", text, strlen(text));
		exec_sandbox_say_end(w.text, 1, 0);
	}
	exec_sandbox_give(&w, NULL, 0);
}

/* ---- execute_python ---- */

/* As in that server, a number beyond its bounds is set to the bound. */
static int
read_timeout(const struct argument *a, const json_t *value, struct reading *in)
{
	struct run_script_arguments *to = in->to;
	uint32_t most = most_seconds(in->config);
	double seconds = json_number_value(value);

	if (!json_is_number(value) || seconds != floor(seconds))
		return why_say(in->why, -EINVAL, a->name,
			       "timeout_seconds must be an integer from 1 to %u", most);
	seconds = seconds < 1 ? 1 : seconds > most ? most : seconds;
	to->asked.wall_ms = (uint32_t)seconds * 1000;
	return 0;
}

/* The requirement on Python that the configuration adds to scripts; "": none. */
static void
required_python(const struct config *config, char *text_r, size_t size)
{
	const char *version = config->exec_sandbox.python_version;

	*text_r = '\0';
	if (version)
		snprintf(text_r, size, "==%s.*", version);
}

static int
exec_sandbox_read_arguments(const json_t *json, const struct config *config,
			    struct run_script_arguments *to, struct why *why_r)
{
	static const struct argument map[] = {
		{ "script", run_script_read_code, .most = SCRIPT_MAX,
		  .needed = "a string of Python source" },
		{ "dependencies", run_script_read_dependencies,
		  .at = offsetof(struct run_script_arguments, dependencies) },
		{ "timeout_seconds", read_timeout, .least = 1, .whole = true },
	};
	struct reading in = { execute_python_tool.name, 0, config, to, why_r };

	to->asked.wall_ms = default_seconds(config) * 1000;
	to->asked.output_bytes = config->exec_sandbox.max_output_bytes;
	to->dependencies_replace = true;
	required_python(config, to->requires_python, sizeof(to->requires_python));
	return argument_map_read(map, 3, json, &in);
}

static struct tool_run *
start_script(const struct tool_host *host, const json_t *json)
{
	static const struct script_tool kind = {
		exec_sandbox_read_arguments, exec_sandbox_answer, exec_sandbox_refuse, NULL,
	};

	return run_script_start(&kind, host, json);
}

static void
describe_execute(const struct config *config, struct tool_description *description_r)
{
	uint32_t standard = default_seconds(config), most = most_seconds(config);
	json_t *schema = schema_load(execute_python_input_schema);
	struct why why;
	char *description = xasprintf(
		"Execute a Python script in a fresh, isolated process and return its stdout, "
		"stderr, exit code and duration as text. The script may declare what it needs in "
		"inline metadata (PEP 723, a comment block '# /// script'); the dependencies "
		"argument adds to that. %s Only what is printed comes back. Of stdout and stderr %llu bytes "
		"each are kept; a script is stopped after timeout_seconds (1-%u, default %u).\n"
		"Example: {\"script\": \"print('hello')\"}",
		install_is_configured(config, &why) == 0
		? "What is missing of it is installed first, if policy lets it be; else nothing is "
		  "run, and the answer says why."
		: "It runs when all of it is installed, else the answer names what is missing.",
		(unsigned long long)config->exec_sandbox.max_output_bytes, most, standard);

	schema_set(schema, "timeout_seconds", "maximum", json_integer(most));
	schema_set(schema, "timeout_seconds", "default", json_integer(standard));
	*description_r = (struct tool_description){
		.name = execute_python_tool.name,
		.title = "Execute a Python script",
		.icon = ICON_RUN,
		.hint =
			"execute_python runs a whole script in a fresh process: nothing survives "
			"the call, and only what it prints comes back.",
		.description = description,
		.input_schema = schema_take(schema),
		.output_schema = xstrdup(text_output_schema),
		.task = TOOL_TASK_MAY,
	};
}

const struct tool execute_python_tool = {
	.name = "execute_python",
	.policy = "run_script",
	.refuse = exec_sandbox_refuse,
	.long_status = "the script is running",
	.describe = describe_execute,
	.start = start_script,
	.cancel = run_script_cancel,
	.uses = run_script_uses,
	.reply = run_script_reply,
};

/* ---- check_environment ---- */

static void
answer_environment(const struct tool_host *host, const char *profile, bool,
		   const json_t *environment)
{
	const struct config *config = host->config;
	const char *key, *before = "";
	struct engine_enforcement how;
	struct tool_writer w;
	json_t *package;

	engine_enforcement(host->engine, &how);
	tool_write(&w, host);
	fprintf(w.text, "Python version: %s\nuv: not used\nPlatform: %s %s\n"
		"Sandbox backend: native\nSandbox status: %s\nDefault timeout: %us\n"
		"Max timeout: %us\nMax output: %llu bytes\n%s"
		"Cache warming: not needed\nProfile: %s\nPackages: ",
		environment_python(environment), environment_marker(environment, "platform_system"),
		environment_marker(environment, "platform_machine"), how.text, default_seconds(config),
		most_seconds(config),
		(unsigned long long)config->exec_sandbox.max_output_bytes,
		policy_tool(config, "run_script") == POLICY_APPROVE
			? "Approval: a person approves each script\n" : "", profile);
	json_object_foreach(json_object_get(environment, "packages"), key, package) {
		fprintf(w.text, "%s%s %s", before,
			member_text(package, "name"), member_text(package, "version"));
		before = ", ";
	}
	exec_sandbox_give(&w, NULL, 0);
}

static struct tool_run *
start_environment(const struct tool_host *host, const json_t *json)
{
	struct why why = { .field = "" };
	char required[RUN_PYTHON_MAX + sizeof("==.*")];
	const char *profile;

	required_python(host->config, required, sizeof(required));
	if (json_object_size(json) > 0)
		why_say(&why, -EINVAL, "", "check_environment takes no arguments");
	else if (environment_profile(host, NULL, &profile, &why) == 0)
		return check_environment_start(host, profile, false, *required ? required : NULL,
					       answer_environment);
	tool_refuse(host, why.text);
	return NULL;
}

const struct tool exec_sandbox_environment_tool = {
	.name = "check_environment",
	.says = {
		.title = "Check the execution environment",
		.icon = ICON_ENVIRONMENT,
		.description =
			"Check the execution environment: Python version, platform, how scripts "
			"are isolated, limits, and the installed packages.",
		.input_schema = no_input_schema,
		.output_schema = text_output_schema,
		.read_only = true,
		.idempotent = true,
	},
	.start = start_environment,
	.cancel = check_environment_cancel,
};

/* ---- validate_script ---- */

static void
say_errors(FILE *to, const struct findings *findings)
{
	fputs("INVALID: ", to);
	for (size_t i = 0; i < findings->n_errors; i++) {
		const struct finding_error *error = &findings->error[i];

		if (i)
			fputc('\n', to);
		if (error->line)
			fprintf(to, "line %u: ", error->line);
		fputs(error->message, to);
	}
}

static void
say_warnings(FILE *to, const struct tool_host *host, const struct findings *findings)
{
	const char *before = "\nwarnings:";
	char text[MISSING_ADVICE];

	if (findings->n_missing || !findings->python_fits) {
		fputs(before, to);
		before = "";
	}
	if (!findings->python_fits)
		fprintf(to, "\n  - this Python is %s", environment_python(findings->environment));
	for (size_t i = 0; findings->n_missing && i < findings->list.n; i++)
		if (findings->missing[i])
			fprintf(to, "\n  - not installed: %s", findings->list.item[i].written);
	for (size_t i = 0; i < findings->n_imports; i++) {
		if (!validate_script_lacks(host, findings, i, text))
			continue;
		fprintf(to, "%s\n  - line %u: %s", before, findings->import[i].line, text);
		before = "";
	}
}

static void
answer_findings(const struct tool_host *host, const char *,
		const struct findings *findings)
{
	struct tool_writer w;

	tool_write(&w, host);
	if (findings->n_errors) {
		say_errors(w.text, findings);
		exec_sandbox_give(&w, NULL, 0);
		return;
	}
	fputs("VALID\n", w.text);
	if (findings->requires_python)
		fprintf(w.text, "requires-python: %s\n", findings->requires_python);
	if (findings->list.n)
		fprintf(w.text, "dependencies (%zu):", findings->list.n);
	else
		fputs("dependencies: none", w.text);
	for (size_t i = 0; i < findings->list.n; i++)
		fprintf(w.text, "\n  - %s", findings->list.item[i].written);
	say_warnings(w.text, host, findings);
	exec_sandbox_give(&w, NULL, 0);
}

static struct tool_run *
start_validate(const struct tool_host *host, const json_t *json)
{
	return validate_script_start(host, json, true, answer_findings);
}

const struct tool exec_sandbox_validate_tool = {
	.name = "validate_script",
	.says = {
		.title = "Validate a Python script",
		.icon = ICON_CHECK,
		.description =
			"Validate a Python script without executing it: its syntax, its inline "
			"metadata (PEP 723) and dependencies. The answer is VALID or INVALID, and "
			"what was found.",
		.input_schema = validate_input_schema,
		.output_schema = text_output_schema,
		.read_only = true,
		.idempotent = true,
	},
	.start = start_validate,
	.cancel = validate_script_cancel,
};
