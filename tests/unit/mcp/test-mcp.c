/* SPDX-License-Identifier: Apache-2.0 */
/* Message in, message out, for every revision: what must be in the answer and what must
 * not. "$" stands for the modern envelope. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <event2/event.h>
#include <jansson.h>

#include "base/jsonout.h"
#include "base/loop.h"
#include "mcp/progress.h"
#include "mcp/revision.h"
#include "mcp/stream.h"
#include "mcp/tool.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"

#define ENVELOPE "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define META(rest) "\"_meta\":{\"io.modelcontextprotocol/" rest "}"
#define CAPS "\"io.modelcontextprotocol/clientCapabilities\":{}"

#define ALL_MAX 5

struct a_case {
	const char *name;
	const char *revision;		/* shake hands for it first; NULL: do not */
	const char *method, *params;	/* params: inside the braces, NULL: absent */
	int code;			/* 0: a result */
	const char *has[ALL_MAX], *lacks[ALL_MAX];
};

static const struct a_case cases[] = {
	{ "ping before the handshake", NULL, "ping", NULL, 0, { "\"result\":{}}" }, { 0 } },
	{ "ping", "2025-06-18", "ping", NULL, 0, { "\"result\":{}}" }, { 0 } },
	{ "ping with params", "2024-11-05", "ping", "\"x\":1", 0, { "\"result\":{}}" }, { 0 } },
	{ "ping is not modern", NULL, "ping", "$", -32601, { 0 }, { 0 } },
	{ "initialize is not modern", NULL, "initialize", "$,\"protocolVersion\":\"2025-11-25\"", -32601, { 0 }, { 0 } },
	{ "unknown method", "2025-11-25", "no/such", NULL, -32601, { 0 }, { 0 } },
	{ "unknown method before the handshake", NULL, "no/such", NULL, -32601, { 0 }, { 0 } },
	{ "unknown modern method", NULL, "tasks/list", "$", -32601, { 0 }, { 0 } },
	{ "capabilities that the server lacks", "2025-11-25", "logging/setLevel", "\"level\":\"info\"", -32601, { 0 }, { 0 } },
	{ "listen is not legacy", "2025-11-25", "subscriptions/listen", "\"notifications\":{}", -32601, { 0 }, { 0 } },
	{ "listen without a filter", NULL, "subscriptions/listen", "$", -32602, { 0 }, { 0 } },
	{ "listen, filter of wrong types", NULL, "subscriptions/listen", "$,\"notifications\":{\"toolsListChanged\":1}", -32602, { 0 }, { 0 } },
	{ "listen to tasks without the extension", NULL, "subscriptions/listen", "$,\"notifications\":{\"taskIds\":[]}", -32021, { "\"data\":{\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}" }, { 0 } },
	{ "tasks without the extension", NULL, "tasks/get", "$,\"taskId\":\"t-1\"", -32021, { 0 }, { 0 } },
	{ "no prompts", "2025-11-25", "prompts/list", NULL, 0, { "\"result\":{\"prompts\":[]}" }, { 0 } },
	{ "no prompt of this name", "2025-11-25", "prompts/get", "\"name\":\"x\"", -32602, { 0 }, { 0 } },
	{ "no completion", NULL, "completion/complete", "$", -32601, { 0 }, { 0 } },
	{ "no subscribing", "2025-06-18", "resources/subscribe", "\"uri\":\"a:b\"", -32601, { 0 }, { 0 } },

	{ "resources, empty, legacy", "2024-11-05", "resources/list", NULL, 0, { "\"result\":{\"resources\":[]}" }, { "ttlMs" } },
	{ "resources, empty, modern", NULL, "resources/list", "$", 0, { "\"resources\":[]", "\"ttlMs\":0", "\"cacheScope\":\"private\"" }, { "nextCursor" } },
	{ "resources, a cursor that was made up", "2025-06-18", "resources/list", "\"cursor\":\"!\"", -32602, { 0 }, { 0 } },
	{ "templates", NULL, "resources/templates/list", "$", 0, { "\"uriTemplate\":\"mcp-python://{execution}#{name}{?bytes}\"", "{+path}", "ttlMs" }, { 0 } },
	{ "a path, legacy", "2025-11-25", "resources/read", "\"uri\":\"/workspace/a\"", -32002, { "a path is no uri" }, { 0 } },
	{ "a path as a uri", "2025-11-25", "resources/read", "\"uri\":\"file:///a\"", -32002, { "a path is no uri" }, { 0 } },
	{ "no resource, legacy", "2025-11-25", "resources/read", "\"uri\":\"a:b\"", -32002, { "\"data\":{\"uri\":\"a:b\"}" }, { 0 } },
	{ "no resource, modern", NULL, "resources/read", "$,\"uri\":\"a:b\"", -32602, { "\"data\":{\"uri\":\"a:b\"}" }, { 0 } },
	{ "read without uri", NULL, "resources/read", "$", -32602, { 0 }, { 0 } },
	{ "a state that was made up", NULL, "tools/call", "$,\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"},\"requestState\":\"x\"", -32602, { "requestState" }, { 0 } },
	{ "a state of the wrong type", NULL, "tools/call", "$,\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"},\"requestState\":{}", -32602, { "requestState" }, { 0 } },
	{ "a state in a legacy call", "2025-06-18", "tools/call", "\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"},\"requestState\":\"x\"", 0, { "structuredContent" }, { 0 } },
	{ "a notification's name as a request", "2025-11-25", "notifications/cancelled", NULL, -32601, { 0 }, { 0 } },

	{ "initialize R24", NULL, "initialize", "\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
	  0, { "\"protocolVersion\":\"2024-11-05\"", "\"serverInfo\":{\"name\":\"mcp-pythond\",\"version\"", "\"instructions\"" }, { "\"title\"", "resultType", "description" } },
	{ "initialize R03", NULL, "initialize", "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
	  0, { "\"protocolVersion\":\"2025-03-26\"" }, { "\"title\"" } },
	{ "initialize R06", NULL, "initialize", "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
	  0, { "\"protocolVersion\":\"2025-06-18\"", "\"title\"" }, { "description", "icons" } },
	{ "initialize R11", NULL, "initialize", "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
	  0, { "\"protocolVersion\":\"2025-11-25\"", "\"title\"", "description", "\"icons\":[{\"src\":\"data:" }, { "resultType", "_meta" } },
	{ "initialize with the modern one", NULL, "initialize", "\"protocolVersion\":\"2026-07-28\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
	  0, { "\"protocolVersion\":\"2025-11-25\"" }, { 0 } },
	{ "initialize with an unknown one", NULL, "initialize", "\"protocolVersion\":\"1999-01-01\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}",
	  0, { "\"protocolVersion\":\"2025-11-25\"" }, { 0 } },
	{ "initialize without version", NULL, "initialize", "\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}", -32602, { 0 }, { 0 } },
	{ "initialize without params", NULL, "initialize", NULL, -32602, { 0 }, { 0 } },
	{ "initialize, client without a name", NULL, "initialize", "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{}", -32602, { 0 }, { 0 } },
	{ "initialize twice", "2025-06-18", "initialize", "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}", -32600, { 0 }, { 0 } },

	{ "discover", NULL, "server/discover", "$", 0,
	  { "\"supportedVersions\":[\"2026-07-28\"]", "\"resultType\":\"complete\"", "\"ttlMs\":", "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"mcp-pythond\"", "\"icons\":[{\"src\":\"data:" }, { "serverInfo\":null" } },
	{ "discover after a handshake", "2024-11-05", "server/discover", "$", 0, { "\"cacheScope\":\"public\"" }, { 0 } },
	{ "discover without an envelope", NULL, "server/discover", NULL, -32602, { 0 }, { 0 } },
	{ "discover without an envelope in a session", "2025-11-25", "server/discover", "\"x\":1", -32602, { 0 }, { 0 } },
	{ "envelope without capabilities", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\""), -32602, { "clientCapabilities" }, { 0 } },
	{ "envelope, capabilities no object", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":1"), -32602, { 0 }, { 0 } },
	{ "envelope, version a number", NULL, "tools/list", META("protocolVersion\":1," CAPS), -32602, { 0 }, { 0 } },
	{ "envelope without a version", NULL, "tools/list", "\"_meta\":{" CAPS "}", -32602, { "protocolVersion" }, { 0 } },
	{ "envelope, bad clientInfo", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\"," CAPS ",\"io.modelcontextprotocol/clientInfo\":{\"name\":1}"), -32602, { 0 }, { 0 } },
	{ "envelope, good clientInfo", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\"," CAPS ",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\",\"version\":\"2\"}"), 0, { "run_script" }, { 0 } },
	{ "envelope, bad log level", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\"," CAPS ",\"io.modelcontextprotocol/logLevel\":\"loud\""), -32602, { 0 }, { 0 } },
	{ "envelope, good log level", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\"," CAPS ",\"io.modelcontextprotocol/logLevel\":\"debug\""), 0, { 0 }, { 0 } },
	{ "envelope, token a fraction", NULL, "tools/list", META("protocolVersion\":\"2026-07-28\"," CAPS ",\"progressToken\":1.5"), -32602, { 0 }, { 0 } },
	{ "_meta no object", "2025-11-25", "tools/list", "\"_meta\":7", -32602, { 0 }, { 0 } },
	{ "unknown modern version", NULL, "tools/list", META("protocolVersion\":\"2099-01-01\"," CAPS), -32022, { "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"2099-01-01\"}" }, { 0 } },
	{ "a legacy version in the envelope", "2025-11-25", "tools/list", META("protocolVersion\":\"2025-11-25\"," CAPS), -32022, { "\"requested\":\"2025-11-25\"" }, { 0 } },
	{ "unsupported comes after malformed", NULL, "tools/list", META("protocolVersion\":\"2099-01-01\""), -32602, { 0 }, { 0 } },

	{ "tools/list before the handshake", NULL, "tools/list", NULL, -32600, { "not initialized" }, { 0 } },
	{ "tools/call before the handshake", NULL, "tools/call", "\"name\":\"run_script\"", -32600, { 0 }, { 0 } },
	{ "tools R24", "2024-11-05", "tools/list", NULL, 0, { "\"name\":\"run_script\"", "\"inputSchema\":{\"type\":\"object\"" }, { "outputSchema", "\"title\"", "annotations", "ttlMs" } },
	{ "tools R03", "2025-03-26", "tools/list", NULL, 0, { "\"annotations\":{\"title\":" }, { "outputSchema", "\"run_script\",\"title\"" } },
	{ "tools R06", "2025-06-18", "tools/list", NULL, 0, { "\"annotations\"", "\"run_script\",\"title\"" }, { "outputSchema", "resultType", "ttlMs", "icons" } },
	{ "tools R11", "2025-11-25", "tools/list", "", 0, { "\"annotations\"", "\"icons\":[{\"src\":\"data:image/svg+xml;base64,PHN2Zy" }, { "_meta", "execution\":" } },
	{ "tools R26", NULL, "tools/list", "$", 0, { "\"resultType\":\"complete\"", "\"ttlMs\":300000", "\"cacheScope\":\"private\"", "\"run_script\",\"title\":\"Run a Python script\",\"icons\"" }, { "nextCursor" } },
	{ "the empty cursor", "2025-11-25", "tools/list", "\"cursor\":\"\"", 0, { "run_script" }, { 0 } },
	{ "a cursor that was made up", "2025-11-25", "tools/list", "\"cursor\":\"abc\"", -32602, { 0 }, { 0 } },
	{ "a cursor of the wrong type", NULL, "tools/list", "$,\"cursor\":1", -32602, { 0 }, { 0 } },

	{ "unknown tool", "2025-11-25", "tools/call", "\"name\":\"nope\",\"arguments\":{}", -32602, { "unknown tool" }, { 0 } },
	{ "tool name missing", "2025-11-25", "tools/call", "\"arguments\":{}", -32602, { 0 }, { 0 } },
	{ "tool name with NUL", "2025-11-25", "tools/call", "\"name\":\"run_script\\u0000\"", -32602, { 0 }, { 0 } },
	{ "tool name a number", NULL, "tools/call", "$,\"name\":7", -32602, { 0 }, { 0 } },
	{ "arguments an array", "2025-11-25", "tools/call", "\"name\":\"run_script\",\"arguments\":[1]", -32602, { 0 }, { 0 } },
	{ "no arguments", "2025-11-25", "tools/call", "\"name\":\"run_script\"", 0, { "\"isError\":true", "script is required" }, { 0 } },
	{ "call R24", "2024-11-05", "tools/call", "\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"}", 0, { "\"content\":[{\"type\":\"text\",\"text\":\"stdout:\\nhi\\nresult: 42\\n[ok", "\"isError\":false" }, { "structuredContent", "resultType" } },
	{ "call R03", "2025-03-26", "tools/call", "\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"}", 0, { "result: 42" }, { "structuredContent" } },
	{ "call R06", "2025-06-18", "tools/call", "\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"}", 0, { "\"structuredContent\":{\"execution_id\":\"x-", "\"status\":\"ok\"", "\"result\":{\"repr\":\"42\",\"json\":42}" }, { "resultType" } },
	{ "call R11 with a task asked for", "2025-11-25", "tools/call", "\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"},\"task\":{\"ttl\":1}", 0, { "structuredContent" }, { "task\"" } },
	{ "call R26", NULL, "tools/call", "$,\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"}", 0, { "\"resultType\":\"complete\"", "io.modelcontextprotocol/serverInfo", "structuredContent" }, { "ttlMs", "icons" } },
	{ "call R26 in a legacy session", "2024-11-05", "tools/call", "$,\"name\":\"run_script\",\"arguments\":{\"script\":\"hi\"}", 0, { "\"resultType\":\"complete\"", "structuredContent" }, { 0 } },
};

