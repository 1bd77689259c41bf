/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the table of arguments.
 * Reads:   values of a client, of any type. */
#include "tools/script/run_script_table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "proto/message.h"
#include "tools/job/background.h"
#include "tools/shared/requirements.h"
#include "tools/shared/tiers.h"

#define TEXT_TOKENS_MAX 250000		/* about a megabyte */

#define SCRIPT (1u << RUN_FOR_SCRIPT)	/* the tools that take it */
#define REPL (1u << RUN_FOR_REPL)
#define BOTH (SCRIPT | REPL)

const struct row run_script_row[FIELD_COUNT] = {
	[FIELD_SCRIPT] = { "script", SCRIPT, KIND_TEXT, true, 0, SCRIPT_MAX },
	[FIELD_CODE] = { "code", REPL, KIND_TEXT, false, 0, SCRIPT_MAX },
	[FIELD_SCRIPT_NAME] = { "script_name", SCRIPT, KIND_FILE_NAME, false, 1, SCRIPT_NAME_MAX },
	[FIELD_SESSION] = { "session", REPL, KIND_SESSION, false, 1, RUN_SESSION_MAX },
	[FIELD_STDIN] = { "stdin", SCRIPT, KIND_TEXT, false, 0, RUN_STDIN_MAX },
	[FIELD_ARGS] = { "args", SCRIPT, KIND_TEXTS, false, 0, ARGS_MAX },
	[FIELD_TIMEOUT] = { "timeout_seconds", BOTH, KIND_NUMBER, false, 0.1, 0 },
	[FIELD_MEMORY] = { "memory_mb", BOTH, KIND_INTEGER, false, 16, 0 },
	[FIELD_CPU] = { "cpu_seconds", BOTH, KIND_NUMBER, false, 0.1, 0 },
	[FIELD_PIDS] = { "pids", BOTH, KIND_INTEGER, false, 1, 0 },
	[FIELD_PROFILE] = { "profile", BOTH, KIND_PROFILE, false, 0, 0 },
	[FIELD_DEPENDENCIES] = { "dependencies", BOTH, KIND_TEXTS, false, 0, REQUIREMENTS_MAX },
	[FIELD_KEY] = { RUN_KEY_ARGUMENT, BOTH, KIND_KEY, false, 1, RUN_KEY_MAX },
	[FIELD_FILES] = { FILES_ARGUMENT, BOTH, KIND_FILES, false, 0, INPUTS_MAX },
	[FIELD_VOLUME] = { "volume", BOTH, KIND_NAME, false, 1, VOLUME_NAME_MAX },
	[FIELD_BACKGROUND] = { BACKGROUND_ARGUMENT, BOTH, KIND_FLAG, false, 0, 0 },
	[FIELD_SPILL] = { "spill", BOTH, KIND_FLAG, false, 0, 0 },
	[FIELD_TEXT_TOKENS] = { "text_tokens", BOTH, KIND_INTEGER, false, 100, TEXT_TOKENS_MAX },
	[FIELD_IMPORTS] = { IMPORTS_ARGUMENT, SCRIPT, KIND_IMPORTS, false, 0, IMPORTS_ASKED_MAX },
	[FIELD_TIER] = { "tier", SCRIPT, KIND_TIER, false, 0, 0 },
	[FIELD_PYTHON] = { "python_version", SCRIPT, KIND_PYTHON, false, 1, RUN_PYTHON_MAX },
	[FIELD_CHECKPOINT] = { "checkpoint", REPL, KIND_NAME, false, 1, RUN_NAME_MAX },
	[FIELD_RESTORE] = { "restore", REPL, KIND_NAME, false, 1, RUN_NAME_MAX },
	[FIELD_BRANCH] = { "branch", REPL, KIND_FLAG, false, 0, 0 },
	[FIELD_INSPECT] = { "inspect", REPL, KIND_FLAG, false, 0, 0 },
	[FIELD_SNAPSHOT] = { "snapshot", REPL, KIND_FLAG, false, 0, 0 },
	[FIELD_RESET] = { "reset", REPL, KIND_FLAG, false, 0, 0 },
	[FIELD_CLOSE] = { "close", REPL, KIND_FLAG, false, 0, 0 },
};

