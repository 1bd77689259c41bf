/* SPDX-License-Identifier: Apache-2.0 */
/* What tools can say beyond one answer, in each era's shape: questions, tasks, subscriptions,
 * calls sent again, resources, prompts. Over the catalog of test_catalog.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "mcp/conversation.h"
#include "mcp/catalog.h"
#include "mcp/cursor.h"
#include "policy/config.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/mcp/test_catalog.h"
#include "tests/unit/tools/fake_engine.h"

#define ELICITS "\"elicitation\":{\"form\":{}}"
#define ROOTS "\"roots\":{}"
#define TASKS "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"
#define LONG 2048

/* A modern request; rest: more params, beginning with a comma, or "". */
static void
ask_modern(struct bench *bench, const char *id, const char *method, const char *capabilities,
	   const char *rest)
{
	char line[4 * LONG];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{\"_meta\":{"
		 "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		 "\"io.modelcontextprotocol/clientCapabilities\":{%s}}%s}}",
		 id, method, capabilities, rest);
	bench_say(bench, line);
}

static void
call_modern(struct bench *bench, const char *id, const char *tool, const char *capabilities,
	    const char *rest)
{
	char more[3 * LONG];

	snprintf(more, sizeof(more), ",\"name\":\"%s\"%s", tool, rest);
	ask_modern(bench, id, "tools/call", capabilities, more);
}

static void
ask_legacy(struct bench *bench, const char *id, const char *method, const char *params)
{
	char line[2 * LONG];

	snprintf(line, sizeof(line),
		 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s}}", id, method,
		 params);
	bench_say(bench, line);
}

static const char *
next_line(struct bench *bench)
{
	const char *line;

	if (!bench_unread(bench))
		bench_wait(bench, 1);
	line = bench_next(bench);
	assert_non_null(line);
	return line;
}

static void
expect(struct bench *bench, const char *part)
{
	const char *line = next_line(bench);

	if (!strstr(line, part))
		fail_msg("no %s in %s", part, line);
}

static void
expect_nothing(struct bench *bench)
{
	bench_turn(bench);
	bench_turn(bench);
	if (bench_unread(bench))
		fail_msg("unexpected: %s", bench_next(bench));
}

/* The string member of the result of the next line; path ends with NULL. */
static char *
next_text(struct bench *bench, const char *key)
{
	const char *line = next_line(bench);
	json_t *answer = json_loads(line, 0, NULL);
	const json_t *value = json_object_get(json_object_get(answer, "result"), key);
	char *text;

	if (!json_is_string(value))
		fail_msg("no %s in %s", key, line);
	text = strdup(json_string_value(value));
	json_decref(answer);
	return text;
}

static void
retry(struct bench *bench, const char *id, const char *tool, const char *capabilities,
      const char *state, const char *responses)
{
	char rest[2 * LONG];

	snprintf(rest, sizeof(rest), ",\"requestState\":\"%s\"%s%s", state,
		 *responses ? ",\"inputResponses\":" : "", responses);
	call_modern(bench, id, tool, capabilities, rest);
}

#define ACCEPT(name) "{\"action\":\"accept\",\"content\":{\"name\":\"" name "\"}}"

/* ---- questions, legacy ---- */

static void
reply_to(struct bench *bench, int id, const char *result)
{
	char line[1024];

	snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%d,%s}", id, result);
	bench_say(bench, line);
}

static void
a_legacy_client_is_asked_by_a_request(void **state)
{
	static const struct {
		const char *reply, *text;
	} replies[] = {
		{ "\"result\":" ACCEPT("Ann"), "hello Ann" },
		{ "\"result\":{\"action\":\"decline\"}", "hello declined" },
		{ "\"result\":{\"action\":\"cancel\"}", "hello cancelled" },
		{ "\"result\":" ACCEPT("much too long"), "hello cancelled" },
		{ "\"result\":{\"action\":\"accept\",\"content\":{}}", "hello cancelled" },
		{ "\"result\":7", "hello cancelled" },
		{ "\"error\":{\"code\":-1,\"message\":\"no\"}", "hello cancelled" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		struct bench *bench = bench_new_with(&test_catalog, NULL);

		bench_initialize_as(bench, "2025-11-25", "{\"elicitation\":{}}");
		ask_legacy(bench, "1", "tools/call", "\"name\":\"ask\"");
		expect(bench, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\","
			      "\"params\":{\"mode\":\"form\",\"message\":\"Who?\","
			      "\"requestedSchema\":{");
		bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"action\":"
				 "\"decline\"}}");
		reply_to(bench, 99, "\"result\":{\"action\":\"decline\"}");
		expect_nothing(bench);
		reply_to(bench, 1, replies[i].reply);
		expect(bench, replies[i].text);
		reply_to(bench, 1, replies[i].reply);
		expect_nothing(bench);
		assert_int_equal(bench_in_flight(bench), 0);
		bench_free(bench);
	}
}

static void
elicitation_is_as_the_revision_has_it(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	const char *line;

	(void)state;
	bench_initialize_as(bench, "2025-06-18", "{\"elicitation\":{}}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"ask\"");
	line = next_line(bench);
	assert_non_null(strstr(line, "elicitation/create"));
	assert_null(strstr(line, "\"mode\""));
	bench_free(bench);

	bench = bench_new_with(&test_catalog, NULL);
	bench_initialize_as(bench, "2025-03-26", "{\"elicitation\":{}}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"ask\"");
	expect(bench, "refused");
	ask_legacy(bench, "2", "tools/call", "\"name\":\"insist\"");
	expect(bench, "\"isError\":true");
	bench_free(bench);

	bench = bench_new_with(&test_catalog, NULL);
	bench_initialize_as(bench, "2025-11-25", "{\"elicitation\":{\"url\":{}}}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"ask\"");
	expect(bench, "refused");
	bench_free(bench);
}

