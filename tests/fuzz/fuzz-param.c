/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a call that a client repeats in headers. The first line is the params, JSON; each
 * further line is a header. The target asserts:
 *
 * - Headers made from the arguments agree with them, plain or in base64.
 * - With one of these headers missing they do not.
 * - Headers of the input that agree have the values of the arguments. */
#include "fuzz.h"

#include <inttypes.h>
#include <stdbool.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>

#include "base/jsonout.h"
#include "base/loop.h"
#include "http/head.h"
#include "http/param.h"
#include "mcp/catalog.h"
#include "mcp/mcp.h"
#include "policy/config.h"
#include "tests/unit/tools/fake_engine.h"

/* A text, a number, a truth, and one within another; and a text that is not listed, whose header
 * may be missing. */
static const struct {
	const char *header, *key[3];
	bool may_miss;
} wanted[] = {
	{ "Mcp-Param-Aside", { "aside" }, true },
	{ "Mcp-Param-Text", { "text" }, false }, { "Mcp-Param-Number", { "number" }, false },
	{ "Mcp-Param-Truth", { "truth" }, false }, { "Mcp-Param-Deep", { "a", "b", "c" }, false },
};

#define WANTED (sizeof(wanted) / sizeof(*wanted))
#define HEADER(type, name) "{\"type\":\"" type "\",\"x-mcp-header\":\"" name "\"}"
#define OBJECT(name, inner) "{\"type\":\"object\",\"properties\":{\"" name "\":" inner "}}"

static const struct tool tool;

static void
describe(const struct config *config, struct tool_description *description_r)
{
	(void)config;
	*description_r = (struct tool_description){
		.name = tool.name,
		.description = strdup("."),
		.input_schema = strdup("{\"type\":\"object\",\"properties\":{\"aside\":{\"type\":\"string\","
			"\"x-mcp-header\":\"Aside\",\"x-unlisted\":true},\"text\":"
			HEADER("string", "Text") ",\"number\":" HEADER("integer", "Number")
			",\"truth\":" HEADER("boolean", "Truth") ",\"a\":"
			OBJECT("b", OBJECT("c", HEADER("string", "Deep"))) "}}"),
	};
}

static const struct tool tool = { .name = "t", .describe = describe };

static struct {
	struct config *config;
	struct loop *loop;
	struct engine *engine;
	struct mcp *mcp;
	struct http_params *params;
} rig;

static void
tear_down(void)
{
	http_params_free(rig.params);
	mcp_free(rig.mcp);
	engine_free(rig.engine);
	loop_free(rig.loop);
	config_free(rig.config);
}

static void
set_up(void)
{
	static struct catalog catalog;
	struct engine_options engine;
	struct mcp_options mcp;

	catalog_add_tool(&catalog, &tool);
	rig.config = config_new();
	rig.loop = loop_new(false);
	engine = (struct engine_options){ .base = loop_base(rig.loop), .config = rig.config };
	MUST(engine_new(&engine, &rig.engine) == 0);
	mcp = (struct mcp_options){ .base = loop_base(rig.loop), .engine = rig.engine,
				    .config = rig.config, .catalog = &catalog };
	rig.mcp = mcp_new(&mcp);
	rig.params = http_params_new(rig.mcp);
	MUST(atexit(tear_down) == 0);
}

static const json_t *
argument(const json_t *call, size_t i)
{
	const json_t *value = json_object_get(call, "arguments");

	for (size_t k = 0; k < 3 && wanted[i].key[k]; k++)
		value = json_object_get(value, wanted[i].key[k]);
	return json_is_null(value) ? NULL : value;
}

/* The header of an argument; NULL: its type has no header. */
static char *
header_of(const json_t *value, bool as_base64)
{
	char *text = NULL, *said = NULL;
	struct jsonout out;
	size_t len;

	if (json_is_string(value))
		text = strndup(json_string_value(value), len = json_string_length(value));
	else if (json_is_integer(value))
		len = (size_t)asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_boolean(value))
		len = (size_t)asprintf(&text, json_is_true(value) ? "true" : "false");
	else
		return NULL;
	jsonout_init(&out);
	jsonout_base64(&out, json_is_string(value) ? json_string_value(value) : text, len);
	if (as_base64)
		MUST(asprintf(&said, "=?base64?%.*s?=", (int)out.len - 2, out.at + 1) > 0);
	jsonout_done(&out);
	if (!said)
		return text;
	free(text);
	return said;
}

static bool
is_plain_header(const json_t *value, const char *said)
{
	if (json_is_string(value) && strlen(said) != json_string_length(value))
		return false;
	for (const char *at = said; *at; at++)
		if (*at < ' ' || *at > '~')
			return false;
	return *said && *said != ' ' && strncmp(said, "=?", 2) != 0;
}

/* Headers made from the arguments. */
static void
check_own(const json_t *call)
{
	struct evkeyvalq headers;
	bool can = true;

	TAILQ_INIT(&headers);
	for (size_t i = 0; i < WANTED; i++) {
		const json_t *value = argument(call, i);
		char *said = value ? header_of(value, false) : NULL;

		if (said && !is_plain_header(value, said)) {
			free(said);
			said = header_of(value, true);
		}
		can = can && !value == !said;
		if (said)
			MUST(evhttp_add_header(&headers, wanted[i].header, said) == 0);
		free(said);
	}
	MUST(!can || !http_params_mismatch(rig.params, call, &headers));
	if (can && headers.tqh_first) {
		bool may_miss = strcmp(headers.tqh_first->key, wanted[0].header) == 0;

		evhttp_remove_header(&headers, headers.tqh_first->key);
		MUST(!http_params_mismatch(rig.params, call, &headers) == may_miss);
	}
	evhttp_clear_headers(&headers);
}

static void
check_agreed(const json_t *call, const struct evkeyvalq *headers)
{
	for (size_t i = 0; i < WANTED; i++) {
		const json_t *value = argument(call, i);
		const char *said = evhttp_find_header(headers, wanted[i].header);
		size_t len;
		char *text;

		MUST(!value == !said || (!said && wanted[i].may_miss));
		if (!said)
			continue;
		text = http_name_decode(said + strspn(said, " \t"), &len);
		MUST(text);
		if (json_is_string(value))
			MUST(len == json_string_length(value) &&
			     memcmp(text, json_string_value(value), len) == 0);
		free(text);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rest rest = { data, size }, line = rest_line(&rest);
	json_t *call = json_loadb((const char *)line.at, line.len,
				  JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const char *name = json_string_value(json_object_get(call, "name"));
	struct evkeyvalq headers;

	if (!rig.params)
		set_up();
	TAILQ_INIT(&headers);
	while (rest.len > 0) {
		struct rest header = rest_line(&rest);
		char *text = strndup((const char *)header.at, header.len);
		char *colon = strchr(text, ':');

		if (colon) {
			*colon = '\0';
			(void)evhttp_add_header(&headers, text, colon + 1);
		}
		free(text);
	}
	if (name && strcmp(name, tool.name) == 0) {
		check_own(call);
		if (!http_params_mismatch(rig.params, call, &headers))
			check_agreed(call, &headers);
	} else {
		MUST(!http_params_mismatch(rig.params, call, &headers));
	}
	evhttp_clear_headers(&headers);
	json_decref(call);
	return 0;
}