/* The request as a line; "$" at the start of params becomes the envelope. */
static void
write_request(const struct a_case *c, char *to, size_t size)
{
	const char *params = c->params, *envelope = "";

	if (params && *params == '$') {
		params++;
		envelope = ENVELOPE;
	}
	snprintf(to, size, "{\"jsonrpc\":\"2.0\",\"id\":\"q\\u0031\",\"method\":\"%s\"%s%s%s%s}",
		 c->method, params ? ",\"params\":{" : "", envelope, params ? params : "",
		 params ? "}" : "");
}

static void
check_answer(const struct a_case *c, const char *line)
{
	json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	json_t *error = json_object_get(answer, "error");

	assert_non_null(answer);
	if (!strstr(line, "\"id\":\"q\\u0031\""))
		fail_msg("%s: id lost: %s", c->name, line);
	if ((int)json_integer_value(json_object_get(error, "code")) != c->code)
		fail_msg("%s: %s", c->name, line);
	assert_true(!error == !!json_object_get(answer, "result"));
	for (size_t i = 0; i < ALL_MAX; i++) {
		if (c->has[i] && !strstr(line, c->has[i]))
			fail_msg("%s: no %s in %s", c->name, c->has[i], line);
		if (c->lacks[i] && strstr(line, c->lacks[i]))
			fail_msg("%s: %s in %s", c->name, c->lacks[i], line);
	}
	json_decref(answer);
}