static void
a_question_ends_with_its_call(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);

	(void)state;
	test_catalog_reset();
	bench_initialize_as(bench, "2025-11-25", "{\"elicitation\":{}}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"ask\"");
	expect(bench, "elicitation/create");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			 "\"params\":{\"requestId\":1}}");
	expect(bench, "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1,");
	reply_to(bench, 1, "\"result\":" ACCEPT("Ann"));
	expect_nothing(bench);
	assert_int_equal(test_catalog_record()->cancelled, 1);

	ask_legacy(bench, "2", "tools/call", "\"name\":\"ask\"");
	expect(bench, "\"id\":2,\"method\":\"elicitation/create\"");
	bench_end_input(bench);		/* no client can answer any more */
	expect(bench, "hello cancelled");
	ask_legacy(bench, "3", "tools/call", "\"name\":\"ask\"");
	expect(bench, "hello cancelled");
	assert_int_equal(test_catalog_record()->alive, 0);

	bench_free(bench);
}

static void
make_impatient(struct config *config)
{
	config->mcp.ask_seconds = 0;
}

static void
a_question_that_nobody_answers_is_cancelled(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, make_impatient);

	(void)state;
	bench_initialize_as(bench, "2025-11-25", "{\"elicitation\":{}}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"ask\"");
	expect(bench, "elicitation/create");
	expect(bench, "notifications/cancelled");
	expect(bench, "hello cancelled");
	bench_free(bench);
}

static void
several_questions_wait_for_all_answers(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);

	(void)state;
	bench_initialize_as(bench, "2025-11-25", "{" ELICITS "," ROOTS "}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"ask2\"");
	expect(bench, "\"id\":1,\"method\":\"elicitation/create\"");
	expect(bench, "\"id\":2,\"method\":\"roots/list\"}");
	reply_to(bench, 2, "\"result\":{\"roots\":[{\"uri\":\"file:///a\"}]}");
	expect_nothing(bench);
	reply_to(bench, 1, "\"result\":" ACCEPT("Ann"));
	expect(bench, "\"id\":3,\"method\":\"elicitation/create\"");
	reply_to(bench, 3, "\"result\":" ACCEPT("Bob"));
	expect(bench, "Ann 1 s1 hello Bob s2");
	bench_free(bench);
}

#define TOOLS "\"io.github.mcp-pythond/client-tools\":{\"tools\":[{\"name\":\"t\"," \
	      "\"inputSchema\":{}}]}"
#define RESULT "{\"content\":[]}"

static void
calls_of_a_clients_tools_are_independent(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char part[64];

	(void)state;
	bench_initialize_as(bench, "2025-11-25", "{" ELICITS ",\"experimental\":{" TOOLS "}}");
	ask_legacy(bench, "1", "tools/call", "\"name\":\"calls\"");
	for (int i = 1; i <= 16; i++) {
		snprintf(part, sizeof(part), "\"id\":%d,\"method\":\"io.github.", i);
		expect(bench, part);
	}
	reply_to(bench, 5, "\"error\":{\"code\":1,\"message\":\"no\"}");
	expect_nothing(bench);
	reply_to(bench, 1, "\"result\":" RESULT);
	for (int i = 2; i <= 16; i++) {
		snprintf(part, sizeof(part), "cancelled\",\"params\":{\"requestId\":%d,", i);
		if (i != 3 && i != 5)
			expect(bench, part);
	}
	expect(bench, "\"id\":17,\"method\"");
	for (int i = 1; i <= 16; i++)
		if (i != 3)
			reply_to(bench, i, "\"result\":" RESULT);
	expect_nothing(bench);
	reply_to(bench, 3, "\"result\":" RESULT);
	expect_nothing(bench);
	/* The id is that of the server's request: it is not repeated. */
	reply_to(bench, 17, "\"result\":NaN");
	expect(bench, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,");
	expect(bench, "c5=-1 c1=0 told=13 c3=0 last=3 the client's answer cannot be read: not a ");
	bench_free(bench);
}

/* ---- questions, modern ---- */

static void
a_modern_client_is_asked_by_the_answer(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *sealed, *again;

	(void)state;
	call_modern(bench, "1", "ask", ELICITS, "");
	sealed = next_text(bench, "requestState");
	assert_int_equal(bench_in_flight(bench), 0);
	/* an answer to something else, and none that fits: asked again, with another state */
	retry(bench, "2", "ask", ELICITS, sealed, "{\"other\":" ACCEPT("x") ",\"name\":7}");
	again = next_text(bench, "requestState");
	assert_string_not_equal(sealed, again);
	/* each is good once */
	retry(bench, "3", "ask", ELICITS, sealed, "{\"name\":" ACCEPT("Ann") "}");
	expect(bench, "\"id\":3,\"error\":{\"code\":-32602");
	retry(bench, "4", "ask", ELICITS, again, "{\"name\":" ACCEPT("Ann") ",\"x\":null}");
	expect(bench, "\"resultType\":\"complete\"");
	free(sealed);
	free(again);

	call_modern(bench, "5", "ask", ELICITS, "");
	expect(bench, "\"inputRequests\":{\"name\":{\"method\":\"elicitation/create\",\"params\":"
		      "{\"mode\":\"form\",\"message\":\"Who?\",");
	/* an answer that comes at once */
	call_modern(bench, "6", "ask", ELICITS, ",\"inputResponses\":{\"name\":" ACCEPT("Ann") "}");
	expect(bench, "hello Ann");
	call_modern(bench, "7", "ask", "", "");
	expect(bench, "refused");
	call_modern(bench, "8", "insist", ROOTS, "");
	expect(bench, "\"error\":{\"code\":-32021,");
	call_modern(bench, "9", "insist", "", "");
	expect(bench, "\"data\":{\"requiredCapabilities\":{\"elicitation\":{\"form\":{}}}}");
	bench_free(bench);
}

static void
only_missing_answers_are_asked_for_again(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *sealed;
	const char *line;

	(void)state;
	call_modern(bench, "1", "ask2", ELICITS "," ROOTS, "");
	sealed = next_text(bench, "requestState");
	retry(bench, "2", "ask2", ELICITS "," ROOTS, sealed, "{\"b\":{\"roots\":[]}}");
	free(sealed);
	line = next_line(bench);
	assert_non_null(strstr(line, "\"a\":{\"method\""));
	assert_null(strstr(line, "\"b\":"));
	json_t *answer = json_loads(line, 0, NULL);

	sealed = strdup(json_string_value(json_object_get(json_object_get(answer, "result"),
							  "requestState")));
	json_decref(answer);
	retry(bench, "3", "ask2", ELICITS "," ROOTS, sealed, "{\"a\":" ACCEPT("Ann") "}");
	free(sealed);
	sealed = next_text(bench, "requestState");
	retry(bench, "4", "ask2", ELICITS, sealed, "{\"more\":{\"action\":\"decline\"}}");
	expect(bench, "Ann 0 s1 hello declined s2");
	free(sealed);
	bench_free(bench);
}

/* The state of an input_required that asks for n calls, one of them with this key. */
static char *
asked_calls(struct bench *bench, size_t n, const char *key)
{
	json_t *answer = bench_next_json(bench), *result = json_object_get(answer, "result");
	const json_t *asked = json_object_get(result, "inputRequests");
	char *sealed = strdup(json_string_value(json_object_get(result, "requestState")));

	assert_int_equal(json_object_size(asked), n);
	assert_non_null(json_object_get(asked, key));
	json_decref(answer);
	return sealed;
}

static void
modern_calls_of_a_clients_tools_are_independent(void **state)
{
	static const char can[] = ELICITS ",\"extensions\":{" TOOLS "}";
	static const struct {
		const char *responses, *key;	/* key: of what is asked next, of n calls */
		size_t n;
	} steps[] = {
		{ "{\"c5\":7,\"more\":" RESULT "}", "c5", 16 },
		{ "{\"c5\":" RESULT ",\"last\":" RESULT "}", "c3", 15 },
		{ "{\"c1\":" RESULT "}", "c3", 14 },
		/* c2 was withdrawn meanwhile, and no audience was told of the last one */
		{ "{\"c2\":" RESULT ",\"last\":" RESULT "}", "last", 2 },
		{ "{\"c3\":" RESULT "}", "last", 1 },
	};
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *sealed;

	(void)state;
	call_modern(bench, "1", "calls", can, "");
	bench_wait(bench, 1);
	sealed = asked_calls(bench, 16, "c1");
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		retry(bench, "2", "calls", can, sealed, steps[i].responses);
		free(sealed);
		sealed = asked_calls(bench, steps[i].n, steps[i].key);
		bench_turn(bench);
	}
	retry(bench, "3", "calls", can, sealed, "{\"last\":" RESULT "}");
	free(sealed);
	expect(bench, "c5=0 c1=0 told=13 c3=0 last=0 {");
	bench_free(bench);
}

