/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   calls as the engine has noted them: names and arguments are a script's, bounded. */
#include "tools/script/script_tools.h"

#include <stdbool.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/quote.h"

void
run_calls_write(const struct outcome *outcome, struct jsonout *out)
{
	if (!outcome || outcome->n_tool_calls == 0)
		return;
	jsonout_member_open(out, "tool_calls", '[');
	for (size_t i = 0; i < outcome->n_tool_calls; i++) {
		const struct outcome_tool_call *call = &outcome->tool_call[i];
		char text[sizeof(call->arguments) + 4];

		snprintf(text, sizeof(text), "%s%s", call->arguments,
			 call->arguments_cut ? "..." : "");
		jsonout_open(out, '{');
		jsonout_member_text(out, "server", call->server);
		jsonout_member_text(out, "tool", call->tool);
		jsonout_member_text(out, "arguments", text);
		jsonout_member_text(out, "status", tool_end_name(call->end));
		jsonout_member_uint(out, "ms", call->ms);
		jsonout_member_uint(out, "bytes", call->bytes);
		jsonout_close(out, '}');
	}
	jsonout_close(out, ']');
	if (outcome->more_tool_calls > 0)
		jsonout_member_uint(out, "tool_calls_left_out", outcome->more_tool_calls);
}

static bool
script_calls_is_same(const struct outcome_tool_call *a, const struct outcome_tool_call *b)
{
	return a->end == b->end && strcmp(a->server, b->server) == 0 &&
	       strcmp(a->tool, b->tool) == 0;
}

/* Whether call i is the first one of its kind. */
static bool
is_first(const struct outcome *outcome, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (script_calls_is_same(&outcome->tool_call[k], &outcome->tool_call[i]))
			return false;
	return true;
}

void
run_calls_say(const struct outcome *outcome, FILE *to)
{
	const char *between = "tools called: ";

	for (size_t i = 0; i < outcome->n_tool_calls; i++) {
		const struct outcome_tool_call *call = &outcome->tool_call[i];
		char tool[sizeof(call->tool) * 2];
		size_t n = 0;

		if (!is_first(outcome, i))
			continue;
		for (size_t k = i; k < outcome->n_tool_calls; k++)
			n += script_calls_is_same(call, &outcome->tool_call[k]);
		/* The script may have called a tool that does not exist, by any name. */
		quote_line(tool, sizeof(tool), call->tool, strlen(call->tool));
		fprintf(to, "%s%s.%s %zu %s", between, call->server, tool, n,
			tool_end_name(call->end));
		between = ", ";
	}
	if (outcome->more_tool_calls > 0)
		fprintf(to, ", and %u more", outcome->more_tool_calls);
	if (outcome->n_tool_calls > 0)
		fputc('\n', to);
}
