/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any type, and outcomes whose texts a script wrote.
 * Runs are those of run_script; this file has other arguments and other answers. */
#include "tools/compat/python_sandbox.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "policy/config.h"
#include "tools/compat/schema/execute_code_input.h"
#include "tools/compat/schema/execute_code_output.h"
#include "tools/script/run_script.h"
#include "tools/script/script_tools.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/readable.h"
#include "tools/shared/schema.h"

#define MIB (1024 * 1024)
#define MEMORY_LEAST (16 * (uint64_t)MIB)	/* the same as in run_script */

/* A script's answer holds each stream once as structured content and once as text that is itself
 * JSON, so escapes are escaped again. */
#define STREAM_COST_MAX (RUN_ANSWER_MAX / 8)

/* The property of a call that its answer depends on. */
enum { QUIET = 1 };				/* capture_output was false */

/* The exception of worker/imports.py. */
#define NOT_ALLOWED "ImportNotAllowed"

/* ---- settings in force: python_sandbox.h ---- */

uint32_t
python_sandbox_most_seconds(const struct config *config)
{
	uint32_t cap = config->limits.cap.wall_ms / 1000;

	return cap < config->python_sandbox.max_timeout ? cap
							: config->python_sandbox.max_timeout;
}

uint32_t
python_sandbox_default_seconds(const struct config *config)
{
	uint32_t most = python_sandbox_most_seconds(config);

	return most < config->python_sandbox.default_timeout
		       ? most : config->python_sandbox.default_timeout;
}

uint64_t
python_sandbox_default_memory(const struct config *config)
{
	uint64_t cap = config->limits.cap.memory_bytes;

	return cap < config->python_sandbox.memory_limit ? cap
							 : config->python_sandbox.memory_limit;
}

void
python_sandbox_memory_text(uint64_t bytes, char *text, size_t size)
{
	if (bytes % MIB == 0)
		snprintf(text, size, "%llum", (unsigned long long)bytes / MIB);
	else
		snprintf(text, size, "%llub", (unsigned long long)bytes);
}

bool
python_sandbox_has(const struct config *config, bool container, enum tier tier)
{
	if (config->python_sandbox.allowed_imports.n > 0)
		return false;
	switch (tier) {
	case TIER_BASIC:
		return true;
	case TIER_DATA_SCIENCE:
		return container || config->python_sandbox.data_science;
	case TIER_NETWORK:
		return config->python_sandbox.network;
	case TIER_FILESYSTEM:
		return config->python_sandbox.filesystem;
	case TIER_COUNT:
		break;
	}
	xassert(false);
}

void
python_sandbox_imports(const struct config *config, bool container,
		       struct import_list *list_r)
{
	*list_r = (struct import_list){ .n = 0 };
	imports_add(list_r, &config->python_sandbox.allowed_imports);
	for (enum tier tier = TIER_BASIC; tier < TIER_COUNT; tier++)
		if (python_sandbox_has(config, container, tier))
			imports_add(list_r, tier_modules(config, tier));
}

/* ---- execute_code: arguments ---- */

/* The arguments of one call while they are read. */
struct asked {
	struct run_script_arguments *to;
	const json_t *allowed_imports;		/* NULL: the set in force */
	bool container, capture;
};

static int
sandbox_read_code(const struct argument *a, const json_t *value, struct reading *in)
{
	struct reading inner = *in;

	inner.to = ((struct asked *)in->to)->to;
	return run_script_read_code(a, value, &inner);
}

static int
sandbox_read_timeout(const struct argument *a, const json_t *value, struct reading *in)
{
	struct asked *asked = in->to;
	uint32_t most = python_sandbox_most_seconds(in->config);
	struct argument bounded = *a;
	double seconds = 0;

	bounded.most = most;
	if (argument_number(&bounded, value, most, &seconds, in->why) < 0)
		return -EINVAL;
	asked->to->asked.wall_ms = (uint32_t)seconds * 1000;
	return 0;
}

/* Reads a size in docker's form: a number, then k, m or g, then b or ib. Returns the end of the
 * size; text itself if it does not begin with a number. */
