/* SPDX-License-Identifier: Apache-2.0 */
/* What the service may say, what it may not, and the exit code that an outcome becomes.
 */
#include "client/reply.h"

#include <errno.h>
#include <string.h>

#include "client/exits.h"
#include "client/verdict.h"
#include "tests/unit/client/cmocka_all.h"

#define HEAD "{\"jsonrpc\":\"2.0\","
#define ANSWER HEAD "\"id\":1,\"result\":"
#define OUTPUT(output)                                                                 \
	HEAD "\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,"  \
	     "\"progress\":3,\"_meta\":{\"mcp-pythond/output\":" output "}}}"

static const struct line_case {
	const char *name, *line;
	int kind; /* enum reply_kind, or -EBADMSG */
	const char *text;
} lines[] = {
	{ "outcome", ANSWER "{\"content\":[],\"structuredContent\":{\"status\":\"ok\"}}}", REPLY_OUTCOME, NULL },
	{ "outcome that is an error", ANSWER "{\"content\":[],\"isError\":true,"
		"\"structuredContent\":{\"status\":\"timeout\"}}}", REPLY_OUTCOME, NULL },
	{ "resource", ANSWER "{\"contents\":[]}}", REPLY_RESOURCE, NULL },
	{ "refused", ANSWER "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}}", REPLY_REFUSED, "no" },
	{ "error", HEAD "\"id\":1,\"error\":{\"code\":-32602,\"message\":\"bad\"}}", REPLY_REFUSED, "bad" },
	{ "error without id", HEAD "\"error\":{\"code\":-32700,\"message\":\"bad\"}}", REPLY_REFUSED, "bad" },
	{ "output", OUTPUT("{\"stream\":\"stderr\",\"offset\":7,\"text\":\"x\\u0000y\"}"), REPLY_OUTPUT, "x" },
	{ "progress alone", HEAD "\"method\":\"notifications/progress\",\"params\":"
		"{\"progressToken\":1,\"progress\":1,\"message\":\"m\"}}", REPLY_OTHER, NULL },
	{ "another's progress", HEAD "\"method\":\"notifications/progress\",\"params\":{\"progressToken\":2,"
		"\"progress\":1,\"_meta\":{\"mcp-pythond/output\":{}}}}", REPLY_OTHER, NULL },
	{ "a question", HEAD "\"id\":9,\"method\":\"elicitation/create\",\"params\":{}}", REPLY_PROMPT, NULL },
	{ "a question with a name", HEAD "\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{}}", REPLY_PROMPT, NULL },
	{ "a withdrawal", HEAD "\"method\":\"notifications/cancelled\",\"params\":{}}", REPLY_WITHDRAWN, NULL },
	{ "the answer to the greeting", HEAD "\"id\":0,\"result\":{}}", REPLY_OTHER, NULL },
	{ "another notification", HEAD "\"method\":\"notifications/message\"}", REPLY_OTHER, NULL },

	{ "nothing", "", -EBADMSG, NULL },
	{ "not JSON", "hello", -EBADMSG, NULL },
	{ "not an object", "[]", -EBADMSG, NULL },
	{ "cut", ANSWER "{\"content\":[]", -EBADMSG, NULL },
	{ "key twice", HEAD "\"id\":1,\"id\":1,\"error\":{\"message\":\"x\"}}", -EBADMSG, NULL },
	{ "no version", "{\"id\":1,\"error\":{\"message\":\"x\"}}", -EBADMSG, NULL },
	{ "a request", HEAD "\"id\":1,\"method\":\"ping\"}", -EBADMSG, NULL },
	{ "a question without params", HEAD "\"id\":9,\"method\":\"elicitation/create\"}", -EBADMSG, NULL },
	{ "a question with a number of its own", HEAD "\"id\":1.5,\"method\":\"elicitation/create\",\"params\":{}}", -EBADMSG, NULL },
	{ "another id", HEAD "\"id\":2,\"result\":{\"content\":[],\"structuredContent\":{\"status\":\"ok\"}}}", -EBADMSG, NULL },
	{ "id as text", HEAD "\"id\":\"1\",\"result\":{\"content\":[],\"structuredContent\":{\"status\":\"ok\"}}}", -EBADMSG, NULL },
	{ "result and error", ANSWER "{},\"error\":{\"message\":\"x\"}}", -EBADMSG, NULL },
	{ "error without text", HEAD "\"id\":1,\"error\":{}}", -EBADMSG, NULL },
	{ "no content", ANSWER "{\"structuredContent\":{\"status\":\"ok\"}}}", -EBADMSG, NULL },
	{ "success without outcome", ANSWER "{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}}", -EBADMSG, NULL },
	{ "a tool that runs nothing", ANSWER "{\"content\":[],\"structuredContent\":{\"yours\":{}}}}", REPLY_STRUCTURED, NULL },
	{ "status is a number", ANSWER "{\"content\":[],\"structuredContent\":{\"status\":1}}}", -EBADMSG, NULL },
	{ "output without offset", OUTPUT("{\"stream\":\"stdout\",\"text\":\"x\"}"), -EBADMSG, NULL },
	{ "output with a negative one", OUTPUT("{\"stream\":\"stdout\",\"offset\":-1,\"text\":\"x\"}"), -EBADMSG, NULL },
	{ "output of another stream", OUTPUT("{\"stream\":\"log\",\"offset\":0,\"text\":\"x\"}"), -EBADMSG, NULL },
	{ "output without text", OUTPUT("{\"stream\":\"stdout\",\"offset\":0}"), -EBADMSG, NULL },
	{ "output that is a list", OUTPUT("[]"), -EBADMSG, NULL },
};