static void
every_message_has_its_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct a_case *c = &cases[i];
		struct bench *bench = bench_new();
		char request[1024];

		if (c->revision)
			bench_initialize(bench, c->revision);
		write_request(c, request, sizeof(request));
		bench_say(bench, request);
		if (!bench_unread(bench))
			bench_wait(bench, 1);
		check_answer(c, bench_next(bench));
		assert_int_equal(bench_unread(bench), 0);
		assert_int_equal(bench_in_flight(bench), 0);
		bench_free(bench);
	}
}

static void
nothing_answers_what_is_no_request(void **state)
{
	static const char *const lines[] = {
		"", " \t\r", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/none-such\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}",
		("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"run_script\","
		 "\"arguments\":{\"script\":\"x\"}}}"),
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":{}}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
	};
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-11-25");
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		bench_say(bench, lines[i]);
	bench_turn(bench);
	assert_int_equal(bench_unread(bench), 0);
	assert_int_equal(fake_engine_record()->started, 0);
	bench_free(bench);
}

#define CALL(id, script) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\"," \
	"\"params\":{\"name\":\"run_script\",\"arguments\":{\"script\":\"" script "\"}}}"
#define CANCEL(id) "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"," \
	"\"params\":{\"requestId\":" id "}}"
#define MODERN_CALL(id, script) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\"," \
	"\"params\":{" ENVELOPE ",\"name\":\"run_script\",\"arguments\":{\"script\":\"" script "\"}}}"