static const char *
sandbox_read_size(const char *text, double *bytes_r)
{
	static const char units[] = "bkmg";
	const char *at = text, *letter;
	double part = 1;

	*bytes_r = 0;
	for (; isdigit((unsigned char)*at); at++)
		*bytes_r = *bytes_r * 10 + (*at - '0');
	if (at == text)
		return text;
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++)
			*bytes_r += (*at - '0') * (part /= 10);
	letter = *at ? strchr(units, tolower((unsigned char)*at)) : NULL;
	if (letter > units) {
		*bytes_r *= (double)(UINT64_C(1) << (10 * (letter - units)));
		at++;
		if (tolower((unsigned char)*at) == 'i' && tolower((unsigned char)at[1]) == 'b')
			at++;
	}
	return tolower((unsigned char)*at) == 'b' ? at + 1 : at;
}

static int
read_memory(const struct argument *a, const json_t *value, struct reading *in)
{
	struct asked *asked = in->to;
	uint64_t cap = in->config->limits.cap.memory_bytes;
	const char *text = json_string_value(value), *end;
	double bytes = 0;

	if (json_is_null(value))
		return 0;
	end = text ? sandbox_read_size(text, &bytes) : NULL;
	if (!text || *end || (size_t)(end - text) != json_string_length(value) ||
	    bytes < MEMORY_LEAST || bytes > (double)cap)
		return why_say(in->why, -EINVAL, a->name, "memory_limit must be a string such "
			       "as \"256m\", from 16m to %llum", (unsigned long long)cap / MIB);
	asked->to->asked.memory_bytes = (uint64_t)bytes;
	return 0;
}

static int
read_imports(const struct argument *a, const json_t *value, struct reading *in)
{
	if (json_is_null(value))
		return 0;
	*ARGUMENT_MEMBER(const json_t *, a, in) = value;
	return imports_check_asked(value, in->why);
}

/* A call can only remove modules. An empty list counts as none: it is the argument's default in
 * that server. */
static void
choose_imports(const struct asked *asked, const struct config *config)
{
	struct import_list in_force;
	const json_t *name;
	size_t i;

	python_sandbox_imports(config, asked->container, &in_force);
	if (json_array_size(asked->allowed_imports) == 0) {
		asked->to->imports = in_force;
		return;
	}
	imports_add_asked(&asked->to->imports, NULL);
	json_array_foreach(asked->allowed_imports, i, name)
		imports_narrow(&in_force, json_string_value(name), &asked->to->imports);
	imports_done(&in_force);
}

static const struct argument map[] = {
	{ "code", sandbox_read_code, .most = SCRIPT_MAX, .needed = "a string of Python source" },
	{ "timeout", sandbox_read_timeout, .least = 1, .whole = true },
	{ "capture_output", argument_flag, .at = offsetof(struct asked, capture) },
	{ "allowed_imports", read_imports, .at = offsetof(struct asked, allowed_imports) },
	{ "use_container", argument_flag, .at = offsetof(struct asked, container) },
	{ "memory_limit", read_memory, .at = 0 },
};

static int
sandbox_read_arguments(const json_t *json, const struct config *config,
		       struct run_script_arguments *to, struct why *why_r)
{
	struct asked asked = { .to = to, .capture = true };
	struct reading in = { execute_code_tool.name, 0, config, &asked, why_r };

	to->asked.wall_ms = python_sandbox_default_seconds(config) * 1000;
	to->asked.memory_bytes = python_sandbox_default_memory(config);
	to->asked.output_bytes = config->python_sandbox.max_output_bytes;
	to->tell_names = true;
	if (argument_map_read(map, sizeof(map) / sizeof(*map), json, &in) < 0)
		return -EINVAL;
	to->flags = asked.capture ? 0 : QUIET;
	choose_imports(&asked, config);
	return 0;
}

/* ---- execute_code: answers ---- */

/* Writes a text in its share of the reader's tokens, the n-th part. */
static void
sandbox_write_text(struct jsonout *out, const char *key, const struct readable *text,
		   unsigned int n, const struct reader *reader)
{
	size_t share = reader_share(reader, n), len;
	own_mem char *made = NULL;

	jsonout_key(out, key);
	if (share == 0 || text->len <= share) {
		jsonout_text(out, text->text, text->len);
		return;
	}
	made = readable_make(text, share, reader, &len);
	jsonout_text(out, made, len);
}

static void
write_part(struct jsonout *out, const char *name, const char *text, const struct reader *reader)
{
	const struct readable part = { .text = text, .len = strlen(text), .name = name };

	sandbox_write_text(out, name, &part, 8, reader);
}