static void
expect_bad_state(struct bench *bench, const char *tool, const char *sealed, const char *rest)
{
	char params[2 * LONG];

	snprintf(params, sizeof(params), ",\"requestState\":\"%s\",\"inputResponses\":{\"name\":"
		 ACCEPT("Ann") "}%s", sealed, rest);
	call_modern(bench, "\"bad\"", tool, ELICITS, params);
	expect(bench, "\"id\":\"bad\",\"error\":{\"code\":-32602");
}

static void
a_state_is_good_for_its_call_and_its_tenant_alone(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *stranger = bench_beside(bench, 2000), *same = bench_beside(bench, 1000);
	char *sealed, changed[512], rest[LONG];

	(void)state;
	call_modern(bench, "1", "ask", ELICITS, ",\"arguments\":{\"a\":1,\"b\":2}");
	sealed = next_text(bench, "requestState");
	expect_bad_state(bench, "ask", sealed, "");
	expect_bad_state(bench, "ask", sealed, ",\"arguments\":{\"a\":1,\"b\":3}");
	expect_bad_state(bench, "insist", sealed, ",\"arguments\":{\"a\":1,\"b\":2}");
	expect_bad_state(stranger, "ask", sealed, ",\"arguments\":{\"a\":1,\"b\":2}");
	snprintf(changed, sizeof(changed), "%s-TAMPERED", sealed);
	expect_bad_state(bench, "ask", changed, ",\"arguments\":{\"a\":1,\"b\":2}");
	for (size_t i = 0; i < strlen(sealed); i++) {
		snprintf(changed, sizeof(changed), "%s", sealed);
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		expect_bad_state(bench, "ask", changed, ",\"arguments\":{\"a\":1,\"b\":2}");
		snprintf(changed, i + 1, "%s", sealed);
		expect_bad_state(bench, "ask", changed, ",\"arguments\":{\"a\":1,\"b\":2}");
	}
	/* of all that nothing was used up; from another connection, keys in another order */
	snprintf(rest, sizeof(rest), ",\"requestState\":\"%s\",\"inputResponses\":{\"name\":"
		 ACCEPT("Ann") "},\"arguments\":{\"b\":2,\"a\":1}", sealed);
	call_modern(same, "1", "ask", ELICITS, rest);
	expect(same, "hello Ann");
	free(sealed);
	bench_free(stranger);
	bench_free(same);
	bench_free(bench);
}

static void
park_one(struct config *config)
{
	config->mcp.parked_per_tenant = 1;
}

static void
parked_runs_are_bounded_and_end(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, park_one);
	struct bench *other = bench_beside(bench, 2000);

	(void)state;
	test_catalog_reset();
	call_modern(bench, "1", "ask", ELICITS, "");
	expect(bench, "input_required");
	call_modern(bench, "2", "ask", ELICITS, "");
	expect(bench, "hello cancelled");
	call_modern(other, "1", "ask", ELICITS, "");
	expect(other, "input_required");
	assert_int_equal(test_catalog_record()->alive, 2);
	bench_free(other);
	bench_free(bench);
	assert_int_equal(test_catalog_record()->alive, 0);

	bench = bench_new_with(&test_catalog, make_impatient);
	call_modern(bench, "1", "ask", ELICITS, "");
	char *sealed = next_text(bench, "requestState");

	bench_turn(bench);
	assert_int_equal(test_catalog_record()->alive, 0);
	expect_bad_state(bench, "ask", sealed, "");
	free(sealed);
	bench_free(bench);
}