double
run_script_limit(const struct limits *limits, enum field field)
{
	switch (field) {
	case FIELD_TIMEOUT:
		return limits->wall_ms / 1000.0;
	case FIELD_MEMORY:
		return (double)limits->memory_bytes / MIB;
	case FIELD_CPU:
		return limits->cpu_ms / 1000.0;
	case FIELD_PIDS:
		return limits->pids;
	case FIELD_SCRIPT:
	case FIELD_CODE:
	case FIELD_SCRIPT_NAME:
	case FIELD_SESSION:
	case FIELD_STDIN:
	case FIELD_ARGS:
	case FIELD_PROFILE:
	case FIELD_DEPENDENCIES:
	case FIELD_KEY:
	case FIELD_FILES:
	case FIELD_VOLUME:
	case FIELD_BACKGROUND:
	case FIELD_SPILL:
	case FIELD_TEXT_TOKENS:
	case FIELD_IMPORTS:
	case FIELD_TIER:
	case FIELD_PYTHON:
	case FIELD_CHECKPOINT:
	case FIELD_RESTORE:
	case FIELD_BRANCH:
	case FIELD_INSPECT:
	case FIELD_SNAPSHOT:
	case FIELD_RESET:
	case FIELD_CLOSE:
	case FIELD_COUNT:
		break;
	}
	return 0;
}

/* ---- reading ---- */

static int
read_text(const struct row *row, const json_t *value, const char **text_r, size_t *len_r,
	  struct why *why_r)
{
	if (!json_is_string(value))
		return why_say(why_r, -EINVAL, row->name, "%s must be a string", row->name);
	if ((double)json_string_length(value) > row->most)
		return why_say(why_r, -EINVAL, row->name,
			       "%s has %zu bytes; at most %.0f are allowed", row->name,
			       json_string_length(value), row->most);
	*text_r = json_string_value(value);
	*len_r = json_string_length(value);
	return 0;
}

/* Refuses a script with a NUL, and names its position: such a script would run in part or not as
 * written. */
static int
check_script(const char *field, const char *script, size_t len, struct why *why_r)
{
	const char *nul = memchr(script, '\0', len);
	unsigned int line = 1;

	if (!nul)
		return 0;
	for (const char *at = script; at < nul; at++)
		line += *at == '\n';
	return why_say(why_r, -EINVAL, field,
		       "%s holds a NUL at byte %td, in line %u; Python source may not",
		       field, nul - script, line);
}

int
run_script_read_script(const char *field, const json_t *value,
		       struct run_script_arguments *arguments, struct why *why_r)
{
	const struct row row = { .name = field, .most = SCRIPT_MAX };

	if (read_text(&row, value, &arguments->script, &arguments->script_len, why_r) < 0)
		return -EINVAL;
	return check_script(field, arguments->script, arguments->script_len, why_r);
}

static int
read_args(const json_t *value, struct run_script_arguments *arguments, struct why *why_r)
{
	size_t bytes = 0, n = json_array_size(value);

	if (!json_is_array(value))
		return why_say(why_r, -EINVAL, "args", "args must be an array of strings");
	if (n > ARGS_MAX)
		return why_say(why_r, -EINVAL, "args",
			       "args has %zu items; at most %d are allowed", n, ARGS_MAX);
	arguments->args = xcalloc(n, sizeof(*arguments->args));
	for (size_t i = 0; i < n; i++) {
		const json_t *item = json_array_get(value, i);
		size_t len = json_string_length(item);

		if (!json_is_string(item) || memchr(json_string_value(item), '\0', len))
			return why_say(why_r, -EINVAL, "args",
				       "args: item %zu must be a string without NUL", i);
		bytes += len;
		if (len > STRS_ITEM_MAX || bytes > RUN_ARGS_BYTES_MAX)
			return why_say(why_r, -EINVAL, "args",
				       "args: item %zu is too long: at most %d bytes each and "
				       "%d together are allowed", i, STRS_ITEM_MAX,
				       RUN_ARGS_BYTES_MAX);
		arguments->args[arguments->n_args++] = json_string_value(item);
	}
	return 0;
}

/* A value above the cap is left to limits_merge(). */
static int
arguments_read_number(const struct row *row, const json_t *value, double cap, double *number_r,
		      struct why *why_r)
{
	double number = json_number_value(value);
	bool integral = row->kind == KIND_INTEGER;

	if (!json_is_number(value) || (integral && number != floor(number)) ||
	    number < row->least)
		return why_say(why_r, -EINVAL, row->name,
			       "%s must be %s from %.10g to %.10g", row->name, integral ? "an integer" : "a number", row->least, cap);
	*number_r = number;
	return 0;
}