static void
lines_are_taken_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(lines); i++) {
		const struct line_case *c = &lines[i];
		struct reply reply = {.offset = 99};
		int r = reply_parse(c->line, strlen(c->line), 1, &reply);

		if (r < 0 ? r != c->kind : (int)reply.kind != c->kind)
			fail_msg("%s: %d, kind %d", c->name, r, (int)reply.kind);
		if (r < 0) {
			assert_int_equal(reply.offset, 99);
			continue;
		}
		if (c->text)
			assert_string_equal(reply.text, c->text);
		if (reply.kind == REPLY_OUTCOME)
			assert_non_null(reply_string(reply.outcome, "status", NULL));
		reply_free(&reply);
	}
}

static void
output_keeps_its_place_and_its_nul(void **state)
{
	struct reply reply;
	const char *line =
		OUTPUT("{\"stream\":\"stderr\",\"offset\":7,\"text\":\"x\\u0000y\"}");

	(void)state;
	assert_int_equal(reply_parse(line, strlen(line), 1, &reply), 0);
	assert_int_equal(reply.stream, REPLY_STDERR);
	assert_int_equal(reply.offset, 7);
	assert_int_equal(reply.text_len, 3);
	assert_memory_equal(reply.text, "x\0y", 3);
	reply_free(&reply);
}

/* Nothing that is cut short is taken for something whole. */
static void
every_prefix_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(lines); i++)
		for (size_t len = 0; len < strlen(lines[i].line); len++) {
			struct reply reply;

			if (reply_parse(lines[i].line, len, 1, &reply) != -EBADMSG)
				fail_msg("%s, %zu bytes", lines[i].name, len);
		}
}

static const struct verdict_case {
	const char *outcome;
	int code;
	const char *text; /* NULL: nothing is said */
} verdicts[] = {
	{ "{\"status\":\"ok\",\"exit_code\":0}", 0, NULL },
	{ "{\"status\":\"error\",\"exit_code\":1}", 1, NULL },
	{ "{\"status\":\"error\",\"exit_code\":77}", 77, NULL },
	{ "{\"status\":\"error\",\"exit_code\":0}", 1, NULL },
	{ "{\"status\":\"error\"}", 1, NULL },
	{ "{\"status\":\"crashed\",\"exit_code\":139,\"error\":{\"message\":\"by SIGSEGV\"}}", 139, "by SIGSEGV" },
	{ "{\"status\":\"killed\",\"exit_code\":137}", 137, "killed by a signal" },
	{ "{\"status\":\"timeout\",\"exit_code\":137,\"error\":{\"message\":\"2 s\"}}", 124, "2 s" },
	{ "{\"status\":\"cpu_limit\",\"exit_code\":137}", 152, "processor" },
	{ "{\"status\":\"memory_limit\",\"exit_code\":0}", 137, "memory" },
	{ "{\"status\":\"pids_limit\",\"exit_code\":3}", 3, "processes" },
	{ "{\"status\":\"pids_limit\",\"exit_code\":0}", 1, "processes" },
	{ "{\"status\":\"output_limit\",\"exit_code\":137}", 153, "output" },
	{ "{\"status\":\"disk_limit\",\"exit_code\":1}", 153, "disk" },
	{ "{\"status\":\"cancelled\",\"exit_code\":-1}", EX_TEMPFAIL, "stopped" },
	{ "{\"status\":\"overloaded\",\"exit_code\":null}", EX_TEMPFAIL, "later" },
	{ "{\"status\":\"jail_failed\"}", EX_SOFTWARE, "jail" },
	{ "{\"status\":\"worker_protocol_error\"}", EX_SOFTWARE, "protocol" },
	{ "{\"status\":\"invalid_arguments\",\"error\":{\"message\":\"pids is 0\"}}", EX_USAGE, "pids is 0" },
	{ "{\"status\":\"denied\",\"error\":{\"message\":\"nobody may\"}}", EX_NOPERM, "nobody may" },
	{ "{\"status\":\"approval_pending\"}", EX_TEMPFAIL, "approval" },
	{ "{\"status\":\"quota_exceeded\"}", EX_TEMPFAIL, "later" },
	{ "{\"status\":\"audit_unavailable\"}", EX_TEMPFAIL, "audit" },
	{ "{\"status\":\"dependency_unavailable\"}", EX_USAGE, "requirement" },
	{ "{\"status\":\"python_unavailable\"}", EX_USAGE, "Python" },
	{ "{\"status\":\"transcended\",\"exit_code\":0}", EX_PROTOCOL, "does not know" },
	{ "{\"status\":\"ok\",\"exit_code\":256}", EX_PROTOCOL, NULL },
	{ "{\"status\":\"ok\"}", EX_PROTOCOL, NULL },
	{ "{}", EX_PROTOCOL, "does not know" },
};

static void
only_success_looks_like_success(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(verdicts); i++) {
		const struct verdict_case *c = &verdicts[i];
		json_t *outcome = json_loads(c->outcome, 0, NULL);
		const char *text = verdict_text(outcome);

		assert_non_null(outcome);
		if (verdict_exit_code(outcome) != c->code)
			fail_msg("%s: %d", c->outcome, verdict_exit_code(outcome));
		if (!text != !c->text || (text && !strstr(text, c->text)))
			fail_msg("%s: \"%s\"", c->outcome, text ? text : "");
		json_decref(outcome);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_taken_or_refused),
		cmocka_unit_test(output_keeps_its_place_and_its_nul),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(only_success_looks_like_success),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