static void
a_state_stays_good_while_there_is_no_room(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *same = bench_beside(bench, 1000);
	char id[16], *sealed;

	(void)state;
	call_modern(bench, "1", "ask", ELICITS, "");
	sealed = next_text(bench, "requestState");
	for (int i = 0; i < CONVERSATION_CALLS_MAX; i++) {
		snprintf(id, sizeof(id), "%d", 1000 + i);
		call_modern(bench, id, "hang", "", "");
	}
	retry(bench, "2", "ask", ELICITS, sealed, "");
	expect(bench, "too many calls");
	retry(same, "3", "ask", ELICITS, sealed, "{\"name\":" ACCEPT("Ann") "}");
	expect(same, "hello Ann");
	free(sealed);
	bench_free(same);
	bench_free(bench);
}

static void
a_run_may_end_while_it_waits(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *sealed;

	(void)state;
	call_modern(bench, "1", "ask", ELICITS, "");
	sealed = next_text(bench, "requestState");
	test_catalog_finish();
	retry(bench, "2", "ask", ELICITS, sealed, "");
	expect(bench, "finished");
	retry(bench, "3", "ask", ELICITS, sealed, "");
	expect(bench, "-32602");
	free(sealed);
	bench_free(bench);
}

static void
a_prompt_may_ask(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *sealed, rest[1024];

	(void)state;
	ask_modern(bench, "1", "prompts/list", "", "");
	expect(bench, "\"prompts\":[{\"name\":\"greet\",\"title\":\"Greet\",\"description\":\"greets\","
		      "\"arguments\":[{\"name\":\"who\",\"description\":\"whom\",\"required\":true}]}]");
	ask_modern(bench, "2", "prompts/get", ELICITS, ",\"name\":\"greet\"");
	expect(bench, "-32602");
	ask_modern(bench, "3", "prompts/get", ELICITS, ",\"name\":\"greet\",\"arguments\":{\"who\":1}");
	expect(bench, "-32602");
	ask_modern(bench, "4", "prompts/get", ELICITS, ",\"name\":\"x\"");
	expect(bench, "unknown prompt");
	ask_modern(bench, "5", "prompts/get", ELICITS, ",\"name\":\"greet\",\"arguments\":{\"who\":\"b\"}");
	sealed = next_text(bench, "requestState");
	snprintf(rest, sizeof(rest), ",\"name\":\"greet\",\"arguments\":{\"who\":\"b\"},"
		 "\"requestState\":\"%s\",\"inputResponses\":{\"name\":" ACCEPT("Ann") "}", sealed);
	ask_modern(bench, "6", "prompts/get", ELICITS, rest);
	expect(bench, "\"description\":\"about\",\"messages\":[{\"role\":\"assistant\",\"content\":"
		      "{\"type\":\"text\",\"text\":\"I am Ann\"}}]");
	free(sealed);
	bench_free(bench);
}

/* ---- what tools say ---- */

static void
blocks_are_as_the_revision_has_them(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	const char *line;

	(void)state;
	call_modern(bench, "1", "content", "", "");
	line = next_line(bench);
	assert_non_null(strstr(line, "\"content\":[{\"type\":\"text\",\"text\":\"t\"},"
		"{\"type\":\"image\",\"data\":\"iVBORw==\",\"mimeType\":\"image/png\"},"
		"{\"type\":\"audio\",\"data\":\"Ug==\",\"mimeType\":\"audio/wav\"},"
		"{\"type\":\"resource\",\"resource\":{\"uri\":\"test://r\",\"mimeType\":"
		"\"text/plain\",\"text\":\"x\"}},"
		"{\"type\":\"resource\",\"resource\":{\"uri\":\"test://b\",\"blob\":\"YWI=\"}},"
		"{\"type\":\"resource_link\",\"uri\":\"test://l\",\"name\":\"l\",\"size\":7}]"));
	assert_null(strstr(line, "structuredContent"));
	bench_initialize(bench, "2024-11-05");
	ask_legacy(bench, "2", "tools/call", "\"name\":\"content\"");
	line = next_line(bench);
	assert_null(strstr(line, "\"audio\""));
	assert_null(strstr(line, "resource_link"));
	assert_non_null(strstr(line, "[audio/wav, 1 bytes]"));
	assert_non_null(strstr(line, "l: test://l"));
	bench_free(bench);
}

static void
progress_and_log_lines_come_before_the_answer(void **state)
{
	static const char *const revisions[] = { "2024-11-05", "2025-11-25" };
	struct bench *bench;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		bench = bench_new_with(&test_catalog, NULL);
		bench_initialize(bench, revisions[i]);
		ask_legacy(bench, "1", "tools/call", "\"name\":\"talk\",\"_meta\":{\"progressToken\":0}");
		expect(bench, "\"progressToken\":0,\"progress\":0,\"total\":100");
		expect(bench, i ? "\"progress\":50,\"total\":100,\"message\":\"at\"" : "\"progress\":50,\"total\":100}}");
		expect(bench, "\"progress\":100,");
		expect(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
			      "{\"level\":\"error\",\"logger\":\"test\",\"data\":{\"a\":1}}}");
		expect(bench, "done");
		ask_legacy(bench, "2", "logging/setLevel", "\"level\":\"debug\"");
		expect(bench, "\"id\":2,\"result\":{}}");
		ask_legacy(bench, "3", "logging/setLevel", "\"level\":\"loud\"");
		expect(bench, "-32602");
		ask_legacy(bench, "4", "tools/call", "\"name\":\"talk\"");
		expect(bench, "\"level\":\"debug\",\"data\":1");
		expect(bench, "\"level\":\"error\"");
		expect(bench, "done");
		bench_free(bench);
	}
	bench = bench_new_with(&test_catalog, NULL);
	call_modern(bench, "1", "talk", "", "");	/* no level: no lines */
	expect(bench, "done");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"talk\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		"\"io.modelcontextprotocol/clientCapabilities\":{},"
		"\"io.modelcontextprotocol/logLevel\":\"warning\"}}}");
	expect(bench, "\"level\":\"error\"");
	expect(bench, "done");
	ask_modern(bench, "3", "logging/setLevel", "", ",\"level\":\"debug\"");
	expect(bench, "-32601");
	call_modern(bench, "4", "fail", "", "");
	expect(bench, "\"error\":{\"code\":-1234,\"message\":\"broken\",\"data\":[1]}}");
	bench_free(bench);
}

