/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: open questions.
 * Reads:   replies of a client, in any shape. */
#include "mcp/question.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/own.h"
#include "base/utf8.h"
#include "base/xalloc.h"
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

struct mcp_question *
mcp_ask_find(struct mcp_ask *ask, const char *key)
{
	for (size_t i = 0; i < ask->n; i++)
		if (ask->question[i].state != QUESTION_NONE &&
		    strcmp(ask->question[i].key, key) == 0)
			return &ask->question[i];
	return NULL;
}

/* May these questions be asked together, and while those in ask are open? Only calls of a client's
 * tools may be asked while other calls of its tools are open. */
static bool
goes_beside(struct mcp_ask *ask, const struct tool_question *question, size_t n)
{
	bool calls = question[0].kind == QUESTION_TOOL;
	size_t places = QUESTIONS_MAX;

	for (size_t i = 0; i < n; i++)
		if ((question[i].kind == QUESTION_TOOL) != calls ||
		    mcp_ask_find(ask, question[i].key))
			return false;
	for (size_t i = 0; i < ask->n; i++) {
		if (ask->question[i].state == QUESTION_NONE)
			continue;
		if (!calls || ask->question[i].kind != QUESTION_TOOL)
			return false;
		places--;
	}
	return n <= places;
}

static char *
question_copy_of(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

/* Adds a copy of a question. There must be room for it. */
static void
question_add(struct mcp_ask *ask, const struct tool_question *question)
{
	struct mcp_question *to = ask->question;

	while (to < ask->question + ask->n && to->state != QUESTION_NONE)
		to++;
	if (to == ask->question + ask->n)
		ask->n++;
	*to = (struct mcp_question){ .kind = question->kind, .state = QUESTION_NEW,
				     .message = question_copy_of(question->message),
				     .schema = question_copy_of(question->schema),
				     .params = question_copy_of(question->params),
				     .most = question->most };
	memcpy(to->key, question->key, strlen(question->key) + 1);
}

int
mcp_ask_open(struct mcp_ask *ask, const struct tool_question *question, size_t n,
	     const char *state, unsigned int abilities)
{
	int r;

	if (n == 0 || n > QUESTIONS_MAX || (state && strlen(state) > TOOL_STATE_MAX))
		return -EINVAL;
	r = question_check(question, n, abilities);
	if (r < 0)
		return r;
	if (!goes_beside(ask, question, n) || (state && ask->n > 0))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		question_add(ask, &question[i]);
	if (state)
		ask->state = xstrdup(state);
	return 0;
}

unsigned int
mcp_ask_needs(const struct mcp_ask *ask)
{
	unsigned int needs = 0;

	for (size_t i = 0; i < ask->n; i++)
		if (ask->question[i].state != QUESTION_NONE)
			needs |= kinds[ask->question[i].kind].needs;
	return needs;
}

static void
forget_free_places(struct mcp_ask *ask)
{
	while (ask->n > 0 && ask->question[ask->n - 1].state == QUESTION_NONE)
		ask->n--;
}

void
mcp_ask_drop(struct mcp_ask *ask, struct mcp_question *question)
{
	free(question->message);
	free(question->schema);
	free(question->params);
	json_decref(question->content);
	*question = (struct mcp_question){ .state = QUESTION_NONE };
	forget_free_places(ask);
}

void
mcp_ask_clear(struct mcp_ask *ask)
{
	while (ask->n > 0)
		mcp_ask_drop(ask, &ask->question[ask->n - 1]);
	free(ask->state);
	ask->state = NULL;
}

bool
mcp_question_is_open(const struct mcp_question *question)
{
	return question->state == QUESTION_NEW || question->state == QUESTION_TOLD;
}

/* Are all questions answered? Calls of tools are never among other questions: see goes_beside. */
static bool
is_whole(const struct mcp_ask *ask)
{
	for (size_t i = 0; i < ask->n; i++)
		if (mcp_question_is_open(&ask->question[i]))
			return false;
	return true;
}

bool
mcp_ask_take(struct mcp_ask *ask, struct mcp_ask *taken_r)
{
	*taken_r = (struct mcp_ask){ .n = 0 };
	if (ask->n > 0 && ask->question[ask->n - 1].kind != QUESTION_TOOL && !is_whole(ask))
		return false;
	for (size_t i = 0; i < ask->n; i++) {
		if (ask->question[i].state != QUESTION_ANSWERED)
			continue;
		taken_r->question[taken_r->n++] = ask->question[i];
		ask->question[i].state = QUESTION_NONE;
	}
	forget_free_places(ask);
	taken_r->state = ask->state;
	ask->state = NULL;
	return taken_r->n > 0;
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

static void
end_call(struct mcp_question *question, enum tool_status status, const char *body)
{
	question->action = REPLY_ACCEPT;
	question->content = xalloc_check(json_pack("{s:i,s:s}", "status", (int)status, "body",
						   body));
}

bool
mcp_question_answer(struct mcp_question *question, const json_t *result)
{
	const char *must = question->kind == QUESTION_SAMPLE ? "content" : "roots";

	if (!mcp_question_is_open(question) || !json_is_object(result))
		return false;
	/* A call that was not sent has no result. */
	if (question->kind == QUESTION_TOOL && question->state != QUESTION_TOLD)
		return false;
	if (question->kind == QUESTION_ELICIT) {
		if (!answer_form(question, result))
			return false;
	} else if (question->kind == QUESTION_TOOL) {
		own_mem char *body = NULL;
		enum tool_status status = shape_result(result, question->most, &body);

		/* Takes the result of a call of a client's tool. Any object is a result; if it is
		 * wrong, the script gets an error. Only the part for the script is kept. */
		end_call(question, status, body);
	} else {
		if (!json_object_get(result, must))
			return false;
		question->action = REPLY_ACCEPT;
		question->content = json_incref((json_t *)result);
	}
	question->state = QUESTION_ANSWERED;
	return true;
}

void
mcp_question_give_up(struct mcp_question *question, const char *why)
{
	if (question->kind == QUESTION_TOOL && why)
		end_call(question, TOOL_FAILED, why);
	else
		question->action = REPLY_CANCEL;
	question->state = QUESTION_ANSWERED;
}

void
mcp_question_write(struct mcp_question *question, const struct revision *revision,
		   struct jsonout *out)
{
	question->state = QUESTION_TOLD;
	jsonout_member_text(out, "method", kinds[question->kind].method);
	if (question->kind == QUESTION_ELICIT) {
		jsonout_key(out, "params");
		jsonout_open(out, '{');
		if (revision->elicit_mode)
			jsonout_member_text(out, "mode", "form");
		jsonout_member_text(out, "message", question->message);
		jsonout_member_raw(out, "requestedSchema", question->schema);
		jsonout_close(out, '}');
	} else if (question->params) {
		jsonout_member_raw(out, "params", question->params);
	}
}

/* ---- replies to forms ---- */

static bool
is_type(const char *type, const json_t *value)
{
	if (strcmp(type, "string") == 0)
		return json_is_string(value);
	if (strcmp(type, "boolean") == 0)
		return json_is_boolean(value);
	if (strcmp(type, "array") == 0)
		return json_is_array(value);
	if (strcmp(type, "integer") == 0)
		return json_is_number(value) &&
		       json_number_value(value) == floor(json_number_value(value));
	return strcmp(type, "number") == 0 && json_is_number(value);
}

/* The size of a value, for bounds: the number itself, or the length of a string or list. */
static double
form_measure(const json_t *value)
{
	if (json_is_string(value))
		return (double)utf8_count(json_string_value(value), json_string_length(value));
	if (json_is_array(value))
		return (double)json_array_size(value);
	return json_number_value(value);
}

static bool
form_is_within(const json_t *field, const json_t *value)
{
	static const char *const least[] = { "minimum", "minLength", "minItems" };
	static const char *const most[] = { "maximum", "maxLength", "maxItems" };
	size_t i = json_is_string(value) ? 1 : json_is_array(value) ? 2 : 0;
	const json_t *low = json_object_get(field, least[i]);
	const json_t *high = json_object_get(field, most[i]);

	return (!low || form_measure(value) >= json_number_value(low)) &&
	       (!high || form_measure(value) <= json_number_value(high));
}

/* Is value one of the choices? choices: an array of values (enum), or of {"const": value}. */
static bool
is_among(const json_t *choices, const json_t *value)
{
	const json_t *choice, *constant;
	size_t i;

	json_array_foreach(choices, i, choice) {
		constant = json_object_get(choice, "const");
		if (json_equal(constant ? constant : choice, value))
			return true;
	}
	return false;
}

static bool
is_chosen(const json_t *field, const json_t *value)
{
	static const char *const keys[] = { "enum", "oneOf", "anyOf" };

	for (size_t i = 0; i < 3; i++) {
		const json_t *choices = json_object_get(field, keys[i]);

		if (choices && !is_among(choices, value))
			return false;
	}
	return true;
}

static bool
field_fits(const json_t *field, const json_t *value)
{
	const char *type = json_string_value(json_object_get(field, "type"));
	const json_t *items = json_object_get(field, "items"), *item;
	size_t i;

	if ((type && !is_type(type, value)) || !form_is_within(field, value) ||
	    !is_chosen(field, value))
		return false;
	if (items && json_is_array(value))
		json_array_foreach(value, i, item)
			if (!is_chosen(items, item))
				return false;
	return true;
}

static bool
form_fits(const json_t *schema, const json_t *content)
{
	const json_t *fields = json_object_get(schema, "properties"), *field, *name;
	const char *key;
	size_t i;

	if (content && !json_is_object(content))
		return false;
	json_array_foreach(json_object_get(schema, "required"), i, name)
		if (!json_object_get(content, json_string_value(name)))
			return false;
	json_object_foreach((json_t *)fields, key, field) {
		const json_t *value = json_object_get(content, key);

		if (value && !field_fits(field, value))
			return false;
	}
	return true;
}

bool
mcp_form_fits(const char *schema, const json_t *content)
{
	json_auto_t *value = json_loads(schema, 0, NULL);

	return json_is_object(value) && form_fits(value, content);
}