static void
write_streams(struct jsonout *out, const struct outcome *outcome, bool quiet,
	      const struct reader *reader)
{
	static const char *const names[STREAM_COUNT] = { "stdout", "stderr" };

	for (int i = 0; i < STREAM_COUNT; i++) {
		const struct outcome_stream *stream = &outcome->stream[i];
		struct readable text = { .text = stream->text, .len = 0, .name = names[i] };

		if (!quiet)
			text.len = jsonout_fit(stream->text, stream->len, STREAM_COST_MAX);
		sandbox_write_text(out, names[i], &text, outcome->stream[!i].len > 0 ? 4 : 2,
				   reader);
	}
}

/* As JSON if the value has a JSON form, else as its repr. JSON that is too long for a reader is
 * a text. */
static void
sandbox_write_result(struct jsonout *out, const struct outcome *outcome,
		     const struct reader *reader)
{
	const char *json = outcome->value_json;
	size_t len = json ? strlen(json) : 0, share = reader_share(reader, 4);
	bool is_json = json && run_script_is_json(json, len);
	const char *shown = is_json ? json : outcome->value_repr;

	if (is_json && (share == 0 || len <= share)) {
		jsonout_key(out, "result");
		jsonout_raw(out, json, len);
	} else if (shown) {
		const struct readable text = { .text = shown, .len = strlen(shown), .name = "result" };

		sandbox_write_text(out, "result", &text, 4, reader);
	} else {
		jsonout_member_text(out, "result", NULL);
	}
}

/* Copies an object. A note replaces each value that a reader's share has no room for. */
static json_t *
values_that_fit(json_t *values, const struct reader *reader)
{
	size_t share = reader_share(reader, 8), used = 0;
	json_t *fit = xalloc_check(json_object()), *value;
	const char *name;

	json_object_foreach(values, name, value) {
		size_t len = json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);

		if (share > 0 && used + len > share) {
			value = json_string("(too long to be shown here)");
		} else {
			used += len;
			json_incref(value);
		}
		xalloc_check(json_object_set_new(fit, name, value) == 0 ? fit : NULL);
	}
	return fit;
}

/* The script's process wrote the names: they are checked like those of any stranger. */
static void
write_names(struct jsonout *out, const struct outcome *outcome, const struct reader *reader)
{
	const char *text = outcome->names;
	json_auto_t *told = text && run_script_is_json(text, strlen(text))
		? json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL) : NULL;
	json_auto_t *fit = NULL;
	const json_t *name;
	size_t i;

	jsonout_member_open(out, "variables", '[');
	json_array_foreach(json_object_get(told, "names"), i, name)
		if (json_is_string(name))
			jsonout_text(out, json_string_value(name), json_string_length(name));
	jsonout_close(out, ']');
	fit = values_that_fit(json_object_get(told, "values"), reader);
	jsonout_key(out, "variable_values");
	jsonrpc_write_value(out, fit);
}

static void
sandbox_write_lines(struct jsonout *out, const char *text, uint32_t line)
{
	char prefix[32] = "";

	jsonout_member_open(out, "validation_errors", '[');
	if (line && strncmp(text, "Line ", 5) != 0)
		snprintf(prefix, sizeof(prefix), "Line %u: ", line);
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		char *one;

		len = strcspn(text, "\n");
		one = xasprintf("%s%.*s", prefix, (int)len, text);
		jsonout_text(out, one, strlen(one));
		free(one);
	}
	jsonout_close(out, ']');
}

static void
write_failure(struct jsonout *out, const struct outcome *outcome, const struct reader *reader)
{
	const char *type = outcome->status == OUTCOME_ERROR ? outcome->error_type : NULL;
	const char *message = outcome->error_message ? outcome->error_message : "";

	if (type && strcmp(type, NOT_ALLOWED) == 0) {
		jsonout_member_text(out, "error", "Code contains restricted operations");
		sandbox_write_lines(out, message, outcome->error_line);
	} else if (type) {
		/* str() of an exception may be empty. */
		if (!*message)
			message = type;
		write_part(out, "error", message, reader);
	} else if (outcome->status == OUTCOME_TIMEOUT) {
		jsonout_member_text(out, "error", "Execution timeout");
		jsonout_member_uint(out, "timeout", outcome->limits->wall_ms / 1000);
	} else {
		jsonout_member_text(out, "error", outcome->message ? outcome->message : "");
	}
	if (type && outcome->error_traceback)
		write_part(out, "traceback", outcome->error_traceback, reader);
}