static void
capabilities_follow_the_catalog(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);

	(void)state;
	ask_modern(bench, "1", "server/discover", "", "");
	expect(bench, "\"capabilities\":{\"tools\":{\"listChanged\":true},"
		      "\"resources\":{\"subscribe\":true},"
		      "\"prompts\":{},\"completions\":{},\"logging\":{},\"extensions\":{"
		      "\"io.modelcontextprotocol/tasks\":{},"
		      "\"io.github.mcp-pythond/client-tools\":{}}}");
	ask_modern(bench, "2", "completion/complete", "",
		   ",\"ref\":{\"type\":\"ref/prompt\",\"name\":\"greet\"},"
		   "\"argument\":{\"name\":\"who\",\"value\":\"w\"}");
	expect(bench, "\"completion\":{\"values\":[\"world\"],\"total\":1,\"hasMore\":false}");
	ask_modern(bench, "3", "completion/complete", "",
		   ",\"ref\":{\"type\":\"ref/prompt\",\"name\":\"none\"},"
		   "\"argument\":{\"name\":\"who\",\"value\":\"w\"}");
	expect(bench, "-32602");
	bench_free(bench);
}

/* ---- tasks ---- */

static char *
make_task(struct bench *bench, const char *tool, const char *capabilities)
{
	call_modern(bench, "\"make\"", tool, capabilities, "");
	return next_text(bench, "taskId");
}

static void
ask_task(struct bench *bench, const char *method, const char *capabilities, const char *id,
	 const char *rest)
{
	char params[1024];

	snprintf(params, sizeof(params), ",\"taskId\":\"%s\"%s", id, rest);
	ask_modern(bench, "\"t\"", method, capabilities, params);
}

static void
a_task_has_its_states_and_its_end(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *stranger = bench_beside(bench, 2000), *same;
	char *id;

	(void)state;
	call_modern(bench, "1", "job", "", "");
	expect(bench, "\"code\":-32021,");
	id = make_task(bench, "job", TASKS);
	ask_task(bench, "tasks/get", TASKS, id, "");
	expect(bench, "\"status\":\"working\"");
	assert_int_equal(bench_in_flight(bench), 0);
	bench_hang_up(bench);		/* the task stays */
	same = bench_beside(bench, 1000);
	bench_turn(same);
	ask_task(same, "tasks/get", TASKS, id, "");
	expect(same, "\"status\":\"completed\"");
	ask_task(same, "tasks/get", TASKS, id, "");
	expect(same, "\"ttlMs\":3600000,\"pollIntervalMs\":1000,\"result\":{\"resultType\":\"complete\"");
	ask_task(same, "tasks/get", TASKS, id, "");
	expect(same, "\"text\":\"done\"}],\"isError\":true}");
	ask_task(same, "tasks/cancel", TASKS, id, "");
	expect(same, "\"resultType\":\"complete\"");
	ask_task(same, "tasks/get", TASKS, id, "");
	expect(same, "completed");
	ask_task(stranger, "tasks/get", TASKS, id, "");
	expect(stranger, "-32602");
	ask_task(stranger, "tasks/cancel", TASKS, id, "");
	expect(stranger, "-32602");
	ask_task(same, "tasks/get", "", id, "");
	expect(same, "-32021");
	ask_task(same, "tasks/get", TASKS, "t-none", "");
	expect(same, "-32602");
	ask_modern(same, "9", "tasks/get", TASKS, "");
	expect(same, "-32602");
	ask_modern(same, "9", "tasks/list", TASKS, "");
	expect(same, "-32601");
	free(id);
	bench_free(same);
	bench_free(stranger);
	bench_free(bench);
}

static void
a_task_asks_and_is_answered(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *id = make_task(bench, "job_ask", TASKS "," ELICITS);

	(void)state;
	bench_turn(bench);
	ask_task(bench, "tasks/get", TASKS, id, "");
	expect(bench, "\"inputRequests\":{\"name\":{\"method\":\"elicitation/create\"");
	ask_task(bench, "tasks/update", TASKS, id, "");
	expect(bench, "-32602");
	ask_task(bench, "tasks/update", TASKS, id, ",\"inputResponses\":{\"x\":1,\"name\":null}");
	expect(bench, "\"result\":{\"resultType\":\"complete\"");
	ask_task(bench, "tasks/get", TASKS, id, "");
	expect(bench, "\"status\":\"input_required\"");
	ask_task(bench, "tasks/update", TASKS, id, ",\"inputResponses\":{\"name\":" ACCEPT("Ann") "}");
	expect(bench, "\"id\":\"t\",\"result\"");
	ask_task(bench, "tasks/get", TASKS, id, "");
	expect(bench, "\"status\":\"working\"");
	bench_turn(bench);
	ask_task(bench, "tasks/get", TASKS, id, "");
	expect(bench, "hello Ann");
	free(id);
	bench_free(bench);
}

static void
two_tasks(struct config *config)
{
	config->mcp.tasks_per_tenant = 2;
}

static void
tasks_are_cancelled_and_bounded(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, two_tasks);
	char *first = make_task(bench, "job_ask", TASKS "," ELICITS), *second;

	(void)state;
	test_catalog_reset();
	second = make_task(bench, "job_ask", TASKS "," ELICITS);
	call_modern(bench, "3", "job", TASKS, "");
	expect(bench, "\"id\":3,\"error\":{\"code\":-32603");
	ask_task(bench, "tasks/cancel", TASKS, first, "");
	expect(bench, "\"resultType\":\"complete\"");
	ask_task(bench, "tasks/get", TASKS, first, "");
	expect(bench, "\"status\":\"cancelled\"");
	assert_int_equal(test_catalog_record()->cancelled, 1);
	free(make_task(bench, "job", TASKS));	/* takes the place of the first */
	ask_task(bench, "tasks/get", TASKS, first, "");
	expect(bench, "-32602");
	ask_task(bench, "tasks/get", TASKS, second, "");
	expect(bench, "\"status\":\"working\"");
	free(first);
	free(second);
	bench_free(bench);
}

