/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the checks of validate_code calls.
 * The code is parsed in a jailed worker, and never run. The worker's answer may be any JSON. */
#include "tools/compat/python_sandbox.h"

#include <errno.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "tools/compat/look_code.h"
#include "tools/compat/schema/validate_code_input.h"
#include "tools/compat/schema/validate_code_output.h"
#include "tools/script/run_script.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/environment.h"
#include "tools/shared/inside.h"

#define TEXTS_MAX 64		/* errors, and recommendations */
#define TEXT_MAX 1000		/* bytes of each */

struct tool_run {
	struct tool_host host;
	struct inside *inside;
	size_t lines, characters;
};

/* ---- the answer ---- */

static void
write_texts(struct jsonout *out, const char *key, const json_t *texts)
{
	const json_t *text;
	size_t i;

	jsonout_member_open(out, key, '[');
	json_array_foreach(texts, i, text)
		if (i < TEXTS_MAX && json_is_string(text))
			jsonout_text(out, json_string_value(text),
				     jsonout_fit(json_string_value(text),
						 json_string_length(text), TEXT_MAX));
	jsonout_close(out, ']');
}

static const char *
complexity_of(const json_t *answer)
{
	static const char *const known[] = { "low", "medium", "high" };
	const char *said = json_string_value(json_object_get(answer, "complexity"));

	for (size_t i = 0; said && i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i], said) == 0)
			return known[i];
	return "high";
}

/* Writes members of an open object. The answer has them twice: in "validation", as in the documents
 * of that server, and at its top, as in the last releases of that server. */
static void
write_verdict(struct jsonout *out, bool valid, bool compiles, const json_t *errors)
{
	jsonout_member_bool(out, "valid", valid);
	write_texts(out, "errors", errors);
	jsonout_member_text(out, "message", valid ? "Code passed validation"
			    : compiles ? "Code contains restricted operations"
				       : "Code could not be compiled");
}

static void
validate_code_give(const struct tool_run *run, const json_t *answer)
{
	const json_t *errors = json_object_get(answer, "errors");
	bool compiles = json_is_true(json_object_get(answer, "compiles"));
	bool valid = compiles && json_is_array(errors) && json_array_size(errors) == 0;
	struct tool_writer w;
	struct jsonout *out = &w.structured;

	tool_write(&w, &run->host);
	jsonout_open(out, '{');
	write_verdict(out, valid, compiles, errors);
	jsonout_member_open(out, "validation", '{');
	write_verdict(out, valid, compiles, errors);
	jsonout_close(out, '}');
	jsonout_member_open(out, "analysis", '{');
	jsonout_member_uint(out, "line_count", run->lines);
	jsonout_member_uint(out, "character_count", run->characters);
	jsonout_member_text(out, "estimated_complexity", complexity_of(answer));
	jsonout_close(out, '}');
	write_texts(out, "recommendations", json_object_get(answer, "recommendations"));
	jsonout_close(out, '}');
	tool_give(&w);
}

static void
validate_code_answered(void *arg, const json_t *answer, const struct outcome *outcome)
{
	struct tool_run run = *(struct tool_run *)arg;

	free(arg);
	if (answer)
		validate_code_give(&run, answer);
	else
		tool_refuse(&run.host, outcome->message ? outcome->message
						     : "the code could not be examined");
}

/* ---- the run ---- */

static const struct argument map[] = {
	{ "code", run_script_read_code, .most = SCRIPT_MAX, .needed = "a string of Python source" },
};

/* {"modules": [...]}, then the code. */
static char *
make_input(const struct config *config, const struct run_script_arguments *arguments,
	   size_t *len_r)
{
	struct import_list modules;
	struct jsonout out;
	size_t head;
	char *text;

	python_sandbox_imports(config, false, &modules);
	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_open(&out, "modules", '[');
	for (size_t i = 0; i < modules.n; i++)
		jsonout_text(&out, modules.item[i], strlen(modules.item[i]));
	jsonout_close(&out, ']');
	jsonout_close(&out, '}');
	imports_done(&modules);
	text = jsonout_take_line(&out, &head);
	text = xrealloc(text, head + arguments->script_len + 1);
	memcpy(text + head, arguments->script, arguments->script_len);
	*len_r = head + arguments->script_len;
	text[*len_r] = '\0';
	return text;
}

static struct tool_run *
validate_code_start(const struct tool_host *host, const json_t *json)
{
	struct run_script_arguments arguments = { .script = NULL };
	struct inside_probe probe = { .program = look_code };
	struct why why = { .field = "" };
	struct reading in = { "validate_code", .to = &arguments, .why = &why };
	struct tool_run *run;
	own_mem char *input = NULL;
	int r = argument_map_read(map, 1, json, &in);

	if (r == 0)
		r = environment_profile(host, NULL, &probe.profile, &why);
	if (r < 0) {
		tool_refuse(host, why.text);
		return NULL;
	}
	run = xcalloc(1, sizeof(*run));
	run->host = *host;
	run->lines = 1;
	for (size_t i = 0; i < arguments.script_len; i++)
		run->lines += arguments.script[i] == '\n';
	run->characters = utf8_count(arguments.script, arguments.script_len);
	probe.input = input = make_input(host->config, &arguments, &probe.input_len);
	run = inside_run(host, &probe, validate_code_answered, run, &run->inside);
	return run;
}

static void
validate_code_cancel(struct tool_run *run, enum cancel_reason reason)
{
	inside_cancel(run->inside, reason);
	free(run);
}

const struct tool validate_code_tool = {
	.name = "validate_code",
	.says = {
		.title = "Validate Python code",
		.icon = ICON_CHECK,
		.description =
			"Validate Python code without executing it: its syntax, and whether it "
			"imports or reaches modules that are not allowed here, with lines.",
		.input_schema = validate_code_input_schema,
		.output_schema = validate_code_output_schema,
		.read_only = true,
		.idempotent = true,
	},
	.start = validate_code_start,
	.cancel = validate_code_cancel,
};
