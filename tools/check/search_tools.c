/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: searches.
 * Reads:   values of a client, of any type; the answer of a worker, which other servers' texts have
 * made: its form is checked. */
#include "tools/shared/tools.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "mcp/jsonrpc.h"
#include "policy/config.h"
#include "proto/message.h"
#include "tools/check/look_tools.h"
#include "tools/check/schema/search_tools_input.h"
#include "tools/check/schema/search_tools_output.h"
#include "tools/shared/environment.h"
#include "tools/shared/inside.h"
#include "tools/shared/other_tools.h"

#define QUERY_MAX 4000		/* bytes: 1000 characters */
#define LIMIT_MAX 100
#define LIMIT_DEFAULT 10

struct tool_run {
	struct tool_host host;
	struct inside *inside;
};

/* ---- the answer ---- */

static bool
is_found(const json_t *one)
{
	const char *key;
	const json_t *value;

	if (!json_is_string(json_object_get(one, "name")))
		return false;
	json_object_foreach((json_t *)one, key, value)
		if (!json_is_string(value) || (strcmp(key, "name") != 0 &&
					       strcmp(key, "description") != 0 &&
					       strcmp(key, "usage") != 0))
			return false;
	return true;
}

static bool
is_answer(const json_t *answer)
{
	const json_t *found = json_object_get(answer, "tools"), *one;
	size_t i;

	if (!json_is_array(found) || json_object_size(answer) != 1)
		return false;
	json_array_foreach(found, i, one)
		if (!is_found(one))
			return false;
	return true;
}

static void
search_tools_give(const struct tool_host *host, const json_t *answer)
{
	const json_t *found = json_object_get(answer, "tools"), *one;
	struct tool_writer w;
	size_t i;

	tool_write(&w, host);
	json_array_foreach(found, i, one) {
		const char *text = member_text(one, "description");
		const char *usage = member_text(one, "usage");

		if (usage)
			fprintf(w.text, "%s\n\n", usage);
		else
			fprintf(w.text, "%s%s%s\n", member_text(one, "name"),
				text && *text ? ": " : "", text ? text : "");
	}
	if (json_array_size(found) == 0)
		fputs("No tool fits.\n", w.text);
	if (w.for_programs)
		jsonrpc_write_value(&w.structured, answer);
	tool_give(&w);
}

static void
on_looked(void *arg, const json_t *answer, const struct outcome *outcome)
{
	struct tool_run run = *(struct tool_run *)arg;
	const char *error = member_text(answer, "error");

	free(arg);
	if (is_answer(answer))
		search_tools_give(&run.host, answer);
	else
		tool_refuse(&run.host, error ? error : outcome->status != OUTCOME_OK &&
						       outcome->message ? outcome->message
						     : "the tools could not be searched");
}

/* ---- the run ---- */

static bool
is_detail(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && (strcmp(text, "name") == 0 || strcmp(text, "summary") == 0 ||
			strcmp(text, "full") == 0);
}

static int
search_tools_read_field(const char *key, json_t *value, json_t *asked, struct why *why_r)
{
	if (!json_object_get(asked, key))
		return why_say(why_r, -EINVAL, key, "%.60s is not an argument of search_tools; "
			       "there are query, detail, server, limit", key);
	if (json_is_null(value))
		return 0;
	if (strcmp(key, "query") == 0 &&
	    (!json_is_string(value) || json_string_length(value) > QUERY_MAX))
		return why_say(why_r, -EINVAL, key, "query must be a string of at most %d bytes",
			       QUERY_MAX);
	if (strcmp(key, "detail") == 0 && !is_detail(value))
		return why_say(why_r, -EINVAL, key, "detail must be name, summary or full");
	if (strcmp(key, "server") == 0 &&
	    (!json_is_string(value) || json_string_length(value) > TOOL_SERVER_MAX))
		return why_say(why_r, -EINVAL, key, "server must be the name of a server");
	if (strcmp(key, "limit") == 0 &&
	    (!json_is_integer(value) || json_integer_value(value) < 1 ||
	     json_integer_value(value) > LIMIT_MAX))
		return why_say(why_r, -EINVAL, key, "limit must be an integer from 1 to %d",
			       LIMIT_MAX);
	json_object_set(asked, key, value);
	return 0;
}

static int
search_tools_read_arguments(const json_t *json, json_t *asked, struct why *why_r)
{
	const char *key;
	json_t *value;
	int r = 0;

	if (!json_object_get(json, "query"))
		return why_say(why_r, -EINVAL, "query", "query is required: a string");
	json_object_foreach((json_t *)json, key, value)
		if (r == 0)
			r = search_tools_read_field(key, value, asked, why_r);
	return r;
}

static struct tool_run *
search_tools_start(const struct tool_host *host, const json_t *json)
{
	json_t *asked = xalloc_check(json_pack("{s:s,s:s,s:n,s:i}", "query", "", "detail",
					       "summary", "server", "limit", LIMIT_DEFAULT));
	struct inside_probe probe = { .program = look_tools, .lists = LISTS_AWAITED };
	struct why why = { .field = "" };
	struct tool_run *run;
	own_mem char *input = NULL;
	int r = -ENOENT;

	if (other_tools_any(host->config))
		r = search_tools_read_arguments(json, asked, &why);
	else
		why_say(&why, r, "query", "there is no other server whose tools you may call");
	if (r == 0)
		r = environment_profile(host, NULL, &probe.profile, &why);
	input = xalloc_check(json_dumps(asked, JSON_COMPACT));
	json_decref(asked);
	if (r < 0) {
		tool_refuse(host, why.text);
		return NULL;
	}
	probe.input = input;
	probe.input_len = strlen(input);
	run = xcalloc(1, sizeof(*run));
	run->host = *host;
	return inside_run(&run->host, &probe, on_looked, run, &run->inside);
}

static void
search_tools_cancel(struct tool_run *run, enum cancel_reason reason)
{
	inside_cancel(run->inside, reason);
	free(run);
}

const struct tool search_tools_tool = {
	.name = "search_tools",
	.is_there = other_tools_any,
	.says = {
		.title = "Search tools for scripts",
		.icon = ICON_ENVIRONMENT,
		.description = "Find tools for scripts: tools.SERVER.TOOL(argument=value).",
		.input_schema = search_tools_input_schema,
		.output_schema = search_tools_output_schema,
		.read_only = true,
		.idempotent = true,
	},
	.start = search_tools_start,
	.cancel = search_tools_cancel,
};
