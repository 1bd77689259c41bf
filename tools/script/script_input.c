/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   prompts of scripts, which may try to win a person's trust, and replies of a client. */
#include "tools/script/script_input.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/quote.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/observer.h"
#include "govern/gate.h"
#include "policy/config.h"
#include "policy/rules.h"
#include "policy/shown.h"

#define LINES_MAX 16		/* lines of a prompt: the longest prompt fits, if it is one line */
#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x
#define SCHEMA \
	"{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"string\"," \
	"\"title\":\"Input for the script\",\"maxLength\":" TEXT(ANSWER_CHARACTERS) "}}}"

const char *
script_input_text(const struct config *config)
{
	return policy_allows_input(config)
		? " input() asks your user for a line, if your client can show them forms "
		  "(elicitation); not for secrets." : "";
}

void
script_input_offer(const struct tool_host *host, struct execution_request *request)
{
	if (!(host->client & CLIENT_ELICITS) || !policy_allows_input(host->config))
		return;
	request->prompts = PROMPTS_OF_RUN_MAX;
	request->prompt_ms = host->config->limits.input_ms;
}

/* ---- the message for the user ---- */

/* Malloc'd. */
static char *
script_input_write_message(const struct script_input *input, const char *id, const char *prompt,
			   size_t len)
{
	static const struct quote_block block = { SHOWN_MARK, QUOTE_COLUMNS, LINES_MAX, SIZE_MAX };
	char *text = NULL;
	size_t text_len;
	FILE *to = xalloc_check(open_memstream(&text, &text_len));

	fprintf(to, "A Python script that is running for you (%s, %s) asks for a line of input. What "
		"follows is the script's own text and not this server's. Do not enter passwords or "
		"other secrets.\n\n", input->tool, id);
	quote_block(to, &block, prompt, len);
	xassert(fclose(to) == 0);
	return text;
}

/* ---- records ---- */

static int
record_asked(struct script_input *input, const struct tool_host *host, const char *id,
	     unsigned int number, const char *prompt, size_t len)
{
	struct audit *audit = gate_audit(host->gate);
	json_t *more = xalloc_check(json_pack("{s:s,s:i}", "tool", input->tool, "number",
					      (int)number));

	if (audit && audit_wants_source(audit))
		json_object_set_new(more, "source", json_stringn(prompt, len));
	return audit_write_first(audit, AUDIT_INPUT_ASKED, tenant_principal(host->tenant), id, more,
				 &input->recorded);
}

static void
script_input_record_end(struct script_input *input, const struct tool_host *host, const char *id,
			enum engine_input result)
{
	json_t *more = json_pack("{s:s,s:i,s:s}", "tool", input->tool, "number",
				 (int)input->number, "result", engine_input_name(result));

	input->number = 0;
	engine_tell_input(host->engine, result);
	audit_write(gate_audit(host->gate), AUDIT_INPUT_ENDED,
		    tenant_principal(host->tenant), id, xalloc_check(more));
}

void
script_input_end(struct script_input *input, const struct tool_host *host, const char *id)
{
	free(input->later);
	input->later = NULL;
	writing_unwait(&input->recorded);
	free(input->message);
	input->message = NULL;
	if (input->number)
		script_input_record_end(input, host, id, INPUT_UNANSWERED);
}

/* ---- asking ---- */

static void
ask_recorded(void *arg, int error)
{
	struct script_input *input = arg;
	struct execution *execution = input->execution;
	const struct tool_host *host = input->host;
	struct tool_question question = { .kind = QUESTION_ELICIT, .schema = SCHEMA };
	own_mem char *message = give_ptr(input->message);
	char key[QUESTION_KEY_MAX];

	if (error < 0) {
		input->number = 0;
		execution_answer_prompt(execution, NULL, 0);
		return;
	}
	engine_tell_input(host->engine, INPUT_ASKED);
	snprintf(key, sizeof(key), "line-%u", input->number);
	question.key = key;
	question.message = message;
	if (host->on_ask(host->arg, &question, 1, NULL) == 0)
		return;
	script_input_record_end(input, host, execution_id(execution), INPUT_NOBODY);
	execution_answer_prompt(execution, NULL, 0);
}

void
script_input_ask(struct script_input *input, const struct tool_host *host,
		 struct execution *execution, unsigned int number, const char *prompt,
		 size_t len)
{
	const char *id = execution_id(execution);
	int r;

	input->number = number;
	input->message = script_input_write_message(input, id, prompt, len);
	input->host = host;
	input->execution = execution;
	input->recorded = (struct writing_wait){ .on_written = ask_recorded, .arg = input };
	r = record_asked(input, host, id, number, prompt, len);
	if (r != -EINPROGRESS)
		ask_recorded(input, r);
}

void
script_input_reply(struct script_input *input, const struct tool_host *host,
		   struct execution *execution, const struct tool_reply *reply)
{
	static const enum engine_input ends[] = { [REPLY_ACCEPT] = INPUT_LINE,
						  [REPLY_DECLINE] = INPUT_DECLINED,
						  [REPLY_CANCEL] = INPUT_CANCELLED };
	const char *line = json_string_value(json_object_get(reply->content, "line"));

	if (!input->number || input->message)
		return;
	script_input_record_end(input, host, execution_id(execution), ends[reply->action]);
	if (reply->action != REPLY_ACCEPT) {
		execution_answer_prompt(execution, NULL, 0);
		return;
	}
	/* An empty field is an empty line; the line ends at a line break. */
	if (!line)
		line = "";
	execution_answer_prompt(execution, line, strcspn(line, "\r\n"));
}

/* ---- behind another question ---- */

void
script_input_keep(struct script_input *input, unsigned int number, const char *prompt, size_t len)
{
	free(input->later);
	input->later = xmemdup0(prompt, len);
	input->later_len = len;
	input->later_number = number;
}

void
script_input_ask_kept(struct script_input *input, const struct tool_host *host,
		      struct execution *execution)
{
	char *prompt = input->later;

	if (!prompt)
		return;
	input->later = NULL;
	script_input_ask(input, host, execution, input->later_number, prompt, input->later_len);
	free(prompt);
}
