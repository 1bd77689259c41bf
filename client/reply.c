/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python run and repl.
 * The service is trusted, but may have bugs: a message that does not fit is -EBADMSG, never a
 * crash. */
#include "client/reply.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

const char *
reply_string(const json_t *object, const char *key, size_t *len_r)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_string(value))
		return NULL;
	if (len_r)
		*len_r = json_string_length(value);
	return json_string_value(value);
}

/* Steps of pip. Others say only that a script runs. */
static bool
is_step(const char *message)
{
	static const char *const starts[] = { "Collecting ", "Downloading ", "Installing " };

	for (size_t i = 0; message && i < sizeof(starts) / sizeof(starts[0]); i++)
		if (strncmp(message, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

/* A progress notification with the token of the request: a piece of output, a step, or neither. */
static int
parse_progress(struct reply *reply, const json_t *params)
{
	const json_t *output =
		json_object_get(json_object_get(params, "_meta"), "mcp-pythond/output");
	const json_t *offset = json_object_get(output, "offset");
	const char *stream;

	if (!output) {
		reply->text = reply_string(params, "message", &reply->text_len);
		if (is_step(reply->text))
			reply->kind = REPLY_PROGRESS;
		return 0;
	}
	stream = reply_string(output, "stream", NULL);
	reply->text = reply_string(output, "text", &reply->text_len);
	if (!stream || !reply->text || !json_is_integer(offset) ||
	    json_integer_value(offset) < 0)
		return -EBADMSG;
	reply->offset = (uint64_t)json_integer_value(offset);
	if (strcmp(stream, "stdout") == 0)
		reply->stream = REPLY_STDOUT;
	else if (strcmp(stream, "stderr") == 0)
		reply->stream = REPLY_STDERR;
	else
		return -EBADMSG;
	reply->kind = REPLY_OUTPUT;
	return 0;
}

static int
parse_notification(struct reply *reply, int id)
{
	const json_t *params = json_object_get(reply->message, "params");
	const char *method = reply_string(reply->message, "method", NULL);

	reply->kind = REPLY_OTHER;
	if (strcmp(method, "notifications/cancelled") == 0)
		reply->kind = REPLY_WITHDRAWN;
	if (strcmp(method, "notifications/progress") == 0 &&
	    json_integer_value(json_object_get(params, "progressToken")) == id)
		return parse_progress(reply, params);
	return 0;
}

/* Only one kind of request is expected. */
static int
parse_request(struct reply *reply, const json_t *id)
{
	const char *method = reply_string(reply->message, "method", NULL);

	if (strcmp(method, "elicitation/create") != 0 ||
	    !json_is_object(json_object_get(reply->message, "params")) ||
	    !(json_is_integer(id) || json_is_string(id)))
		return -EBADMSG;
	reply->kind = REPLY_PROMPT;
	return 0;
}

static int
parse_error(struct reply *reply, json_t *error)
{
	reply->kind = REPLY_REFUSED;
	reply->text = reply_string(error, "message", &reply->text_len);
	return reply->text ? 0 : -EBADMSG;
}

static int
parse_result(struct reply *reply, json_t *result)
{
	json_t *content = json_object_get(result, "content");
	json_t *outcome = json_object_get(result, "structuredContent");

	reply->result = result;
	if (json_is_array(json_object_get(result, "contents"))) {
		reply->kind = REPLY_RESOURCE;
		return 0;
	}
	if (!json_is_object(result) || !json_is_array(content))
		return -EBADMSG;
	if (json_is_object(outcome) && reply_string(outcome, "status", NULL)) {
		reply->kind = REPLY_OUTCOME;
		reply->outcome = outcome;
		return 0;
	}
	if (!json_is_true(json_object_get(result, "isError"))) {
		reply->kind = REPLY_STRUCTURED;
		reply->outcome = outcome;
		return json_is_object(outcome) && !json_object_get(outcome, "status")
		       ? 0 : -EBADMSG;
	}
	reply->kind = REPLY_REFUSED;
	reply->text =
		reply_string(json_array_get(content, 0), "text", &reply->text_len);
	return reply->text ? 0 : -EBADMSG;
}

static int
parse_message(struct reply *reply, int wanted)
{
	json_t *id = json_object_get(reply->message, "id");
	json_t *error = json_object_get(reply->message, "error");
	json_t *result = json_object_get(reply->message, "result");
	const char *version = reply_string(reply->message, "jsonrpc", NULL);

	if (!version || strcmp(version, "2.0") != 0)
		return -EBADMSG;
	if (reply_string(reply->message, "method", NULL))
		return id ? parse_request(reply, id) : parse_notification(reply, wanted);
	if (!error == !result)
		return -EBADMSG;
	if (json_is_integer(id) && json_integer_value(id) >= 0 &&
	    json_integer_value(id) < wanted) {
		reply->kind = REPLY_OTHER;
		return 0;
	}
	/* An error may lack an id: it answers a request that could not be read. */
	if (error && (!id || json_integer_value(id) == wanted))
		return parse_error(reply, error);
	if (result && json_is_integer(id) && json_integer_value(id) == wanted)
		return parse_result(reply, result);
	return -EBADMSG;
}

int
reply_parse(const char *line, size_t len, int id, struct reply *reply_r)
{
	struct reply reply = {0};
	int r;

	/* A script may print NUL; it arrives as an escape. */
	reply.message =
		json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	if (!json_is_object(reply.message)) {
		reply_free(&reply);
		return -EBADMSG;
	}
	r = parse_message(&reply, id);
	if (r < 0) {
		reply_free(&reply);
		return r;
	}
	*reply_r = reply;
	return 0;
}

void
reply_free(struct reply *reply)
{
	json_decref(reply->message);
	*reply = (struct reply){0};
}
