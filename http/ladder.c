/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   headers and a parsed body of a client. */
#include "http/ladder.h"

#include <ctype.h>
#include <string.h>

#include <jansson.h>

#include "http/head.h"
#include "mcp/envelope.h"
#include "mcp/jsonrpc.h"
#include "mcp/revision.h"

/* The first revision without sessions. A header that names this revision or a later one marks the
 * message as modern, even if the revision is not known. */
#define FIRST_MODERN "2026-07-28"

struct climb {
	const struct http_head *head;
	const struct jsonrpc_message *message;
	struct envelope envelope;
	struct http_verdict *verdict;
};

static void
ladder_refuse(const struct climb *climb, int code, const char *text)
{
	*climb->verdict = (struct http_verdict){ .way = HTTP_WAY_REFUSE, .status = 400,
						 .code = code, .text = text,
						 .id = climb->message->id.raw };
}

static const char *
ladder_header(const struct climb *climb, enum http_header which)
{
	return climb->head->value[which];
}

/* Does the header name a modern revision, a known or a future one? */
static bool
header_is_modern(const struct climb *climb)
{
	static const char form[] = "dddd-dd-dd";
	const char *version = ladder_header(climb, HTTP_VERSION);

	if (!version || strlen(version) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? !isdigit((unsigned char)version[i]) : version[i] != '-')
			return false;
	return strcmp(version, FIRST_MODERN) >= 0;
}

static bool
ladder_claims(const struct climb *climb)
{
	const json_t *meta = json_object_get(climb->message->params, "_meta");

	return json_object_get(meta, META_VERSION);
}

static bool
ladder_equals(const char *value, const json_t *string)
{
	return json_is_string(string) && strlen(value) == json_string_length(string) &&
	       memcmp(value, json_string_value(string), strlen(value)) == 0;
}

/* ---- modern ---- */