static void
a_task_that_was_seen_makes_room_first(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, two_tasks);
	char *waits = make_task(bench, "job", TASKS), *seen = make_task(bench, "job", TASKS);

	(void)state;
	bench_turn(bench);
	ask_task(bench, "tasks/get", TASKS, seen, "");
	expect(bench, "\"status\":\"completed\"");
	free(make_task(bench, "job", TASKS));
	ask_task(bench, "tasks/get", TASKS, seen, "");
	expect(bench, "-32602");
	ask_task(bench, "tasks/get", TASKS, waits, "");
	expect(bench, "\"status\":\"completed\"");
	free(waits);
	free(seen);
	bench_free(bench);
}

static void
soon_a_task(struct config *config)
{
	config->mcp.task_after_seconds = 0;
}

static void
a_long_script_becomes_a_task(void **state)
{
	struct bench *bench = bench_new_with(NULL, soon_a_task);
	char *id;

	(void)state;
	call_modern(bench, "1", "run_script", "", ",\"arguments\":{\"script\":\"hang\"}");
	expect_nothing(bench);
	call_modern(bench, "2", "run_script", TASKS, ",\"arguments\":{\"script\":\"hang\"}");
	id = next_text(bench, "taskId");
	ask_task(bench, "tasks/get", TASKS, id, "");
	expect(bench, "\"status\":\"working\",\"statusMessage\":\"the script is running\"");
	ask_task(bench, "tasks/cancel", TASKS, id, "");
	expect(bench, "\"result\"");
	assert_int_equal(fake_engine_record()->cancelled, 1);
	free(id);
	bench_free(bench);
}

/* ---- subscriptions ---- */

static void
listening_hears_of_tasks(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *stranger = bench_beside(bench, 2000);
	char *id = make_task(bench, "job_ask", TASKS "," ELICITS), rest[512];

	(void)state;
	snprintf(rest, sizeof(rest), ",\"notifications\":{\"toolsListChanged\":true,\"taskIds\":"
		 "[\"%s\",\"t-none\",\"%s\"]}", id, id);	/* twice counts once */
	ask_modern(stranger, "7", "subscriptions/listen", TASKS, rest);
	expect(stranger, "\"notifications\":{\"toolsListChanged\":true}}");
	ask_modern(bench, "7", "subscriptions/listen", TASKS, rest);
	snprintf(rest, sizeof(rest), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
		 "acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":7},"
		 "\"notifications\":{\"taskIds\":[\"%s\"],\"toolsListChanged\":true}}}", id);
	expect(bench, rest);
	expect(bench, "\"status\":\"working\"");	/* as it is */
	ask_modern(bench, "7", "subscriptions/listen", "", ",\"notifications\":{}");
	expect(bench, "-32600");
	expect(bench, "\"method\":\"notifications/tasks\",\"params\":{\"_meta\":{"
		      "\"io.modelcontextprotocol/subscriptionId\":7},\"taskId\":");
	ask_task(bench, "tasks/update", TASKS, id, ",\"inputResponses\":{\"name\":" ACCEPT("Ann") "}");
	expect(bench, "\"status\":\"working\"");
	expect(bench, "\"id\":\"t\",\"result\"");
	expect(bench, "\"status\":\"completed\"");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			 "\"params\":{\"requestId\":7}}");
	expect_nothing(bench);
	expect_nothing(stranger);
	assert_int_equal(bench_in_flight(bench), 0);
	assert_int_equal(bench_in_flight(stranger), 1);
	bench_end_input(stranger);
	expect(stranger, "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7");
	expect(stranger, "\"id\":7,\"result\":{\"resultType\":\"complete\",\"_meta\":{"
			 "\"io.modelcontextprotocol/subscriptionId\":7}}}");
	assert_int_equal(bench_in_flight(stranger), 0);
	free(id);
	bench_free(stranger);
	bench_free(bench);
}

static void
subscribing_is_per_stream(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *other = bench_beside(bench, 1000);

	(void)state;
	bench_initialize(bench, "2025-06-18");
	ask_legacy(bench, "1", "resources/subscribe", "\"uri\":\"test://002\"");
	expect(bench, "\"id\":1,\"result\":{}}");
	ask_legacy(bench, "2", "resources/subscribe", "");
	expect(bench, "-32602");
	ask_modern(other, "\"L\"", "subscriptions/listen", "",
		   ",\"notifications\":{\"resourceSubscriptions\":[\"test://002\"]}");
	expect(other, "\"notifications\":{\"resourceSubscriptions\":[\"test://002\"]}");
	bench_resource_changed(bench, "test://004");
	bench_resource_changed(bench, "test://002");
	expect(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
		      "\"params\":{\"uri\":\"test://002\"}}");
	expect(other, "subscriptionId\":\"L\"},\"uri\":\"test://002\"}}");
	ask_legacy(bench, "3", "resources/unsubscribe", "\"uri\":\"test://002\"");
	expect(bench, "\"id\":3,\"result\":{}}");
	bench_resource_changed(bench, "test://002");
	expect_nothing(bench);
	bench_free(other);
	bench_free(bench);
}

/* ---- calls sent again ---- */

#define ONCE(key, rest) ",\"arguments\":{\"key\":\"" key "\"" rest "}"

static void
a_call_with_a_key_runs_once(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *same = bench_beside(bench, 1000), *stranger = bench_beside(bench, 2000);

	(void)state;
	test_catalog_reset();
	call_modern(bench, "1", "once", "", ONCE("k", ",\"a\":1"));
	call_modern(same, "2", "once", "", ONCE("k", ",\"a\":1"));
	assert_int_equal(test_catalog_record()->started, 1);
	call_modern(bench, "3", "once", "", ONCE("k", ",\"a\":2"));
	expect(bench, "\"isError\":true");
	call_modern(stranger, "1", "once", "", ONCE("k", ",\"a\":2"));
	assert_int_equal(test_catalog_record()->started, 2);
	bench_hang_up(bench);		/* lost, but not cancelled */
	test_catalog_finish();
	expect(same, "\"id\":2,\"result\"");
	expect(stranger, "finished");
	call_modern(same, "4", "once", "", ONCE("k", ",\"a\":1"));
	expect(same, "finished");
	assert_int_equal(test_catalog_record()->started, 2);
	assert_int_equal(test_catalog_record()->cancelled, 0);
	bench_free(stranger);
	bench_free(same);
	bench_free(bench);
}

