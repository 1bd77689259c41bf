/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python repl, while a line is typed or for a command.   Owns: nothing.
 * Asks about the state of the session without changing it: code runs in a copy, which is closed
 * after the call.
 * Reads:   the output of that code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/repl_parts.h"
#include "base/xalloc.h"
#include "client/text.h"

#define LOOK_SECONDS 5

static int
repl_look_nothing(void *, const struct reply *)
{
	return 0;
}

char *
repl_look(struct repl *repl, const char *code)
{
	json_t *arguments;
	struct reply answer;
	char *text = NULL;
	size_t len;

	if (!repl->session)
		return NULL;
	arguments = json_object();
	call_set(arguments, "session", json_string(repl->session));
	call_set(arguments, "code", json_string(code));
	call_set(arguments, "branch", json_true());
	call_set(arguments, "close", json_true());
	call_set(arguments, "timeout_seconds", json_integer(LOOK_SECONDS));
	call_send(&repl->channel,
		  call_message(&repl->channel, ++repl->id, "run_repl", arguments, false));
	if (call_wait(&repl->channel, repl->id, repl_look_nothing, NULL, &answer) < 0)
		return NULL;
	if (answer.kind == REPLY_OUTCOME &&
	    strcmp(reply_string(answer.outcome, "status", NULL), "ok") == 0) {
		const char *out = reply_string(answer.outcome, "stdout", &len);

		text = out && strlen(out) == len ? strdup(out) : NULL;
	}
	reply_free(&answer);
	return text;
}

/* Names only: what would need quotes in the code is not completed. */
static bool
repl_look_is_name(const char *word)
{
	for (; *word; word++)
		if (!(*word == '_' || *word == '.' || (*word >= '0' && *word <= '9') ||
		      (*word >= 'A' && *word <= 'Z') || (*word >= 'a' && *word <= 'z') ||
		      (unsigned char)*word >= 0x80))
			return false;
	return true;
}

char *
repl_complete(void *arg, const char *word)
{
	struct text_position where;
	struct repl *repl = arg;
	char *code, *text;

	if (*word == '%')
		return repl_command_names();
	if (!repl_look_is_name(word) || !text_check(word, strlen(word), true, &where))
		return NULL;
	if (asprintf(&code, "print(*(lambda c, t: [x for x in (c.complete(t, i) for i in range(200)) "
			    "if x])(__import__('rlcompleter').Completer(globals()), '%s'), sep='\\n')",
		     word) < 0)
		xalloc_fail(0);
	text = repl_look(repl, code);
	free(code);
	return text;
}
