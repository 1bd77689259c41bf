/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the map of arguments.
 * Reads:   values of a client, of any type. */
#include "tools/script/run_script_arguments.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "proto/message.h"
#include "tools/script/run_script.h"
#include "tools/script/schema/run_input.h"
#include "tools/shared/requirements.h"
#include "tools/shared/schema.h"
#include "tools/shared/tiers.h"

#define FOLDER_SHOWN 160		/* bytes of a path that descriptions show */
#define MIB (1024.0 * 1024.0)
#define TEXT_TOKENS_MAX 250000		/* about a megabyte */

#define SCRIPT (1u << RUN_FOR_SCRIPT)	/* the tools that take it */
#define REPL (1u << RUN_FOR_REPL)
#define BOTH (SCRIPT | REPL)

/* ---- limits ---- */

/* The limits that a client can set: its unit, and where it is. */
static const struct limit_row {
	const char *name;
	double unit;
	bool is_wide;			/* 64 bits, not 32 */
	size_t at, asked;		/* in struct limits and struct limits_asked */
} limit_rows[] = {
	{ "timeout_seconds", 1000, false, offsetof(struct limits, wall_ms),
	  offsetof(struct limits_asked, wall_ms) },
	{ "memory_mb", MIB, true, offsetof(struct limits, memory_bytes),
	  offsetof(struct limits_asked, memory_bytes) },
	{ "cpu_seconds", 1000, false, offsetof(struct limits, cpu_ms),
	  offsetof(struct limits_asked, cpu_ms) },
	{ "pids", 1, false, offsetof(struct limits, pids), offsetof(struct limits_asked, pids) },
};

static const struct limit_row *
limit_row_of(const char *name)
{
	for (size_t i = 0; i < sizeof(limit_rows) / sizeof(*limit_rows); i++)
		if (strcmp(limit_rows[i].name, name) == 0)
			return &limit_rows[i];
	return NULL;
}

double
run_script_limit(const struct limits *limits, const char *name)
{
	const struct limit_row *row = limit_row_of(name);
	const void *at = row ? (const char *)limits + row->at : NULL;

	if (!row)
		return 0;
	return (row->is_wide ? (double)*(const uint64_t *)at : *(const uint32_t *)at) / row->unit;
}

/* A value above the cap is left to limits_merge(); a number that its member cannot hold becomes the
 * largest one, which is above every cap. */
static int
read_limit(const struct argument *a, const json_t *value, struct reading *in)
{
	const struct limit_row *row = limit_row_of(a->name);
	struct run_script_arguments *to = in->to;
	void *asked = (char *)&to->asked + row->asked;
	double number = 0;

	if (argument_number(a, value, run_script_limit(&in->config->limits.cap, a->name), &number,
			    in->why) < 0)
		return -EINVAL;
	number *= row->unit;
	if (row->is_wide)
		*(uint64_t *)asked = number >= 0x1p63 ? UINT64_MAX : (uint64_t)number;
	else
		*(uint32_t *)asked = number >= UINT32_MAX ? UINT32_MAX : (uint32_t)number;
	return 0;
}

/* ---- texts ---- */

static int
read_text(const struct argument *a, const json_t *value, const char **text_r, size_t *len_r,
	  struct why *why_r)
{
	if (!json_is_string(value))
		return why_say(why_r, -EINVAL, a->name, "%s must be a string", a->name);
	if ((double)json_string_length(value) > a->most)
		return why_say(why_r, -EINVAL, a->name,
			       "%s has %zu bytes; at most %.0f are allowed", a->name,
			       json_string_length(value), a->most);
	*text_r = json_string_value(value);
	*len_r = json_string_length(value);
	return 0;
}

/* Refuses a script with a NUL, and names its position: such a script would run in part or not as
 * written. */
int
run_script_read_code(const struct argument *a, const json_t *value, struct reading *in)
{
	struct run_script_arguments *to = ARGUMENT_MEMBER(struct run_script_arguments, a, in);
	unsigned int line = 1;
	const char *nul;

	if (read_text(a, value, &to->script, &to->script_len, in->why) < 0)
		return -EINVAL;
	nul = memchr(to->script, '\0', to->script_len);
	if (!nul)
		return 0;
	for (const char *at = to->script; at < nul; at++)
		line += *at == '\n';
	return why_say(in->why, -EINVAL, a->name,
		       "%s holds a NUL at byte %td, in line %u; Python source may not",
		       a->name, nul - to->script, line);
}

static int
read_stdin(const struct argument *a, const json_t *value, struct reading *in)
{
	struct run_script_arguments *to = in->to;

	return read_text(a, value, &to->stdin_text, &to->stdin_len, in->why);
}

