/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any shape. */
#include "mcp/envelope.h"

#include <string.h>

#include "mcp/revision.h"

static void
malformed(struct envelope *envelope, const char *text)
{
	envelope->verdict = ENVELOPE_MALFORMED;
	envelope->text = text;
}

static bool
is_log_level(const json_t *level)
{
	return json_is_string(level) && revision_log_level(json_string_value(level)) >= 0;
}

static bool
is_client_info(const json_t *info)
{
	return json_is_string(json_object_get(info, "name")) &&
	       json_is_string(json_object_get(info, "version"));
}

static bool
envelope_is_token(const json_t *token)
{
	/* Its JSON text can be up to six times as long; that length is checked later. */
	return json_is_integer(token) ||
	       (json_is_string(token) && json_string_length(token) <= PROGRESS_TOKEN_MAX);
}

static void
read_modern(const json_t *meta, const json_t *version, struct envelope *envelope)
{
	const json_t *info = json_object_get(meta, META_CLIENT_INFO);
	const json_t *level = json_object_get(meta, META_LOG_LEVEL);

	if (!json_is_string(version)) {
		malformed(envelope, "_meta: " META_VERSION " must be a string");
	} else if (!json_is_object(json_object_get(meta, META_CLIENT_CAPABILITIES))) {
		malformed(envelope, "_meta: " META_CLIENT_CAPABILITIES
				    " is required and must be an object");
	} else if (info && !is_client_info(info)) {
		malformed(envelope, "_meta: " META_CLIENT_INFO
				    " must be an object with name and version");
	} else if (level && !is_log_level(level)) {
		malformed(envelope, "_meta: " META_LOG_LEVEL " is not a log level");
	} else {
		envelope->revision = revision_find(json_string_value(version));
		envelope->verdict = ENVELOPE_MODERN;
		envelope->capabilities = json_object_get(meta, META_CLIENT_CAPABILITIES);
		envelope->client = text_member(info, "name");
		if (level)
			envelope->log_level = revision_log_level(json_string_value(level));
		if (!envelope->revision || !envelope->revision->modern) {
			envelope->verdict = ENVELOPE_UNSUPPORTED;
			envelope->requested = version;
		}
	}
}

void
envelope_read(const json_t *params, struct envelope *envelope_r)
{
	const json_t *meta = json_object_get(params, "_meta");
	const json_t *version = json_object_get(meta, META_VERSION);

	*envelope_r = (struct envelope){ .verdict = ENVELOPE_NONE, .log_level = -1 };
	if (!meta)
		return;
	if (!json_is_object(meta)) {
		malformed(envelope_r, "_meta must be an object");
		return;
	}
	envelope_r->has_modern_keys = json_object_get(meta, META_CLIENT_CAPABILITIES);
	envelope_r->progress_token = json_object_get(meta, "progressToken");
	envelope_r->streams = json_is_true(json_object_get(meta, META_STREAM));
	if (envelope_r->progress_token && !envelope_is_token(envelope_r->progress_token))
		malformed(envelope_r, "_meta: progressToken must be a string or an integer");
	else if (version)
		read_modern(meta, version, envelope_r);
}

const char *
text_member(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}