static void
write_outcome(struct jsonout *out, const struct outcome *outcome, unsigned int flags,
	      const struct reader *reader)
{
	bool success = outcome->status == OUTCOME_OK;

	jsonout_open(out, '{');
	jsonout_member_bool(out, "success", success);
	jsonout_member_text(out, "execution_id", outcome->id);
	if (success)
		sandbox_write_result(out, outcome, reader);
	else
		write_failure(out, outcome, reader);
	write_streams(out, outcome, flags & QUIET, reader);
	jsonout_member_real(out, "execution_time", (double)outcome->duration_ms / 1000);
	if (success)
		write_names(out, outcome, reader);
	run_calls_write(outcome, out);
	/* Each script runs in a jail, so this is always true. */
	jsonout_member_bool(out, "use_container", true);
	jsonout_close(out, '}');
}

/* As in that server, code that fails is a normal answer: not isError. */
static void
sandbox_answer(const struct outcome *outcome, unsigned int flags, const struct tool_host *host)
{
	const struct reader all = { .host = host };
	const struct reader reader = { .host = host, .execution_id = outcome->id,
				       .tokens = host->config->python_sandbox.text_tokens };
	bool ran = outcome_ran(outcome->status);
	struct tool_writer w;
	struct jsonout text;

	tool_write(&w, host);
	w.answer.is_error = w.answer.not_run = !ran;
	if (w.for_programs)
		write_outcome(&w.structured, outcome, flags, &all);
	jsonout_init(&text);
	write_outcome(&text, outcome, flags, &reader);
	fwrite(text.at, 1, text.len, w.text);
	jsonout_done(&text);
	tool_give(&w);
}

static void
sandbox_refuse(const char *, const char *text, const struct tool_host *host)
{
	struct tool_writer w;

	tool_write(&w, host);
	w.answer.is_error = w.answer.not_run = true;
	jsonout_open(&w.structured, '{');
	jsonout_member_bool(&w.structured, "success", false);
	jsonout_member_text(&w.structured, "error", text);
	jsonout_close(&w.structured, '}');
	tool_give(&w);
}

/* ---- execute_code: the tool ---- */

static char *
sandbox_make_input_schema(const struct config *config)
{
	json_t *schema = schema_load(execute_code_input_schema);
	char memory[32];

	python_sandbox_memory_text(python_sandbox_default_memory(config), memory, sizeof(memory));
	schema_set(schema, "timeout", "maximum", json_integer(python_sandbox_most_seconds(config)));
	schema_set(schema, "timeout", "default",
		   json_integer(python_sandbox_default_seconds(config)));
	schema_set(schema, "memory_limit", "default", json_string(memory));
	schema_set(schema, "memory_limit", "description",
		   json_sprintf("Such as 256m, at most %lldm.",
				(long long)(config->limits.cap.memory_bytes / MIB)));
	return schema_take(schema);
}

static char *
make_output_schema(const struct config *config)
{
	json_t *schema = schema_load(execute_code_output_schema);

	run_script_add_calls(schema, config);
	return schema_take(schema);
}

static void
sandbox_describe_execute(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = execute_code_tool.name,
		.title = "Execute Python code",
		.icon = ICON_RUN,
		.hint = "execute_code runs code in a fresh process, where only the modules that "
			"get_sandbox_info lists can be imported; nothing survives the call.",
		.description = xstrdup(
			"Execute Python code in a secure sandbox. Returns stdout, stderr, the names of "
			"its variables, and as result the variable of that name or the value of the last "
			"line. Only certain modules can be imported; get_sandbox_info lists them, and "
			"validate_code tells what code would be refused for.\n"
			"Example: {\"code\": \"result = 2 + 2\\nprint(f'The answer is: {result}')\"} "
			"gives result 4 and stdout \"The answer is: 4\\n\"."),
		.input_schema = sandbox_make_input_schema(config),
		.output_schema = make_output_schema(config),
		.task = TOOL_TASK_MAY,
	};
}

static struct tool_run *
start_execute(const struct tool_host *host, const json_t *json)
{
	static const struct script_tool kind = {
		sandbox_read_arguments, sandbox_answer, sandbox_refuse, NULL,
	};

	return run_script_start(&kind, host, json);
}

const struct tool execute_code_tool = {
	.name = "execute_code",
	.policy = "run_script",
	.refuse = sandbox_refuse,
	.long_status = "the script is running",
	.describe = sandbox_describe_execute,
	.start = start_execute,
	.cancel = run_script_cancel,
	.uses = run_script_uses,
	.reply = run_script_reply,
};
