/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the checks of validate_script calls.
 * The script is parsed in a jailed worker, and never run. */
#include "tools/check/validate_script.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "proto/message.h"
#include "tools/check/schema/validate_script_input.h"
#include "tools/check/schema/validate_script_output.h"
#include "tools/shared/argument_map.h"
#include "tools/packages/found.h"
#include "tools/packages/install.h"
#include "tools/shared/environment.h"

struct tool_run {
	struct tool_host host;
	struct requirements_check *check;
	json_t *arguments;
	const char *profile;
	validate_script_answer *answer;
};

/* ---- the answer ---- */

static void
validate_script_write_list(struct jsonout *out, const char *key, const struct findings *findings,
			   bool missing_only)
{
	jsonout_member_open(out, key, '[');
	for (size_t i = 0; i < findings->list.n; i++) {
		const char *written = findings->list.item[i].written;

		if (!missing_only || (findings->missing && findings->missing[i]))
			jsonout_text(out, written, strlen(written));
	}
	jsonout_close(out, ']');
}

/* ---- what is missing ---- */

/* What becomes of a requirement that the machine does not meet. */
static const char *
verdict_of(const struct config *config, const struct requirement *requirement)
{
	enum policy_verdict verdict = packages_expect(config, requirement->name);
	struct why why;

	if (install_is_configured(config, &why) < 0)
		return "not installed, and nothing can be installed here";
	if (verdict == POLICY_DENY)
		return "not installed, and policy does not let it be installed";
	return verdict == POLICY_APPROVE
	       ? "not installed: a person has to approve it, unless it was approved before"
	       : "not installed: it is installed when the script runs";
}

static bool
would_need_approval(const struct config *config, const struct findings *findings)
{
	struct why why;

	if (install_is_configured(config, &why) < 0)
		return false;
	for (size_t i = 0; findings->n_missing && i < findings->list.n; i++)
		if (findings->missing[i] &&
		    packages_expect(config, findings->list.item[i].name) == POLICY_APPROVE)
			return true;
	return false;
}

bool
validate_script_lacks(const struct tool_host *host, const struct findings *findings, size_t i,
		      char text_r[MISSING_ADVICE])
{
	const char *module = findings->import[i].module;

	/* The requirements of a script that is wrong are not compared with the machine. */
	for (size_t k = 0; k < findings->list.n; k++)
		if (missing_is_package_of(host->config, findings->list.item[k].name, module))
			return false;
	if (found_has(host, module))
		return false;
	missing_advise_module(host, module, text_r);
	return true;
}

static bool
is_valid(const struct tool_host *host, const struct findings *findings)
{
	char text[MISSING_ADVICE];

	if (findings->n_errors > 0)
		return false;
	for (size_t i = 0; i < findings->n_imports; i++)
		if (validate_script_lacks(host, findings, i, text))
			return false;
	return true;
}

static void
write_error(struct jsonout *out, unsigned int line, const char *message)
{
	jsonout_open(out, '{');
	jsonout_member_known(out, "line", line, line);
	jsonout_member_text(out, "message", message);
	jsonout_close(out, '}');
}

static void
validate_script_write_structured(struct jsonout *out, const struct tool_host *host,
				 const struct findings *findings)
{
	char text[MISSING_ADVICE];

	jsonout_open(out, '{');
	jsonout_member_bool(out, "valid", is_valid(host, findings));
	jsonout_member_bool(out, "found", findings->found);
	validate_script_write_list(out, "dependencies", findings, false);
	jsonout_member_text(out, "requires_python", findings->requires_python);
	jsonout_member_open(out, "errors", '[');
	for (size_t i = 0; i < findings->n_errors; i++)
		write_error(out, findings->error[i].line, findings->error[i].message);
	for (size_t i = 0; i < findings->n_imports; i++)
		if (validate_script_lacks(host, findings, i, text))
			write_error(out, findings->import[i].line, text);
	jsonout_close(out, ']');
	jsonout_member_bool(out, "would_need_approval",
			    would_need_approval(host->config, findings));
	validate_script_write_list(out, "missing", findings, true);
	jsonout_member_bool(out, "python_fits", findings->python_fits);
	jsonout_close(out, '}');
}

