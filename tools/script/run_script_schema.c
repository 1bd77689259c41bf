/* Runs in: the supervisor.   Owns: nothing.
 * The schema of the arguments for clients, with the limits in force. */
#include "tools/script/run_script_table.h"

#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "tools/script/run_script_files.h"
#include "tools/shared/tiers.h"

static void
write_number(struct jsonout *out, const char *key, double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.10g", number);
	jsonout_member_raw(out, key, text);
}

static void
write_help(struct jsonout *out, const struct config *config, const struct row *row,
	   double standard)
{
	char text[320];

	if (row->kind == KIND_FILES)
		snprintf(text, sizeof(text), "%s At most %u KiB each and %u KiB together.",
			 row->help, config->results.input_bytes >> 10,
			 config->results.inputs_bytes >> 10);
	else if (standard > 0)
		snprintf(text, sizeof(text), "%s %.10g unless given.", row->help, standard);
	else
		snprintf(text, sizeof(text), "%s", row->help);
	jsonout_member_text(out, "description", text);
}

static void
write_profiles(struct jsonout *out, const struct config *config)
{
	jsonout_member_text(out, "type", "string");
	jsonout_key(out, "enum");
	jsonout_open(out, '[');
	for (size_t i = 0; i < config->n_profiles; i++)
		jsonout_text(out, config->profile[i].name,
			     strlen(config->profile[i].name));
	jsonout_close(out, ']');
	jsonout_member_text(out, "default", config->profile[0].name);
}

static void
write_property(struct jsonout *out, const struct config *config, enum field field)
{
	const struct row *row = &run_script_row[field];
	double standard = 0;

	jsonout_key(out, row->name);
	jsonout_open(out, '{');
	switch (row->kind) {
	case KIND_TEXT:
		jsonout_member_text(out, "type", "string");
		break;
	case KIND_TEXTS:
	case KIND_IMPORTS:
		jsonout_member_text(out, "type", "array");
		jsonout_member_raw(out, "items", "{\"type\":\"string\"}");
		write_number(out, "maxItems", row->most);
		break;
	case KIND_NUMBER:
	case KIND_INTEGER:
		jsonout_member_text(out, "type",
				    row->kind == KIND_NUMBER ? "number" : "integer");
		write_number(out, "minimum", row->least);
		write_number(out, "maximum", run_script_limit(&config->limits.cap, field));
		standard = run_script_limit(&config->limits.standard, field);
		break;
	case KIND_PROFILE:
		write_profiles(out, config);
		break;
	case KIND_KEY:
		/* A repeated call has to reach the host that knows the first one. */
		jsonout_member_text(out, "x-mcp-header", "Key");
		jsonout_member_text(out, "type", "string");
		write_number(out, "minLength", row->least);
		write_number(out, "maxLength", row->most);
		break;
	case KIND_FILES:
		run_script_files_schema(config, out);
		break;
	case KIND_SESSION:
		/* A proxy before several hosts can route without reading the body. */
		jsonout_member_text(out, "x-mcp-header", "Session");
		__attribute__((fallthrough));
	case KIND_NAME:
	case KIND_PYTHON:
		jsonout_member_text(out, "type", "string");
		write_number(out, "minLength", row->least);
		write_number(out, "maxLength", row->most);
		jsonout_member_text(out, "pattern", "^[A-Za-z0-9_.-]+$");
		break;
	case KIND_TIER:
		jsonout_member_raw(out, "enum", TIER_NAMES);
		break;
	case KIND_FLAG:
		jsonout_member_text(out, "type", "boolean");
		jsonout_member_bool(out, "default", false);
		break;
	}
	write_help(out, config, row, standard);
	jsonout_close(out, '}');
}

char *
run_script_input_schema(enum run_for tool, const struct config *config)
{
	struct jsonout out;

	jsonout_init(&out);
	jsonout_open(&out, '{');
	jsonout_member_text(&out, "type", "object");
	jsonout_key(&out, "properties");
	jsonout_open(&out, '{');
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (run_script_takes(tool, i))
			write_property(&out, config, (enum field)i);
	jsonout_close(&out, '}');
	jsonout_key(&out, "required");
	jsonout_open(&out, '[');
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (run_script_takes(tool, i) && run_script_row[i].required)
			jsonout_text(&out, run_script_row[i].name, strlen(run_script_row[i].name));
	jsonout_close(&out, ']');
	jsonout_member_bool(&out, "additionalProperties", false);
	jsonout_close(&out, '}');
	return jsonout_take(&out);
}

const char *
run_script_network_text(const struct config *config)
{
	return config->network.allow.n > 0
		? "of the network what the operator allows, through the HTTP proxy that is named "
		  "in its environment"
		: "no network";
}

char *
run_script_limits_text(const struct config *config)
{
	const struct limits *standard = &config->limits.standard;
	const struct limits *cap = &config->limits.cap;
	char *text;
	int n;

	n = asprintf(&text,
		"Limits: %.10g s (timeout_seconds up to %.10g), %.10g MiB of memory "
		"(memory_mb up to %.10g), %u processes and threads (pids up to %u). Of "
		"stdout and of stderr %.10g MiB each are kept: past that the middle is left "
		"out.",
		run_script_limit(standard, FIELD_TIMEOUT), run_script_limit(cap, FIELD_TIMEOUT),
		run_script_limit(standard, FIELD_MEMORY), run_script_limit(cap, FIELD_MEMORY),
		standard->pids, cap->pids, (double)standard->output_bytes / MIB);
	xalloc_check(n < 0 ? NULL : text);
	return text;
}