static int
read_args(const struct argument *a, const json_t *value, struct reading *in)
{
	struct run_script_arguments *arguments = in->to;
	size_t bytes = 0, n = json_array_size(value);

	if (!json_is_array(value))
		return why_say(in->why, -EINVAL, a->name, "args must be an array of strings");
	if ((double)n > a->most)
		return why_say(in->why, -EINVAL, a->name,
			       "args has %zu items; at most %.0f are allowed", n, a->most);
	arguments->args = xcalloc(n, sizeof(*arguments->args));
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(value, i);
		size_t len = json_string_length(item);

		if (!json_is_string(item) || memchr(json_string_value(item), '\0', len))
			return why_say(in->why, -EINVAL, a->name,
				       "args: item %zu must be a string without NUL", i);
		bytes += len;
		if (len > STRS_ITEM_MAX || bytes > RUN_ARGS_BYTES_MAX)
			return why_say(in->why, -EINVAL, a->name,
				       "args: item %zu is too long: at most %d bytes each and "
				       "%d together are allowed", i, STRS_ITEM_MAX,
				       RUN_ARGS_BYTES_MAX);
		arguments->args[arguments->n_args++] = json_string_value(item);
	}
	return 0;
}

/* A handle is compared, never parsed: this function does not know which handles exist. */
static int
read_word(const struct argument *a, const json_t *value, struct reading *in)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_-.";
	const char *word = json_string_value(value);
	size_t len = json_string_length(value);

	if (!word || (double)len < a->least || (double)len > a->most || strspn(word, plain) != len)
		return why_say(in->why, -EINVAL, a->name,
			       "%s must be a string of 1 to %.0f letters, digits, \"_\", "
			       "\"-\" and \".\"", a->name, a->most);
	*ARGUMENT_MEMBER(const char *, a, in) = word;
	return 0;
}

/* A path as the caller knows it. It is shown in tracebacks and opened nowhere. */
static int
read_file_name(const struct argument *a, const json_t *value, struct reading *in)
{
	const char *name = json_string_value(value);
	size_t len = json_string_length(value);

	if (!name || (double)len < a->least || (double)len > a->most || !quote_is_plain(name, len))
		return why_say(in->why, -EINVAL, a->name, "%s must be a string of 1 to %.0f bytes, "
			       "without control characters", a->name, a->most);
	*ARGUMENT_MEMBER(const char *, a, in) = name;
	return 0;
}

/* A version or a name. */
static int
read_python(const struct argument *a, const json_t *value, struct reading *in)
{
	const char *text = json_string_value(value);

	if (read_word(a, value, in) < 0)
		return -EINVAL;
	if (isdigit((unsigned char)*text) &&
	    (strspn(text, "0123456789.") != strlen(text) || strstr(text, "..") ||
	     text[strlen(text) - 1] == '.'))
		return why_say(in->why, -EINVAL, a->name, "%s must be a version such as 3.11 "
			       "or 3.11.2, or the name of an interpreter", a->name);
	return 0;
}

bool
run_script_is_key(const json_t *value)
{
	const char *at = json_string_value(value);
	size_t len = json_string_length(value);

	return len > 0 && strlen(at) == len && utf8_count(at, len) <= RUN_KEY_MAX;
}

static int
read_key(const struct argument *a, const json_t *value, struct reading *in)
{
	return run_script_is_key(value) ? 0
		: why_say(in->why, -EINVAL, a->name, "%s must be a string of 1 to %.0f characters, "
			  "without NUL", a->name, a->most);
}

/* ---- other values ---- */

static int
read_snapshot(const struct argument *a, const json_t *value, struct reading *in)
{
	struct run_script_arguments *to = in->to;

	to->has_snapshot = true;
	return argument_flag(a, value, in);
}

static int
read_tokens(const struct argument *a, const json_t *value, struct reading *in)
{
	double number = 0;
	int r = argument_number(a, value, a->most, &number, in->why);

	*ARGUMENT_MEMBER(uint32_t, a, in) = (uint32_t)number;
	return r;
}

int
run_script_read_dependencies(const struct argument *a, const json_t *value, struct reading *in)
{
	*ARGUMENT_MEMBER(json_t *, a, in) = json_incref((json_t *)value);
	return requirements_check_list(value, in->why);
}

static int
read_files(const struct argument *a, const json_t *value, struct reading *in)
{
	return run_script_files_read(value, in->config,
				     ARGUMENT_MEMBER(struct run_script_files, a, in), in->why);
}

static int
read_imports(const struct argument *a, const json_t *value, struct reading *in)
{
	if (imports_check_asked(value, in->why) < 0)
		return -EINVAL;
	imports_add_asked(ARGUMENT_MEMBER(struct import_list, a, in), value);
	return 0;
}

static int
read_tier(const struct argument *a, const json_t *value, struct reading *in)
{
	return tier_add_asked(in->config, value, ARGUMENT_MEMBER(struct import_list, a, in),
			      in->why);
}

/* ---- the map ---- */

#define AT(member) offsetof(struct run_script_arguments, member)

