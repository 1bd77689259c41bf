/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any type.
 * Runs are those of run_script; this set has other arguments, and its answers are in
 * run_python_answer.c. */
#include "tools/compat/run_python.h"

#include <errno.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "proto/message.h"
#include "tools/compat/schema/run_python_code_input.h"
#include "tools/script/run_script.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/environment.h"

#define NAME_MAX_BYTES 256		/* of a variable */

/* ---- arguments ---- */

static bool
is_keyword(const char *name)
{
	static const char *const keywords[] = {
		"False", "None", "True", "and", "as", "assert", "async", "await", "break",
		"class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
		"from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
		"pass", "raise", "return", "try", "while", "with", "yield",
	};

	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
		if (strcmp(keywords[i], name) == 0)
			return true;
	return false;
}

/* Letters of all scripts are let through: Python knows which of them a name may have. */
static bool
is_variable(const char *name)
{
	static const char begin[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_BYTES || is_keyword(name))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!((unsigned char)name[i] >= 0x80 || strchr(begin, name[i]) ||
		      (i > 0 && strchr("0123456789", name[i]))))
			return false;
	return true;
}

/* Names such as __builtins__ are the interpreter's own. */
static bool
is_special(const char *name)
{
	return strncmp(name, "__", 2) == 0;
}

static int
read_variables(const struct argument *a, const json_t *value, struct reading *in)
{
	struct run_script_arguments *to = in->to;
	const char *name;
	json_t *one;
	size_t len;

	if (!json_is_object(value))
		return why_say(in->why, -EINVAL, a->name,
			       "global_variables must be an object of variables by their names");
	if (json_object_size(value) == 0)
		return 0;
	json_object_foreach((json_t *)value, name, one)
		if (!is_variable(name) || is_special(name))
			return why_say(in->why, -EINVAL, a->name,
				       "global_variables: \"%.60s\" cannot be the name of a "
				       "variable", name);
	to->globals = xalloc_check(json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17)));
	len = strlen(to->globals);
	return len <= GLOBALS_MAX ? 0
		: why_say(in->why, -EINVAL, a->name,
			  "global_variables takes %zu bytes as JSON; at most %d are allowed", len,
			  GLOBALS_MAX);
}

static int
run_python_read_arguments(const json_t *json, const struct config *config,
			  struct run_script_arguments *to, struct why *why_r)
{
	static const struct argument map[] = {
		{ "python_code", run_script_read_code, .most = SCRIPT_MAX,
		  .needed = "a string of Python source" },
		{ "global_variables", read_variables, .most = GLOBALS_MAX },
	};
	struct reading in = { "run_python_code", 0, config, to, why_r };
	const struct config_list *list = &config->run_python.dependencies;

	to->script_name = "main.py";
	to->dependencies = list->n > 0 ? xalloc_check(json_array()) : NULL;
	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(to->dependencies, xalloc_check(json_string(list->item[i])));
	return argument_map_read(map, 2, json, &in);
}

/* ---- the tool ---- */

static char *
run_python_make_description(const struct config *config)
{
	const struct config_list *list = &config->run_python.dependencies;
	char *text = NULL;
	size_t len;
	FILE *to = xalloc_check(open_memstream(&text, &len));

	fprintf(to, "Tool to execute Python code and return stdout, stderr, and return value.\n\n"
		"The code may be async, and the value on the last line will be returned as the "
		"return value.\n\n"
		"The code will be executed with Python %s.\n", environment_version());
	for (size_t i = 0; i < list->n; i++)
		fprintf(to, "%s%s", i ? ", " : "\nInstalled packages: ", list->item[i]);
	xalloc_check(fclose(to) == 0 ? text : NULL);
	return text;
}

static void
run_python_describe(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = run_python_code_tool.name,
		.title = "Run Python code",
		.icon = ICON_RUN,
		.hint = "run_python_code runs Python code in a fresh process: nothing survives the "
			"call.",
		.description = run_python_make_description(config),
		.input_schema = xstrdup(run_python_code_input_schema),
		.open_world = config->network.allow.n > 0,
		.task = TOOL_TASK_MAY,
	};
}

static struct tool_run *
run_python_start(const struct tool_host *host, const json_t *json)
{
	static const struct script_tool kind = { run_python_read_arguments, run_python_answer,
						 run_python_refuse, NULL };

	return run_script_start(&kind, host, json);
}

const struct tool run_python_code_tool = {
	.name = "run_python_code",
	.policy = "run_script",
	.refuse = run_python_refuse,
	.long_status = "the code is running",
	.describe = run_python_describe,
	.start = run_python_start,
	.cancel = run_script_cancel,
	.uses = run_script_uses,
	.reply = run_script_reply,
};