static void
a_cancelled_call_is_never_answered(void **state)
{
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-06-18");
	bench_say(bench, CALL("1", "hang"));
	bench_say(bench, CALL("\"1\"", "hang"));
	bench_say(bench, MODERN_CALL("\"m\"", "hang"));
	assert_int_equal(bench_in_flight(bench), 3);
	bench_say(bench, CANCEL("\"\\u0031\""));	/* the string, spelled otherwise */
	assert_int_equal(bench_in_flight(bench), 2);
	bench_say(bench, CANCEL("1"));
	bench_say(bench, CANCEL("1"));
	assert_int_equal(bench_idle_calls(bench), 0);
	bench_say(bench, CANCEL("\"m\""));
	assert_int_equal(bench_in_flight(bench), 0);
	assert_int_equal(bench_idle_calls(bench), 1);
	/* Output that it writes while it is being stopped must reach no client. */
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
			 "\"_meta\":{\"progressToken\":\"p\"},\"name\":\"run_script\","
			 "\"arguments\":{\"script\":\"hang\"}}}");
	bench_say(bench, CANCEL("2"));
	bench_turn(bench);
	assert_int_equal(bench_unread(bench), 0);
	assert_int_equal(fake_engine_record()->cancelled, 4);
	assert_int_equal(fake_engine_record()->last_reason, CANCEL_BY_CLIENT);
	bench_say(bench, CALL("1", "again"));	/* the id is free */
	bench_wait(bench, 1);
	assert_non_null(strstr(bench_next(bench), "again"));
	bench_free(bench);
}