static void
a_lost_call_with_a_key_goes_on(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	struct bench *same = bench_beside(bench, 1000);

	(void)state;
	test_catalog_reset();
	call_modern(bench, "1", "once", "", ONCE("k", ""));
	bench_hang_up(bench);
	bench_turn(same);
	assert_int_equal(test_catalog_record()->cancelled, 0);
	call_modern(same, "1", "once", "", ONCE("k", ""));
	/* what its client does not want any more is stopped all the same */
	bench_say(same, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			"\"params\":{\"requestId\":1}}");
	assert_int_equal(test_catalog_record()->cancelled, 1);
	call_modern(same, "2", "once", "", ONCE("k", ""));
	assert_int_equal(test_catalog_record()->started, 2);
	test_catalog_finish();
	expect(same, "finished");
	bench_free(same);
	bench_free(bench);
}

static void
a_script_with_a_key_runs_once(void **state)
{
	struct bench *bench = bench_new();
	const char *one = ",\"arguments\":{\"script\":\"x\",\"idempotency_key\":\"k\"}";

	(void)state;
	call_modern(bench, "1", "run_script", "", one);
	expect(bench, "\"id\":1,\"result\"");
	call_modern(bench, "2", "run_script", "", one);
	expect(bench, "\"id\":2,\"result\"");
	assert_int_equal(fake_engine_record()->started, 1);
	call_modern(bench, "3", "run_script", "", ",\"arguments\":{\"script\":\"y\",\"idempotency_key\":\"k\"}");
	expect(bench, "this idempotency key was used before");
	bench_initialize(bench, "2024-11-05");	/* the answer as this one has it */
	ask_legacy(bench, "4", "tools/call", "\"name\":\"run_script\"" );
	expect(bench, "script is required");
	ask_legacy(bench, "5", "tools/call", "\"name\":\"run_script\",\"arguments\":{\"script\":\"x\",\"idempotency_key\":\"k\"}");
	const char *line = next_line(bench);

	assert_non_null(strstr(line, "\"content\""));
	assert_null(strstr(line, "structuredContent"));
	assert_int_equal(fake_engine_record()->started, 1);
	/* what was not run is tried again */
	const char *busy = ",\"arguments\":{\"script\":\"status overloaded\",\"idempotency_key\":\"b\"}";

	call_modern(bench, "6", "run_script", "", busy);
	expect(bench, "overloaded");
	call_modern(bench, "7", "run_script", "", busy);
	expect(bench, "overloaded");
	assert_int_equal(fake_engine_record()->started, 3);
	call_modern(bench, "8", "run_script", "", ",\"arguments\":{\"script\":\"x\",\"idempotency_key\":\"\"}");
	expect(bench, "idempotency_key must be a string of 1 to 128");
	bench_free(bench);
}

/* ---- resources ---- */

static void
resources_come_in_pages(void **state)
{
	struct bench *bench = bench_new_with(&test_catalog, NULL);
	char *cursor = strdup(""), rest[256];
	size_t n = 0;

	(void)state;
	for (int page = 0; page < 3; page++) {
		json_t *answer, *result;

		snprintf(rest, sizeof(rest), ",\"cursor\":\"%s\"", cursor);
		ask_modern(bench, "1", "resources/list", "", *cursor ? rest : "");
		answer = bench_next_json(bench);
		result = json_object_get(answer, "result");
		n += json_array_size(json_object_get(result, "resources"));
		free(cursor);
		cursor = strdup(page < 2 ? json_string_value(json_object_get(result, "nextCursor")) : "");
		assert_true(!!json_object_get(result, "nextCursor") == (page < 2));
		json_decref(answer);
	}
	free(cursor);
	assert_int_equal(n, 250);
	ask_modern(bench, "1", "resources/list", "", ",\"cursor\":\"%%\"");
	expect(bench, "-32602");
	bench_initialize(bench, "2025-03-26");
	ask_legacy(bench, "2", "resources/list", "\"cursor\":\"\"");
	expect(bench, "{\"uri\":\"test://001\",\"name\":\"001\",\"size\":1}");	/* no title yet */
	ask_legacy(bench, "3", "resources/templates/list", "");
	expect(bench, "\"resourceTemplates\":[{\"uriTemplate\":\"test://{n}\",\"name\":\"n\"}]");
	ask_legacy(bench, "4", "resources/read", "\"uri\":\"test://002\"");
	expect(bench, "\"result\":{\"contents\":[{\"uri\":\"test://002\",\"mimeType\":\"text/plain\",\"text\":\"hi\"}]}}");
	ask_modern(bench, "5", "resources/read", "", ",\"uri\":\"test://002\"");
	expect(bench, "\"ttlMs\":0,\"cacheScope\":\"private\"");
	bench_free(bench);
}

static void
cursors_are_read_back_and_nothing_else(void **state)
{
	static const char *const places[] = { "a", "ab", "abc", "test://\xc3\xa9", "" };
	static const char *const bad[] = { "A", "YQ==", "YR", "Y Q", "YWI!", "AA" };
	char *text, *place;

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		text = cursor_write(places[i]);
		place = cursor_read(text, strlen(text));
		assert_string_equal(place, places[i]);
		free(text);
		free(place);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_null(cursor_read(bad[i], strlen(bad[i])));
}

/* ---- any messages ---- */

static const char *const random_tools[] = {
	"ask", "ask2", "insist", "content", "talk", "fail", "hang", "job", "job_ask", "once",
};

/* The newest of what the server handed out, taken from its lines. */
struct handed_out {
	char state[512], task[64];
};