/* number * unit, or the largest value if that overflows: it is above every cap. */
static uint32_t
scaled_u32(double number, double unit)
{
	return number * unit >= UINT32_MAX ? UINT32_MAX : (uint32_t)(number * unit);
}

static uint64_t
scaled_u64(double number, double unit)
{
	return number * unit >= 0x1p63 ? UINT64_MAX : (uint64_t)(number * unit);
}

static int
read_limit(enum field field, const json_t *value, const struct limits *cap,
	   struct limits_asked *asked, struct why *why_r)
{
	double number = 0;
	int r = arguments_read_number(&run_script_row[field], value, run_script_limit(cap, field),
				      &number, why_r);

	if (r < 0)
		return r;
	if (field == FIELD_TIMEOUT)
		asked->wall_ms = scaled_u32(number, 1000);
	else if (field == FIELD_CPU)
		asked->cpu_ms = scaled_u32(number, 1000);
	else if (field == FIELD_PIDS)
		asked->pids = scaled_u32(number, 1);
	else
		asked->memory_bytes = scaled_u64(number, MIB);
	return 0;
}

/* A handle is compared, never parsed: this function does not know which handles exist. */
static int
read_word(const struct row *row, const json_t *value, const char **word_r,
	  struct why *why_r)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_-.";
	const char *word = json_string_value(value);
	size_t len = json_string_length(value);

	if (!word || (double)len < row->least || (double)len > row->most ||
	    strspn(word, plain) != len)
		return why_say(why_r, -EINVAL, row->name,
			       "%s must be a string of 1 to %.0f letters, digits, \"_\", "
			       "\"-\" and \".\"", row->name, row->most);
	*word_r = word;
	return 0;
}

/* A path as the caller knows it. It is shown in tracebacks and opened nowhere. */
static int
read_file_name(const struct row *row, const json_t *value, const char **name_r, struct why *why_r)
{
	const char *name = json_string_value(value);
	size_t len = json_string_length(value);

	if (!name || (double)len < row->least || (double)len > row->most ||
	    !quote_is_plain(name, len))
		return why_say(why_r, -EINVAL, row->name, "%s must be a string of 1 to %.0f bytes, "
			       "without control characters", row->name, row->most);
	*name_r = name;
	return 0;
}

/* A version or a name. */
static int
read_python(const struct row *row, const json_t *value, const char **python_r,
	    struct why *why_r)
{
	const char *text;
	int r = read_word(row, value, python_r, why_r);

	if (r < 0)
		return r;
	text = *python_r;
	if (isdigit((unsigned char)*text) &&
	    (strspn(text, "0123456789.") != strlen(text) || strstr(text, "..") ||
	     text[strlen(text) - 1] == '.'))
		return why_say(why_r, -EINVAL, row->name, "%s must be a version such as 3.11 "
			       "or 3.11.2, or the name of an interpreter", row->name);
	return 0;
}

static int
read_flag(const struct row *row, const json_t *value, bool *flag_r, struct why *why_r)
{
	if (!json_is_boolean(value))
		return why_say(why_r, -EINVAL, row->name, "%s must be true or false",
			       row->name);
	*flag_r = json_is_true(value);
	return 0;
}

static int
read_tokens(const struct row *row, const json_t *value, uint32_t *tokens_r, struct why *why_r)
{
	double number = 0;

	if (arguments_read_number(row, value, row->most, &number, why_r) < 0)
		return -EINVAL;
	if (number > row->most)
		return why_say(why_r, -EINVAL, row->name, "%s must be at most %.0f", row->name,
			       row->most);
	*tokens_r = (uint32_t)number;
	return 0;
}