static void
an_id_in_flight_is_refused(void **state)
{
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-11-25");
	bench_say(bench, CALL("7", "hang"));
	bench_say(bench, CALL("7", "x"));
	assert_non_null(strstr(bench_next(bench), "\"id\":7,\"error\":{\"code\":-32600"));
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}");
	assert_non_null(strstr(bench_next(bench), "\"code\":-32600"));
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"ping\"}");
	assert_non_null(strstr(bench_next(bench), "\"id\":\"7\",\"result\":{}"));
	assert_int_equal(fake_engine_record()->started, 1);
	bench_free(bench);
	assert_int_equal(fake_engine_record()->cancelled, 1);
	assert_int_equal(fake_engine_record()->last_reason, CANCEL_DISCONNECTED);
}

static void
calls_in_flight_are_bounded(void **state)
{
	struct bench *bench = bench_new();
	char line[256];

	(void)state;
	bench_initialize(bench, "2025-11-25");
	for (int i = 0; i <= STREAM_CALLS_MAX; i++) {
		assert_int_equal(bench_unread(bench), 0);
		snprintf(line, sizeof(line), CALL("%d", "hang"), i);
		bench_say(bench, line);
	}
	snprintf(line, sizeof(line), "\"id\":%d,\"error\":{\"code\":-32603",
		 STREAM_CALLS_MAX);
	assert_non_null(strstr(bench_next(bench), line));
	assert_int_equal(bench_in_flight(bench), STREAM_CALLS_MAX);
	bench_free(bench);
}