static void
validate_script_say(FILE *to, const struct tool_host *host, const struct findings *findings)
{
	char text[MISSING_ADVICE];

	for (size_t i = 0; i < findings->n_errors; i++) {
		if (findings->error[i].line)
			fprintf(to, "line %u: ", findings->error[i].line);
		fprintf(to, "%s\n", findings->error[i].message);
	}
	for (size_t i = 0; i < findings->n_imports; i++)
		if (validate_script_lacks(host, findings, i, text))
			fprintf(to, "line %u: %s\n", findings->import[i].line, text);
	if (is_valid(host, findings))
		fputs("The script is valid.\n", to);
	if (!findings->found)
		fputs("It has no metadata block.\n", to);
	if (findings->requires_python)
		fprintf(to, "requires-python: %s%s\n", findings->requires_python,
			findings->python_fits ? "" : " (this Python does not fit)");
	for (size_t i = 0; i < findings->list.n; i++) {
		const struct requirement *requirement = &findings->list.item[i];

		fprintf(to, "dependency: %s", requirement->written);
		if (findings->missing)
			fprintf(to, " (%s)", findings->missing[i]
				? verdict_of(host->config, requirement) : "installed");
		fputc('\n', to);
	}
}

static void
validate_script_answer_findings(const struct tool_host *host, const char *,
				const struct findings *findings)
{
	struct tool_writer w;

	tool_write(&w, host);
	validate_script_say(w.text, host, findings);
	if (w.for_programs)
		validate_script_write_structured(&w.structured, host, findings);
	tool_give(&w);
}

static void
validate_script_on_found(void *arg, const struct findings *findings)
{
	struct tool_run run = *(struct tool_run *)arg;
	const struct outcome *trouble = findings->trouble;

	free(arg);
	if (!trouble)
		run.answer(&run.host, run.profile, findings);
	else
		tool_refuse(&run.host, trouble->message ? trouble->message
						     : "the environment could not be examined");
	json_decref(run.arguments);
}

/* ---- the run ---- */

static int
read_script(const struct argument *a, const json_t *value, struct reading *in)
{
	struct requirements_probe *to = in->to;

	if (!json_is_string(value) || json_string_length(value) > SCRIPT_MAX)
		return why_say(in->why, -EINVAL, a->name, "script must be a string of at most %d bytes",
			       SCRIPT_MAX);
	to->script = json_string_value(value);
	to->script_len = json_string_length(value);
	return 0;
}

static int
read_dependencies(const struct argument *a, const json_t *value, struct reading *in)
{
	*ARGUMENT_MEMBER(const json_t *, a, in) = value;
	return requirements_check_list(value, in->why);
}

static const struct argument map[] = {
	{ "script", read_script, .needed = "a string of Python source" },
	{ "dependencies", read_dependencies, .at = offsetof(struct requirements_probe, dependencies) },
};

struct tool_run *
validate_script_start(const struct tool_host *host, const json_t *json,
		      bool dependencies_replace, validate_script_answer *answer)
{
	struct requirements_probe probe = {
		.compile = true,
		.dependencies_replace = dependencies_replace,
	};
	struct why why = { .field = "" };
	struct reading in = { "validate_script", .to = &probe, .why = &why };
	struct tool_run *run;
	int r = argument_map_read(map, 2, json, &in);

	if (r == 0)
		r = environment_profile(host, NULL, &probe.profile, &why);
	if (r < 0) {
		tool_refuse(host, why.text);
		return NULL;
	}
	run = xcalloc(1, sizeof(*run));
	run->host = *host;
	run->answer = answer;
	run->profile = probe.profile;
	run->arguments = json_incref((json_t *)json);
	/* Compiling takes a worker, so the result never comes from within this call. */
	r = requirements_start(host, &probe, validate_script_on_found, run, &run->check, &why);
	if (r == 0)
		return run;
	json_decref(run->arguments);
	free(run);
	tool_refuse(host, why.text);
	return NULL;
}

void
validate_script_cancel(struct tool_run *run, enum cancel_reason reason)
{
	requirements_cancel(run->check, reason);
	json_decref(run->arguments);
	free(run);
}

static struct tool_run *
validate_script_start_run(const struct tool_host *host, const json_t *json)
{
	return validate_script_start(host, json, false, validate_script_answer_findings);
}

const struct tool validate_script_tool = {
	.name = "validate_script",
	.says = {
		.title = "Check a Python script",
		.icon = ICON_CHECK,
		.description =
			"Check a Python script without running it: syntax, names, imports, its "
			"metadata block (PEP 723), what is missing here.",
		.input_schema = validate_script_input_schema,
		.output_schema = validate_script_output_schema,
		.read_only = true,
		.idempotent = true,
	},
	.start = validate_script_start_run,
	.cancel = validate_script_cancel,
};