const struct argument run_script_argument[] = {
	{ "script", run_script_read_code, .tools = SCRIPT, .most = SCRIPT_MAX,
	  .needed = "a string of Python source" },
	{ "code", run_script_read_code, .tools = REPL, .most = SCRIPT_MAX },
	{ "script_name", read_file_name, AT(script_name), 1, SCRIPT_NAME_MAX, .tools = SCRIPT },
	{ "session", read_word, AT(session), 1, RUN_SESSION_MAX, .tools = REPL },
	{ "stdin", read_stdin, .most = RUN_STDIN_MAX, .tools = SCRIPT },
	{ "args", read_args, .most = ARGS_MAX, .tools = SCRIPT },
	{ "timeout_seconds", read_limit, .least = 0.1, .tools = BOTH },
	{ "memory_mb", read_limit, .least = 16, .whole = true, .tools = BOTH },
	{ "cpu_seconds", read_limit, .least = 0.1, .tools = BOTH },
	{ "pids", read_limit, .least = 1, .whole = true, .tools = BOTH },
	{ "profile", argument_string, AT(profile), .tools = BOTH },
	{ "dependencies", run_script_read_dependencies, AT(dependencies), 0, REQUIREMENTS_MAX,
	  .tools = BOTH },
	{ RUN_KEY_ARGUMENT, read_key, 0, 1, RUN_KEY_MAX, .tools = BOTH },
	{ FILES_ARGUMENT, read_files, AT(files), .tools = BOTH },
	{ "volume", read_word, AT(volume), 1, VOLUME_NAME_MAX, .tools = BOTH },
	/* The caller has already used it: tools/job/background.h. */
	{ BACKGROUND_ARGUMENT, argument_flag, AT(background), .tools = BOTH },
	{ "spill", argument_flag, AT(spill), .tools = BOTH },
	{ "text_tokens", read_tokens, AT(text_tokens), 100, TEXT_TOKENS_MAX, true, .tools = BOTH },
	{ IMPORTS_ARGUMENT, read_imports, AT(imports), 0, IMPORTS_ASKED_MAX, .tools = SCRIPT },
	{ "tier", read_tier, AT(imports), .tools = SCRIPT },
	{ "python_version", read_python, AT(python), 1, RUN_PYTHON_MAX, .tools = SCRIPT },
	{ "checkpoint", read_word, AT(checkpoint), 1, RUN_NAME_MAX, .tools = REPL },
	{ "restore", read_word, AT(restore), 1, RUN_NAME_MAX, .tools = REPL },
	{ "branch", argument_flag, AT(branch), .tools = REPL },
	{ "inspect", argument_flag, AT(inspect), .tools = REPL },
	{ "snapshot", read_snapshot, AT(snapshot), .tools = REPL },
	{ "reset", argument_flag, AT(reset), .tools = REPL },
	{ "close", argument_flag, AT(close), .tools = REPL },
	{ .name = NULL },
};

static const size_t n_arguments = sizeof(run_script_argument) / sizeof(*run_script_argument) - 1;

int
run_script_read(enum run_for tool, const json_t *json, const struct config *config,
		struct run_script_arguments *arguments_r, struct why *why_r)
{
	struct reading in = { tool == RUN_FOR_SCRIPT ? "run_script" : "run_repl", 1u << tool,
			      config, arguments_r, why_r };

	*arguments_r = (struct run_script_arguments){ .n_args = 0 };
	if (argument_map_read(run_script_argument, n_arguments, json, &in) == 0)
		return 0;
	run_script_arguments_done(arguments_r);
	return -EINVAL;
}

void
run_script_arguments_done(struct run_script_arguments *arguments)
{
	free(arguments->args);
	arguments->args = NULL;
	free(arguments->globals);
	arguments->globals = NULL;
	json_decref(arguments->dependencies);
	arguments->dependencies = NULL;
	run_script_files_done(&arguments->files);
	imports_done(&arguments->imports);
}

/* ---- the schema ---- */

char *
run_script_input_schema(enum run_for tool, const struct config *config)
{
	json_t *schema = schema_load(run_input_schema);

	for (const struct argument *a = run_script_argument; a->name; a++) {
		double most = run_script_limit(&config->limits.cap, a->name);

		if (!(a->tools & (1u << tool))) {
			schema_drop(schema, a->name);
		} else if (most > 0) {
			schema_set(schema, a->name, "maximum", schema_number(most));
			schema_set(schema, a->name, "default", schema_number(
				run_script_limit(&config->limits.standard, a->name)));
		}
	}
	if (!config->workspace.volume)
		schema_drop(schema, "volume");
	schema_set_profiles(schema, "profile", config);
	schema_set(schema, FILES_ARGUMENT, "maxItems", json_integer(config->results.inputs));
	schema_say(schema, FILES_ARGUMENT, " At most %u KiB each, %u KiB together.",
		   config->results.input_bytes >> 10, config->results.inputs_bytes >> 10);
	return schema_take(schema);
}

char *
run_script_folder_text(const struct config *config)
{
	const char *path = config->folder.path;
	bool is_plain = path && strlen(path) <= FOLDER_SHOWN;

	if (!path)
		return xstrdup("");
	for (const char *c = path; *c; c++)
		is_plain &= *c >= ' ' && *c <= '~';
	return xasprintf(" but /folder, which is %s of its user%s,", is_plain ? path : "a directory",
			 config->folder.is_writable ? " (changes there stay)" : " (read-only)");
}

const char *
run_script_network_text(const struct config *config)
{
	return config->network.allow.n > 0
		? "of the network what the operator allows, by the proxy in HTTPS_PROXY"
		: "no network";
}