static void
bytes_in_flight_are_bounded(void **state)
{
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-03-26");
	bench_set_held_most(bench, 2 * strlen(CALL("1", "hang")));
	bench_say(bench, CALL("1", "hang"));
	bench_say(bench, "[" CALL("2", "hang") "]");	/* two bytes more than there is room */
	assert_non_null(strstr(bench_next(bench), "-32603"));
	bench_say(bench, CALL("2", "hang"));
	bench_say(bench, CALL("3", "hang"));
	assert_non_null(strstr(bench_next(bench), "\"id\":3,\"error\":{\"code\":-32603"));
	bench_say(bench, CANCEL("1"));
	bench_say(bench, CALL("3", "hang"));
	assert_int_equal(bench_unread(bench), 0);
	assert_int_equal(bench_in_flight(bench), 2);
	bench_free(bench);
}

/* One message may be almost the whole line, so each is charged with all of it. */
static void
a_batch_is_charged_with_its_line(void **state)
{
	static const char line[] = "[" CALL("1", "hang") "," CALL("2", "hang") "]";
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2025-03-26");
	bench_set_held_most(bench, 2 * strlen(line) - 1);
	bench_say(bench, line);
	assert_int_equal(bench_in_flight(bench), 1);
	bench_say(bench, CANCEL("1"));
	bench_set_held_most(bench, 2 * strlen(line));
	bench_say(bench, line);
	assert_int_equal(bench_in_flight(bench), 2);
	bench_free(bench);
}

static void
a_batch_is_answered_by_one_array(void **state)
{
	static const char *const revisions[] = { "2024-11-05", "2025-03-26" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct bench *bench = bench_new();
		json_t *answer;

		bench_initialize(bench, revisions[i]);
		bench_say(bench, "[" CALL("1", "one") ",{\"jsonrpc\":\"2.0\",\"id\":2,"
			  "\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"method\":\"x\"},3,"
			  MODERN_CALL("4", "x") "," CALL("5", "hang") "]");
		bench_turn(bench);
		assert_int_equal(bench_unread(bench), 0);	/* one call is still owed */
		bench_say(bench, CANCEL("5"));
		if (!bench_unread(bench))
			bench_wait(bench, 1);
		answer = bench_next_json(bench);
		assert_true(json_is_array(answer));
		assert_int_equal(json_array_size(answer), 4);
		json_decref(answer);
		bench_say(bench, "[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]");
		bench_say(bench, "[" CALL("6", "hang") "]");
		bench_say(bench, CANCEL("6"));
		bench_turn(bench);
		assert_int_equal(bench_unread(bench), 0);
		bench_say(bench, "[]");
		assert_non_null(strstr(bench_next(bench), "-32600"));
		bench_say(bench, "[{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"initialize\"}]");
		assert_non_null(strstr(bench_next(bench), "-32600"));
		bench_say(bench, "[" CALL("9", "hang") "]");	/* still there at the end */
		bench_free(bench);
	}
}