static int
read_profile(const json_t *value, const char **profile_r, struct why *why_r)
{
	const char *name = json_string_value(value);

	if (!name || strlen(name) != json_string_length(value))
		return why_say(why_r, -EINVAL, "profile",
			       "profile must be a string without NUL");
	*profile_r = name;
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
arguments_read_field(enum field field, const json_t *value, const struct config *config,
				struct run_script_arguments *to, struct why *why_r)
{
	const struct row *row = &run_script_row[field];

	switch (field) {
	case FIELD_SCRIPT:
	case FIELD_CODE:
		return run_script_read_script(row->name, value, to, why_r);
	case FIELD_SCRIPT_NAME:
		return read_file_name(row, value, &to->script_name, why_r);
	case FIELD_SESSION:
		return read_word(row, value, &to->session, why_r);
	case FIELD_VOLUME:
		return read_word(row, value, &to->volume, why_r);
	case FIELD_CHECKPOINT:
		return read_word(row, value, &to->checkpoint, why_r);
	case FIELD_RESTORE:
		return read_word(row, value, &to->restore, why_r);
	case FIELD_BRANCH:
		return read_flag(row, value, &to->branch, why_r);
	case FIELD_INSPECT:
		return read_flag(row, value, &to->inspect, why_r);
	case FIELD_SNAPSHOT:
		to->has_snapshot = true;
		return read_flag(row, value, &to->snapshot, why_r);
	case FIELD_RESET:
		return read_flag(row, value, &to->reset, why_r);
	case FIELD_CLOSE:
		return read_flag(row, value, &to->close, why_r);
	case FIELD_STDIN:
		return read_text(row, value, &to->stdin_text, &to->stdin_len, why_r);
	case FIELD_ARGS:
		return read_args(value, to, why_r);
	case FIELD_TIMEOUT:
	case FIELD_MEMORY:
	case FIELD_CPU:
	case FIELD_PIDS:
		return read_limit(field, value, &config->limits.cap, &to->asked, why_r);
	case FIELD_PROFILE:
		return read_profile(value, &to->profile, why_r);
	case FIELD_DEPENDENCIES:
		to->dependencies = json_incref((json_t *)value);
		return requirements_check_list(value, why_r);
	case FIELD_FILES:
		return run_script_files_read(value, config, &to->files, why_r);
	case FIELD_KEY:
		if (run_script_is_key(value))
			return 0;
		return why_say(why_r, -EINVAL, row->name,
			       "%s must be a string of 1 to %d characters, without NUL",
			       row->name, RUN_KEY_MAX);
	case FIELD_BACKGROUND:
		/* The caller has already used it: tools/job/background.h. */
		return read_flag(row, value, &to->background, why_r);
	case FIELD_SPILL:
		return read_flag(row, value, &to->spill, why_r);
	case FIELD_TEXT_TOKENS:
		return read_tokens(row, value, &to->text_tokens, why_r);
	case FIELD_IMPORTS:
		if (imports_check_asked(value, why_r) < 0)
			return -EINVAL;
		imports_add_asked(&to->imports, value);
		return 0;
	case FIELD_TIER:
		return tier_add_asked(config, value, &to->imports, why_r);
	case FIELD_PYTHON:
		return read_python(row, value, &to->python, why_r);
	case FIELD_COUNT:
		break;
	}
	return why_say(why_r, -EINVAL, "", "internal: no such field");
}

bool
run_script_takes(enum run_for tool, size_t field)
{
	return run_script_row[field].tools & (1u << tool);
}

/* FIELD_COUNT: the tool has no such argument. */
static size_t
arguments_find_field(enum run_for tool, const char *key)
{
	size_t field = 0;

	while (field < FIELD_COUNT &&
	       (!run_script_takes(tool, field) || strcmp(run_script_row[field].name, key) != 0))
		field++;
	return field;
}

/* The message lists the known arguments, so that a model can correct itself at once. */
static int
arguments_refuse_unknown(enum run_for tool, const char *key, struct why *why_r)
{
	char known[512];
	size_t len = 0;

	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (run_script_takes(tool, i))
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
						len ? ", " : "", run_script_row[i].name);
	return why_say(why_r, -EINVAL, key, "%.60s is not an argument of %s; there are %s",
		       key, tool == RUN_FOR_SCRIPT ? "run_script" : "run_repl", known);
}

int
run_script_read(enum run_for tool, const json_t *json, const struct config *config,
		struct run_script_arguments *arguments_r, struct why *why_r)
{
	struct run_script_arguments arguments = { .n_args = 0 };
	const char *key;
	json_t *value;
	int r = 0;

	json_object_foreach((json_t *)json, key, value) {
		size_t field = arguments_find_field(tool, key);

		r = field == FIELD_COUNT
			? arguments_refuse_unknown(tool, key, why_r)
			: arguments_read_field((enum field)field, value, config, &arguments, why_r);
		if (r < 0)
			break;
	}
	if (r == 0 && !arguments.script && tool == RUN_FOR_SCRIPT)
		r = why_say(why_r, -EINVAL, "script", "script is required: a string of Python source");
	if (r < 0)
		run_script_arguments_done(&arguments);
	else
		*arguments_r = arguments;
	return r;
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