/* The key in params that Mcp-Name repeats; NULL: the method has none. */
static const char *
named_by(const char *method)
{
	static const struct {
		const char *method, *key;
	} rows[] = {
		{ "tools/call", "name" },     { "prompts/get", "name" },
		{ "resources/read", "uri" },  { "tasks/get", "taskId" },
		{ "tasks/cancel", "taskId" }, { "tasks/update", "taskId" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(method, rows[i].method) == 0)
			return rows[i].key;
	return NULL;
}

static const char *
name_mismatch(const struct climb *climb)
{
	const char *key = named_by(climb->message->method);
	const char *value = ladder_header(climb, HTTP_NAME);
	char *name;
	size_t len;
	bool same;

	if (!key)
		return NULL;
	if (!value)
		return "the header Mcp-Name is required";
	name = http_name_decode(value, &len);
	if (!name)
		return "the header Mcp-Name holds malformed base64";
	same = strlen(name) == len &&
	       ladder_equals(name, json_object_get(climb->message->params, key));
	free(name);
	return same ? NULL : "the header Mcp-Name differs from the body";
}

static bool
version_agrees(const struct climb *climb)
{
	const json_t *meta = json_object_get(climb->message->params, "_meta");
	const char *version = ladder_header(climb, HTTP_VERSION);
	bool twice = climb->head->mcp_twice;

	if (!twice && version && ladder_equals(version, json_object_get(meta, META_VERSION)))
		return true;
	ladder_refuse(climb, HTTP_HEADER_MISMATCH,
		      twice ? "a header of the protocol is said twice" :
		      version ? "the header MCP-Protocol-Version differs from the body"
		       : "the header MCP-Protocol-Version is required");
	return false;
}

static void
ladder_refuse_version(const struct climb *climb)
{
	ladder_refuse(climb, MCP_UNSUPPORTED_VERSION, "this protocol version is not supported");
	climb->verdict->requested = climb->envelope.requested;
}

static void
climb_modern(const struct climb *climb)
{
	const char *method = ladder_header(climb, HTTP_METHOD), *wrong;

	if (climb->envelope.verdict == ENVELOPE_MALFORMED) {
		ladder_refuse(climb, JSONRPC_INVALID_PARAMS, climb->envelope.text);
	} else if (!version_agrees(climb)) {
		;
	} else if (climb->envelope.verdict == ENVELOPE_UNSUPPORTED) {
		ladder_refuse_version(climb);
	} else if (!method || strcmp(method, climb->message->method) != 0) {
		ladder_refuse(climb, HTTP_HEADER_MISMATCH,
			      method ? "the header Mcp-Method differs from the body"
			      : "the header Mcp-Method is required");
	} else if ((wrong = name_mismatch(climb))) {
		ladder_refuse(climb, HTTP_HEADER_MISMATCH, wrong);
	} else {
		climb->verdict->way = HTTP_WAY_MODERN;
		climb->verdict->revision = climb->envelope.revision;
	}
}

/* No notification from clients is defined. Some clients send one when they close a stream; only
 * the header marks it as modern. */
static void
climb_modern_notification(const struct climb *climb)
{
	const char *method = ladder_header(climb, HTTP_METHOD);

	if (ladder_claims(climb) && climb->envelope.verdict == ENVELOPE_MALFORMED)
		ladder_refuse(climb, JSONRPC_INVALID_PARAMS, climb->envelope.text);
	else if (ladder_claims(climb) && !version_agrees(climb))
		;
	else if (climb->envelope.verdict == ENVELOPE_UNSUPPORTED)
		ladder_refuse_version(climb);
	else if (climb->head->mcp_twice ||
		 (method && strcmp(method, climb->message->method) != 0))
		ladder_refuse(climb, HTTP_HEADER_MISMATCH,
			      climb->head->mcp_twice
			? "a header of the protocol is said twice"
			: "the header Mcp-Method differs from the body");
	else
		climb->verdict->way = HTTP_WAY_ACCEPT;
}

/* ---- legacy ---- */

/* Checks MCP-Protocol-Version of a legacy message: it must be absent or name a legacy revision, and
 * no header of MCP may occur twice. False: the message was refused. */
static bool
legacy_version_is_known(const struct climb *climb)
{
	const char *version = ladder_header(climb, HTTP_VERSION);
	const struct revision *revision = version ? revision_find(version) : NULL;

	if (climb->head->mcp_twice || (version && (!revision || revision->modern))) {
		ladder_refuse(climb, JSONRPC_INVALID_REQUEST,
			      climb->head->mcp_twice
			? "a header of the protocol is said twice"
			: "the header MCP-Protocol-Version names no version that is served here");
		return false;
	}
	return true;
}

static void
climb_legacy_request(const struct climb *climb, enum mcp_method method)
{
	bool in_session = ladder_header(climb, HTTP_SESSION);

	if (!legacy_version_is_known(climb))
		return;
	if (!in_session && (method == METHOD_DISCOVER || climb->envelope.has_modern_keys))
		ladder_refuse(climb, JSONRPC_INVALID_PARAMS, "_meta: " META_VERSION " is required");
	else
		climb->verdict->way = in_session || method != METHOD_INITIALIZE
					? HTTP_WAY_SESSION : HTTP_WAY_INITIALIZE;
}

static void
climb_request(const struct climb *climb)
{
	enum mcp_method method = method_find(climb->message->method);

	if (ladder_claims(climb))
		climb_modern(climb);
	else if (!header_is_modern(climb))
		climb_legacy_request(climb, method);
	else if (method == METHOD_INITIALIZE)
		ladder_refuse(climb, HTTP_HEADER_MISMATCH,
			      "the header MCP-Protocol-Version does not go with initialize");
	else
		ladder_refuse(climb, JSONRPC_INVALID_PARAMS, "_meta: " META_VERSION " is required");
}

static void
climb_message(const struct climb *climb)
{
	switch (climb->message->kind) {
	case JSONRPC_INVALID:
		ladder_refuse(climb, climb->message->code, climb->message->text);
		break;
	case JSONRPC_REQUEST:
		climb_request(climb);
		break;
	case JSONRPC_NOTIFICATION:
		if (ladder_claims(climb) || header_is_modern(climb))
			climb_modern_notification(climb);
		else if (legacy_version_is_known(climb))
			climb->verdict->way = HTTP_WAY_SESSION;
		break;
	case JSONRPC_RESPONSE:
		if (header_is_modern(climb))
			ladder_refuse(climb, JSONRPC_INVALID_REQUEST, "this revision asks for no answers");
		else if (legacy_version_is_known(climb))
			climb->verdict->way = HTTP_WAY_SESSION;
		break;
	}
}

void
http_ladder(const struct http_head *head, const struct jsonrpc_line *line,
	    struct http_verdict *verdict_r)
{
	static const struct jsonrpc_message nameless = { .kind = JSONRPC_INVALID };
	struct climb climb = { .head = head, .verdict = verdict_r, .message = &nameless };

	*verdict_r = (struct http_verdict){ .way = HTTP_WAY_SESSION };
	if (!line->is_batch) {
		climb.message = &line->message[0];
		envelope_read(climb.message->params, &climb.envelope);
		climb_message(&climb);
	} else if (header_is_modern(&climb) || !head->value[HTTP_SESSION]) {
		ladder_refuse(&climb, JSONRPC_INVALID_REQUEST,
			      "batches are not part of this revision");
	} else {
		legacy_version_is_known(&climb);
	}
}