static void
other_revisions_know_no_batches(void **state)
{
	static const char *const revisions[] = { NULL, "2025-06-18", "2025-11-25" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct bench *bench = bench_new();
		json_t *answer;

		if (revisions[i])
			bench_initialize(bench, revisions[i]);
		bench_say(bench, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]");
		answer = bench_next_json(bench);
		assert_null(json_object_get(answer, "id"));
		assert_int_equal(json_integer_value(json_object_get(
			json_object_get(answer, "error"), "code")), -32600);
		json_decref(answer);
		assert_int_equal(bench_unread(bench), 0);
		bench_free(bench);
	}
}

static void
progress_shows_the_newest_line(void **state)
{
	struct bench *bench = bench_new();
	json_t *note, *params;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
		  "{\"name\":\"run_script\",\"arguments\":{\"script\":\"say one\\ntwo\\n\"},"
		  "\"_meta\":{\"progressToken\":0}}}");
	bench_wait(bench, 1);
	note = bench_next_json(bench);
	assert_string_equal(json_string_value(json_object_get(note, "method")),
			    "notifications/progress");
	params = json_object_get(note, "params");
	assert_true(json_is_integer(json_object_get(params, "progressToken")));
	assert_int_equal(json_integer_value(json_object_get(params, "progressToken")), 0);
	assert_string_equal(json_string_value(json_object_get(params, "message")), "two");
	json_decref(note);
	bench_say(bench, CALL("2", "say three"));	/* no token, no progress */
	bench_say(bench, CANCEL("1"));
	bench_turn(bench);
	assert_int_equal(bench_unread(bench), 0);
	bench_free(bench);
}

static void
progress_has_no_message_in_the_first_revision(void **state)
{
	struct bench *bench = bench_new();

	(void)state;
	bench_initialize(bench, "2024-11-05");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
		  "{\"name\":\"run_script\",\"arguments\":{\"script\":\"say one\"},"
		  "\"_meta\":{\"progressToken\":\"t\\n\"}}}");
	bench_wait(bench, 1);
	assert_string_equal(bench_next(bench),
			    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
			    "\"params\":{\"progressToken\":\"t\\n\",\"progress\":1}}");
	bench_free(bench);
}

/* Output itself, for clients that ask for it: whole characters, with their offsets. */
static void
progress_may_carry_the_output(void **state)
{
	struct bench *bench = bench_new();
	json_t *note, *output;

	(void)state;
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
		  "{\"name\":\"run_script\",\"arguments\":{\"script\":\"say a\xc3\xa9\\nb\"},"
		  "\"_meta\":{\"progressToken\":\"t\",\"mcp-pythond/stream\":true,"
		  "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		  "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
	bench_wait(bench, 1);
	note = bench_next_json(bench);
	output = json_object_get(json_object_get(json_object_get(note, "params"), "_meta"),
				 "mcp-pythond/output");
	assert_string_equal(json_string_value(json_object_get(output, "stream")), "stdout");
	assert_string_equal(json_string_value(json_object_get(output, "text")),
			    "a\xc3\xa9\nb");
	assert_int_equal(json_integer_value(json_object_get(output, "offset")), 0);
	json_decref(note);
	bench_free(bench);
}

struct sent {
	char text[4096];
	size_t len;
	unsigned int n;
};

static void
on_sent(void *arg, struct jsonout *message)
{
	struct sent *sent = arg;
	json_t *note = json_loadb(message->at, message->len, 0, NULL), *output;

	output = json_object_get(json_object_get(json_object_get(note, "params"), "_meta"),
				 "mcp-pythond/output");
	assert_int_equal(json_integer_value(json_object_get(output, "offset")), sent->len);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(note, "params"),
							    "progress")), ++sent->n);
	memcpy(sent->text + sent->len, json_string_value(json_object_get(output, "text")),
	       json_string_length(json_object_get(output, "text")));
	sent->len += json_string_length(json_object_get(output, "text"));
	json_decref(note);
}