static void
remember(const char *line, const char *key, char *to, size_t size)
{
	const char *at = strstr(line, key);

	if (at)
		snprintf(to, size, "%.*s", (int)strcspn(at + strlen(key), "\""),
			 at + strlen(key));
}

static void
read_all(struct bench *bench, struct handed_out *handed)
{
	while (bench_unread(bench)) {
		const char *line = bench_next(bench);

		remember(line, "\"requestState\":\"", handed->state, sizeof(handed->state));
		remember(line, "\"taskId\":\"", handed->task, sizeof(handed->task));
	}
}

static const char *
random_abilities(void)
{
	static const char *const abilities[] = { "", ELICITS, TASKS, ELICITS "," TASKS "," ROOTS };

	return abilities[rand() % 4];
}

static void
say_something(struct bench *bench, const struct handed_out *handed)
{
	static const char *const methods[] = { "tasks/get", "tasks/update", "tasks/cancel" };
	const char *tool = random_tools[rand() % 10];
	char rest[LONG], id[16];

	snprintf(id, sizeof(id), "%d", rand() % 8);
	switch (rand() % 9) {
	case 0:
		snprintf(rest, sizeof(rest), "\"name\":\"%s\",\"_meta\":{\"progressToken\":1},"
			 "\"arguments\":{\"key\":\"%d\"}", tool, rand() % 2);
		ask_legacy(bench, id, "tools/call", rest);
		break;
	case 1:
	case 2:
		call_modern(bench, id, tool, random_abilities(), ONCE("1", ""));
		break;
	case 3:
		snprintf(rest, sizeof(rest), ",\"requestState\":\"%s\",\"inputResponses\":{\"name\":"
			 ACCEPT("Ann") "}%s", handed->state, rand() % 2 ? ONCE("1", "") : "");
		call_modern(bench, id, tool, random_abilities(), rest);
		break;
	case 4:
		snprintf(rest, sizeof(rest), ",\"taskId\":\"%s\",\"inputResponses\":{\"name\":"
			 ACCEPT("Ann") "}", handed->task);
		ask_modern(bench, id, methods[rand() % 3], TASKS, rest);
		break;
	case 5:
		snprintf(rest, sizeof(rest), ",\"notifications\":{\"taskIds\":[\"%s\"]}",
			 handed->task);
		ask_modern(bench, id, "subscriptions/listen", TASKS, rest);
		break;
	case 6:
		reply_to(bench, rand() % 12, "\"result\":" ACCEPT("Ann"));
		break;
	default:
		snprintf(rest, sizeof(rest), "{\"jsonrpc\":\"2.0\",\"method\":"
			 "\"notifications/cancelled\",\"params\":{\"requestId\":%s}}", id);
		bench_say(bench, rest);
		break;
	}
}

/* No order of requests, answers, cancellations and hang-ups leaves anything behind, or
 * touches what is gone (which the sanitizers see). */
static void
no_order_of_things_breaks_it(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 150; seed++) {
		struct bench *bench = bench_new_with(&test_catalog, seed % 3 ? NULL : two_tasks);
		struct bench *side = NULL;
		struct handed_out handed = { "none", "t-none" };

		srand(seed);
		test_catalog_reset();
		bench_initialize_as(bench, "2025-11-25", "{" ELICITS "}");
		for (int step = 0; step < 200; step++) {
			int what = rand() % 40;

			if (what == 0 && side) {
				bench_free(side);
				side = NULL;
			} else if (!side) {
				side = bench_beside(bench, rand() % 4 ? 1000 : 2000);
				bench_initialize_as(side, "2025-06-18", "{" ELICITS "}");
			} else if (what == 1) {
				test_catalog_finish();
			} else if (what < 8) {
				bench_turn(bench);
			} else if (what == 8) {
				bench_end_input(side);
			} else {
				say_something(what % 2 ? bench : side, &handed);
			}
			read_all(bench, &handed);
			if (side)
				read_all(side, &handed);
		}
		if (side)
			bench_free(side);
		bench_free(bench);
		assert_int_equal(test_catalog_record()->alive, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_legacy_client_is_asked_by_a_request),
		cmocka_unit_test(elicitation_is_as_the_revision_has_it),
		cmocka_unit_test(a_question_ends_with_its_call),
		cmocka_unit_test(a_question_that_nobody_answers_is_cancelled),
		cmocka_unit_test(several_questions_wait_for_all_answers),
		cmocka_unit_test(calls_of_a_clients_tools_are_independent),
		cmocka_unit_test(a_modern_client_is_asked_by_the_answer),
		cmocka_unit_test(modern_calls_of_a_clients_tools_are_independent),
		cmocka_unit_test(only_missing_answers_are_asked_for_again),
		cmocka_unit_test(a_state_is_good_for_its_call_and_its_tenant_alone),
		cmocka_unit_test(parked_runs_are_bounded_and_end),
		cmocka_unit_test(a_state_stays_good_while_there_is_no_room),
		cmocka_unit_test(a_run_may_end_while_it_waits),
		cmocka_unit_test(a_prompt_may_ask),
		cmocka_unit_test(blocks_are_as_the_revision_has_them),
		cmocka_unit_test(progress_and_log_lines_come_before_the_answer),
		cmocka_unit_test(capabilities_follow_the_catalog),
		cmocka_unit_test(a_task_has_its_states_and_its_end),
		cmocka_unit_test(a_task_asks_and_is_answered),
		cmocka_unit_test(tasks_are_cancelled_and_bounded),
		cmocka_unit_test(a_task_that_was_seen_makes_room_first),
		cmocka_unit_test(a_long_script_becomes_a_task),
		cmocka_unit_test(listening_hears_of_tasks),
		cmocka_unit_test(subscribing_is_per_stream),
		cmocka_unit_test(a_call_with_a_key_runs_once),
		cmocka_unit_test(a_lost_call_with_a_key_goes_on),
		cmocka_unit_test(a_script_with_a_key_runs_once),
		cmocka_unit_test(resources_come_in_pages),
		cmocka_unit_test(cursors_are_read_back_and_nothing_else),
		cmocka_unit_test(no_order_of_things_breaks_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
