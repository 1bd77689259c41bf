/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "http/head.h"
#include "http/ladder.h"
#include "mcp/jsonrpc.h"
#include "mcp/revision.h"

#define MODERN "2026-07-28"
#define REFUSE HTTP_WAY_REFUSE
#define NAMED "\"io.modelcontextprotocol/protocolVersion\":"
#define CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define META(v) "\"_meta\":{" NAMED v "," CAPABILITIES "}"
#define CLAIM META("\"" MODERN "\"")
#define REQUEST(method, params) \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":{" params "}}"
#define NOTE(method, params) \
	"{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" params "}}"
#define LIST REQUEST("tools/list", CLAIM)
#define CALL REQUEST("tools/call", "\"name\":\"run_script\"," CLAIM)
#define INITIALIZE REQUEST("initialize", "\"protocolVersion\":\"2025-11-25\"")

struct row {
	const char *what, *body;
	const char *version, *method, *name, *session;	/* headers */
	enum http_way way;
	int code;
};

static const struct row rows[] = {
	/* 5, 6: JSON, one message, a legal id */
	{ "no JSON", "{", MODERN, "tools/list", NULL, NULL, REFUSE, -32700 },
	{ "nothing", "", NULL, NULL, NULL, NULL, REFUSE, -32700 },
	{ "no object", "1", NULL, NULL, NULL, NULL, REFUSE, -32600 },
	{ "id null", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", NULL, NULL, NULL, NULL, REFUSE, -32600 },
	{ "id 1.5", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", NULL, NULL, NULL, NULL, REFUSE, -32600 },
	{ "batch", "[" LIST "]", MODERN, "tools/list", NULL, NULL, REFUSE, -32600 },
	{ "batch without a session", "[" INITIALIZE "]", NULL, NULL, NULL, NULL, REFUSE, -32600 },
	{ "batch in a session", "[" LIST "]", NULL, NULL, NULL, "x", HTTP_WAY_SESSION, 0 },
	{ "batch in a session, strange version", "[" LIST "]", "1.0", NULL, NULL, "x", REFUSE, -32600 },
	{ "answer", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", NULL, NULL, NULL, "x", HTTP_WAY_SESSION, 0 },
	{ "answer, modern", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", MODERN, NULL, NULL, "x", REFUSE, -32600 },

	/* 7: which era */
	{ "modern", LIST, MODERN, "tools/list", NULL, NULL, HTTP_WAY_MODERN, 0 },
	{ "modern, a session is not looked at", LIST, MODERN, "tools/list", NULL, "x", HTTP_WAY_MODERN, 0 },
	{ "modern header, no claim", REQUEST("tools/list", ""), MODERN, "tools/list", NULL, NULL, REFUSE, -32602 },
	{ "header of the future, no claim", REQUEST("tools/list", ""), "2030-01-01", NULL, NULL, "x", REFUSE, -32602 },
	{ "initialize with a modern header", INITIALIZE, MODERN, NULL, NULL, NULL, REFUSE, -32020 },
	{ "initialize", INITIALIZE, NULL, NULL, NULL, NULL, HTTP_WAY_INITIALIZE, 0 },
	{ "initialize with a legacy header", INITIALIZE, "2025-03-26", NULL, NULL, NULL, HTTP_WAY_INITIALIZE, 0 },
	{ "initialize with a claim", REQUEST("initialize", CLAIM), MODERN, "initialize", NULL, NULL, HTTP_WAY_MODERN, 0 },
	{ "initialize in a session", INITIALIZE, NULL, NULL, NULL, "x", HTTP_WAY_SESSION, 0 },
	{ "legacy", REQUEST("tools/list", ""), "2025-06-18", NULL, NULL, "x", HTTP_WAY_SESSION, 0 },
	{ "legacy without a header", REQUEST("tools/list", ""), NULL, NULL, NULL, "x", HTTP_WAY_SESSION, 0 },
	{ "legacy without a session", REQUEST("tools/list", ""), NULL, NULL, NULL, NULL, HTTP_WAY_SESSION, 0 },
	{ "legacy, unknown version", REQUEST("tools/list", ""), "2025-01-01", NULL, NULL, "x", REFUSE, -32600 },
	{ "legacy, no version at all", REQUEST("tools/list", ""), "latest", NULL, NULL, "x", REFUSE, -32600 },
	{ "discover without a claim", REQUEST("server/discover", ""), NULL, NULL, NULL, NULL, REFUSE, -32602 },
	{ "capabilities, no version", REQUEST("tools/list", "\"_meta\":{" CAPABILITIES "}"), NULL, NULL, NULL, NULL, REFUSE, -32602 },

	/* 8: the envelope */
	{ "no capabilities", REQUEST("tools/list", "\"_meta\":{" NAMED "\"" MODERN "\"}"), MODERN, "tools/list", NULL, NULL, REFUSE, -32602 },
	{ "version is a number", REQUEST("tools/list", META("1")), MODERN, "tools/list", NULL, NULL, REFUSE, -32602 },
	{ "8 is before 9", REQUEST("tools/list", "\"_meta\":{" NAMED "\"" MODERN "\"}"), NULL, NULL, NULL, NULL, REFUSE, -32602 },

	/* 9: the header says the same */
	{ "no version header", LIST, NULL, "tools/list", NULL, NULL, REFUSE, -32020 },
	{ "another version", LIST, "2025-11-25", "tools/list", NULL, NULL, REFUSE, -32020 },
	{ "9 is before 10", REQUEST("tools/list", META("\"2030-01-01\"")), MODERN, "tools/list", NULL, NULL, REFUSE, -32020 },

	/* 10: a version that is served */
	{ "future", REQUEST("tools/list", META("\"2030-01-01\"")), "2030-01-01", "tools/list", NULL, NULL, REFUSE, -32022 },
	{ "legacy in the envelope", REQUEST("tools/list", META("\"2025-11-25\"")), "2025-11-25", "tools/list", NULL, NULL, REFUSE, -32022 },
	{ "nonsense in the envelope", REQUEST("tools/list", META("\"x\"")), "x", "tools/list", NULL, NULL, REFUSE, -32022 },
	{ "10 is before 11", REQUEST("tools/list", META("\"2030-01-01\"")), "2030-01-01", NULL, NULL, NULL, REFUSE, -32022 },

	/* 11: the method */
	{ "no method header", LIST, MODERN, NULL, NULL, NULL, REFUSE, -32020 },
	{ "another method", LIST, MODERN, "tools/call", NULL, NULL, REFUSE, -32020 },
	{ "another case", LIST, MODERN, "Tools/List", NULL, NULL, REFUSE, -32020 },
	{ "unknown method", REQUEST("x/y", CLAIM), MODERN, "x/y", NULL, NULL, HTTP_WAY_MODERN, 0 },

	/* 12: the name */
	{ "name", CALL, MODERN, "tools/call", "run_script", NULL, HTTP_WAY_MODERN, 0 },
	{ "name in base64", CALL, MODERN, "tools/call", "=?base64?cnVuX3NjcmlwdA==?=", NULL, HTTP_WAY_MODERN, 0 },
	{ "no name header", CALL, MODERN, "tools/call", NULL, NULL, REFUSE, -32020 },
	{ "another name", CALL, MODERN, "tools/call", "run_scripts", NULL, REFUSE, -32020 },
	{ "bad base64", CALL, MODERN, "tools/call", "=?base64?cnVuX3NjcmlwdA=?=", NULL, REFUSE, -32020 },
	{ "no name in the body", REQUEST("tools/call", CLAIM), MODERN, "tools/call", "x", NULL, REFUSE, -32020 },
	{ "a number in the body", REQUEST("tools/call", "\"name\":1," CLAIM), MODERN, "tools/call", "1", NULL, REFUSE, -32020 },
	{ "uri", REQUEST("resources/read", "\"uri\":\"a:b\"," CLAIM), MODERN, "resources/read", "a:b", NULL, HTTP_WAY_MODERN, 0 },
	{ "another uri", REQUEST("resources/read", "\"uri\":\"a:b\"," CLAIM), MODERN, "resources/read", "a:c", NULL, REFUSE, -32020 },
	{ "prompt", REQUEST("prompts/get", "\"name\":\"p\"," CLAIM), MODERN, "prompts/get", "q", NULL, REFUSE, -32020 },
	{ "task", REQUEST("tasks/get", "\"taskId\":\"t\"," CLAIM), MODERN, "tasks/get", "t", NULL, HTTP_WAY_MODERN, 0 },
	{ "another task", REQUEST("tasks/cancel", "\"taskId\":\"t\"," CLAIM), MODERN, "tasks/cancel", "u", NULL, REFUSE, -32020 },
	{ "task without a header", REQUEST("tasks/update", "\"taskId\":\"t\"," CLAIM), MODERN, "tasks/update", NULL, NULL, REFUSE, -32020 },
	{ "a method without a name", LIST, MODERN, "tools/list", "whatever", NULL, HTTP_WAY_MODERN, 0 },

	/* notifications */
	{ "note, header alone", NOTE("notifications/cancelled", "\"requestId\":1"), MODERN, NULL, NULL, NULL, HTTP_WAY_ACCEPT, 0 },
	{ "note, claim", NOTE("notifications/cancelled", CLAIM), MODERN, "notifications/cancelled", NULL, NULL, HTTP_WAY_ACCEPT, 0 },
	{ "note, claim without a header", NOTE("notifications/cancelled", CLAIM), NULL, NULL, NULL, NULL, REFUSE, -32020 },
	{ "note, another method", NOTE("notifications/cancelled", CLAIM), MODERN, "x", NULL, NULL, REFUSE, -32020 },
	{ "note, future", NOTE("x", META("\"2030-01-01\"")), "2030-01-01", NULL, NULL, NULL, REFUSE, -32022 },
	{ "note, legacy", NOTE("notifications/initialized", ""), "2025-11-25", NULL, NULL, "x", HTTP_WAY_SESSION, 0 },
	{ "note, neither", NOTE("notifications/initialized", ""), NULL, NULL, NULL, NULL, HTTP_WAY_SESSION, 0 },
	{ "note, strange version", NOTE("notifications/initialized", ""), "x", NULL, NULL, "x", REFUSE, -32600 },
};

static void
every_row_of_the_ladder_holds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *row = &rows[i];
		struct http_head head = { .value = { [HTTP_VERSION] = row->version,
						     [HTTP_METHOD] = row->method,
						     [HTTP_NAME] = row->name,
						     [HTTP_SESSION] = row->session } };
		struct http_verdict verdict;
		struct jsonrpc_line line;

		jsonrpc_parse(row->body, strlen(row->body), &line);
		http_ladder(&head, &line, &verdict);
		if (verdict.way != row->way || verdict.code != row->code)
			fail_msg("%s: way %d, code %d (%s)", row->what, verdict.way,
				 verdict.code, verdict.text ? verdict.text : "");
		if (verdict.way == REFUSE) {
			assert_int_equal(verdict.status, 400);
			assert_non_null(verdict.text);
			assert_true((verdict.code == -32022) == (verdict.requested != NULL));
		}
		if (verdict.way == HTTP_WAY_MODERN)
			assert_string_equal(verdict.revision->name, MODERN);
		jsonrpc_line_done(&line);
	}
}

static void
a_refusal_names_the_request(void **state)
{
	struct http_head head = { .value = { NULL } };
	struct http_verdict verdict;
	struct jsonrpc_line line;

	(void)state;
	jsonrpc_parse(LIST, strlen(LIST), &line);
	http_ladder(&head, &line, &verdict);
	assert_string_equal(verdict.id, "7");
	jsonrpc_line_done(&line);
}

static void
nothing_of_the_protocol_may_be_said_twice(void **state)
{
	static const struct {
		const char *body;
		int code;
	} twice[] = { { LIST, -32020 }, { REQUEST("tools/list", ""), -32600 },
		      { NOTE("x", CLAIM), -32020 }, { "[" LIST "]", -32600 },
		      { INITIALIZE, -32600 } };

	(void)state;
	for (size_t i = 0; i < sizeof(twice) / sizeof(*twice); i++) {
		struct http_head head = { .mcp_twice = true };
		struct http_verdict verdict;
		struct jsonrpc_line line;

		head.value[HTTP_METHOD] = "tools/list";
		head.value[HTTP_SESSION] = "x";
		head.value[HTTP_VERSION] = twice[i].code == -32020 ? MODERN : "2025-11-25";
		jsonrpc_parse(twice[i].body, strlen(twice[i].body), &line);
		http_ladder(&head, &line, &verdict);
		assert_int_equal(verdict.way, REFUSE);
		assert_int_equal(verdict.code, twice[i].code);
		jsonrpc_line_done(&line);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_ladder_holds),
		cmocka_unit_test(a_refusal_names_the_request),
		cmocka_unit_test(nothing_of_the_protocol_may_be_said_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