static void
pieces_join_to_the_text_up_to_their_bound(void **state)
{
	static const char bytes[] = "a\xc3\xa9\xff\xf0\x9f\x90\x8d\xe2\x82z past the bound";
	static const char text[] = "a\xc3\xa9\xef\xbf\xbd\xf0\x9f\x90\x8d\xef\xbf\xbdz";
	struct loop *loop = loop_new(false);
	json_t *token = json_integer(7);
	struct sent sent = { .n = 0 };
	const struct mcp_progress_options options = {
		.base = loop_base(loop), .revision = revision_find("2026-07-28"),
		.token = token, .streams = true, .stream_max = 11, .send = on_sent,
		.arg = &sent,
	};
	struct mcp_progress *progress = mcp_progress_new(&options);
	time_t most = time(NULL) + 60;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		size_t before = sent.n;

		mcp_progress_output(progress, STREAM_STDOUT, bytes + i, 1);
		if (i == 2 || i == 3 || i == 7 || i == 10)	/* a character is whole */
			while (sent.n == before && time(NULL) < most)
				event_base_loop(loop_base(loop), EVLOOP_ONCE);
	}
	assert_int_equal(sent.len, sizeof(text) - 1);
	assert_memory_equal(sent.text, text, sent.len);
	mcp_progress_free(progress);
	json_decref(token);
	loop_free(loop);
}

struct seen {
	char text[512];
};

static void
on_seen(void *arg, struct jsonout *message)
{
	struct seen *seen = arg;
	json_t *note = json_loadb(message->at, message->len, 0, NULL);
	json_t *params = json_object_get(note, "params"), *total = json_object_get(params, "total");
	size_t len = strlen(seen->text);

	snprintf(seen->text + len, sizeof(seen->text) - len, "%g/%g %s\n",
		 json_number_value(json_object_get(params, "progress")), json_number_value(total),
		 json_string_value(json_object_get(params, "message")));
	json_decref(note);
}

/* Notes of the service come before a tool's own progress when the tool begins late. */
static void
no_text_of_a_tool_is_lost_behind_notes(void **state)
{
	struct loop *loop = loop_new(false);
	json_t *token = json_integer(7);
	struct seen seen = { "" };
	const struct mcp_progress_options options = {
		.base = loop_base(loop), .revision = revision_find("2026-07-28"), .token = token,
		.send = on_seen, .arg = &seen,
	};
	struct mcp_progress *progress = mcp_progress_new(&options);
	static const struct tool_progress said[] = {
		{ .is_note = true, .message = "waits" }, { .is_note = true, .message = "still waits" },
		{ .progress = 1, .total = 9, .message = "one" },
		{ .progress = 2, .total = 9, .message = "two" },
		{ .progress = 2, .total = 9, .message = "no step" },
		{ .progress = 1, .total = 9, .message = "a step back" },
		{ .progress = 8, .total = 9, .message = "eight" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
		mcp_progress_say(progress, &said[i]);
	assert_string_equal(seen.text, "1/0 waits\n2/0 still waits\n3/0 one\n4/0 two\n8/9 eight\n");
	mcp_progress_free(progress);
	json_decref(token);
	loop_free(loop);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_has_its_answer),
		cmocka_unit_test(nothing_answers_what_is_no_request),
		cmocka_unit_test(a_cancelled_call_is_never_answered),
		cmocka_unit_test(an_id_in_flight_is_refused),
		cmocka_unit_test(calls_in_flight_are_bounded),
		cmocka_unit_test(bytes_in_flight_are_bounded),
		cmocka_unit_test(a_batch_is_charged_with_its_line),
		cmocka_unit_test(a_batch_is_answered_by_one_array),
		cmocka_unit_test(other_revisions_know_no_batches),
		cmocka_unit_test(progress_shows_the_newest_line),
		cmocka_unit_test(progress_has_no_message_in_the_first_revision),
		cmocka_unit_test(progress_may_carry_the_output),
		cmocka_unit_test(pieces_join_to_the_text_up_to_their_bound),
		cmocka_unit_test(no_text_of_a_tool_is_lost_behind_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
