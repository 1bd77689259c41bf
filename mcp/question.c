/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: open questions.
 * Reads:   replies of a client, in any shape. */
#include "mcp/question.h"

#include <errno.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "mcp/form.h"
#include "mcp/revision.h"
#include "policy/shape.h"

static const struct {
	const char *method;
	unsigned int needs;
} kinds[] = {
	[QUESTION_ELICIT] = { "elicitation/create", CLIENT_ELICITS },
	[QUESTION_SAMPLE] = { "sampling/createMessage", CLIENT_SAMPLES },
	[QUESTION_ROOTS] = { "roots/list", CLIENT_HAS_ROOTS },
	[QUESTION_TOOL] = { METHOD_CLIENT_TOOL, CLIENT_HAS_TOOLS },
};

static bool
is_key(const char *key)
{
	size_t len = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_-.");

	return len > 0 && len <= QUESTION_KEY_MAX && key[len] == '\0';
}

static int
question_check(const struct tool_question *question, size_t n, unsigned int abilities)
{
	for (size_t i = 0; i < n; i++) {
		if (!is_key(question[i].key))
			return -EINVAL;
		if (question[i].kind == QUESTION_ELICIT &&
		    (!question[i].message || !question[i].schema))
			return -EINVAL;
		for (size_t j = 0; j < i; j++)
			if (strcmp(question[i].key, question[j].key) == 0)
				return -EINVAL;
	}
	for (size_t i = 0; i < n; i++)
		if (!(abilities & kinds[question[i].kind].needs))
			return -EOPNOTSUPP;
	return 0;
}

static char *
question_copy_of(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

int
mcp_ask_open(struct mcp_ask *ask, const struct tool_question *question, size_t n,
	     const char *state, unsigned int abilities)
{
	int r;

	if (ask->n > 0 || n == 0 || n > QUESTIONS_MAX ||
	    (state && strlen(state) > TOOL_STATE_MAX))
		return -EINVAL;
	r = question_check(question, n, abilities);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct mcp_question *to = &ask->question[i];

		*to = (struct mcp_question){ .kind = question[i].kind,
					     .message = question_copy_of(question[i].message),
					     .schema = question_copy_of(question[i].schema),
					     .params = question_copy_of(question[i].params),
					     .most = question[i].most };
		memcpy(to->key, question[i].key, strlen(question[i].key) + 1);
	}
	ask->n = n;
	ask->state = question_copy_of(state);
	return 0;
}

unsigned int
mcp_ask_needs(const struct mcp_ask *ask)
{
	unsigned int needs = 0;

	for (size_t i = 0; i < ask->n; i++)
		needs |= kinds[ask->question[i].kind].needs;
	return needs;
}

void
mcp_ask_clear(struct mcp_ask *ask)
{
	for (size_t i = 0; i < ask->n; i++) {
		free(ask->question[i].message);
		free(ask->question[i].schema);
		free(ask->question[i].params);
		json_decref(ask->question[i].content);
	}
	free(ask->state);
	ask->n = 0;
	ask->state = NULL;
}

static bool
answer_form(struct mcp_question *question, const json_t *result)
{
	const char *action = json_string_value(json_object_get(result, "action"));
	json_t *content = json_object_get(result, "content");

	if (action && strcmp(action, "decline") == 0) {
		question->action = REPLY_DECLINE;
	} else if (action && strcmp(action, "cancel") == 0) {
		question->action = REPLY_CANCEL;
	} else if (action && strcmp(action, "accept") == 0 &&
		   mcp_form_fits(question->schema, content)) {
		question->action = REPLY_ACCEPT;
		question->content = json_incref(content);
	} else {
		return false;
	}
	return true;
}

/* Any object is an answer; the script gets the error if it is wrong. Only the part for the script
 * is kept until all questions are answered. */
static void
answer_call(struct mcp_question *question, const json_t *result)
{
	own_mem char *body = NULL;
	enum tool_status status = shape_result(result, question->most, &body);

	question->action = REPLY_ACCEPT;
	question->content = xalloc_check(json_pack("{s:i,s:s}", "status", (int)status, "body",
						   body));
}

bool
mcp_question_answer(struct mcp_question *question, const json_t *result)
{
	const char *must = question->kind == QUESTION_SAMPLE ? "content" : "roots";

	if (question->answered || !json_is_object(result))
		return false;
	if (question->kind == QUESTION_ELICIT) {
		if (!answer_form(question, result))
			return false;
	} else if (question->kind == QUESTION_TOOL) {
		answer_call(question, result);
	} else {
		if (!json_object_get(result, must))
			return false;
		question->action = REPLY_ACCEPT;
		question->content = json_incref((json_t *)result);
	}
	question->answered = true;
	return true;
}

static void
question_write_form(const struct mcp_question *question, const struct revision *revision,
		    struct jsonout *out)
{
	jsonout_open(out, '{');
	if (revision->elicit_mode)
		jsonout_member_text(out, "mode", "form");
	jsonout_member_text(out, "message", question->message);
	jsonout_member_raw(out, "requestedSchema", question->schema);
	jsonout_close(out, '}');
}

void
mcp_question_write(const struct mcp_question *question, const struct revision *revision,
		   struct jsonout *out)
{
	jsonout_member_text(out, "method", kinds[question->kind].method);
	if (question->kind == QUESTION_ELICIT) {
		jsonout_key(out, "params");
		question_write_form(question, revision, out);
	} else if (question->params) {
		jsonout_member_raw(out, "params", question->params);
	}
}
