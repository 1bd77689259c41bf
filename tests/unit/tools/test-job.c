/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the background and the tool job, on the fake engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "policy/config.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"

static void
send_call(struct bench *bench, const char *tool, const char *arguments)
{
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"%s\",\"arguments\":%s}}", tool,
			     arguments) > 0);
	bench_say(bench, line);
	free(line);
}

/* The result of the answer, for the caller to decref. */
static json_t *
result_of_next(struct bench *bench)
{
	json_t *answer, *result;

	if (!bench_unread(bench))
		bench_wait(bench, 1);
	answer = bench_next_json(bench);
	result = json_incref(json_object_get(answer, "result"));
	assert_non_null(result);
	json_decref(answer);
	return result;
}

static json_t *
call(struct bench *bench, const char *tool, const char *arguments)
{
	send_call(bench, tool, arguments);
	return result_of_next(bench);
}

static const char *
member(const json_t *result, const char *key)
{
	return json_string_value(json_object_get(
		json_object_get(result, "structuredContent"), key));
}

/* What a job that was started like this is called. */
static void
start(struct bench *bench, const char *script, char handle_r[128])
{
	char arguments[128];
	json_t *result;

	snprintf(arguments, sizeof(arguments), "{\"script\":\"%s\",\"background\":true}",
		 script);
	result = call(bench, "run_script", arguments);
	assert_string_equal(member(result, "status"), "running");
	snprintf(handle_r, 128, "%s", member(result, "job"));
	json_decref(result);
}

static json_t *
job(struct bench *bench, const char *handle, const char *rest)
{
	char arguments[256];

	snprintf(arguments, sizeof(arguments), "{\"id\":\"%s\",\"action\":%s}", handle, rest);
	return call(bench, "job", arguments);
}

static void
it_answers_when_it_is_over(void **state)
{
	struct bench *bench = bench_new();
	char handle[128];
	json_t *result, *answer;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	start(bench, "echo", handle);
	assert_int_equal(fake_engine_record()->started, 1);
	result = job(bench, handle, "\"wait\"");
	assert_string_equal(member(result, "state"), "done");
	answer = json_object_get(json_object_get(result, "structuredContent"), "answer");
	assert_string_equal(json_string_value(json_object_get(answer, "stdout")), "echo");
	assert_string_equal(json_string_value(json_object_get(answer, "status")), "ok");
	assert_true(json_is_false(json_object_get(result, "isError")) ||
		    !json_object_get(result, "isError"));
	json_decref(result);
	start(bench, "status timeout", handle);
	result = job(bench, handle, "\"wait\"");
	assert_true(json_is_true(json_object_get(result, "isError")));
	json_decref(result);
	bench_free(bench);
}

static void
it_outlives_the_stream_and_is_its_tenants(void **state)
{
	struct bench *bench = bench_new(), *same, *other;
	char handle[128];
	json_t *result;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	start(bench, "say hello", handle);
	bench_hang_up(bench);
	bench_turn(bench);
	assert_int_equal(fake_engine_record()->cancelled, 0);
	other = bench_beside(bench, 1001);
	bench_initialize(other, "2025-11-25");
	result = job(other, handle, "\"cancel\"");
	assert_true(json_is_true(json_object_get(result, "isError")));
	assert_null(json_object_get(result, "structuredContent"));
	assert_int_equal(fake_engine_record()->cancelled, 0);
	json_decref(result);
	same = bench_beside(bench, 1000);
	bench_initialize(same, "2025-11-25");
	result = job(same, handle, "\"output\"");
	assert_string_equal(json_string_value(json_object_get(json_object_get(
		json_object_get(result, "structuredContent"), "output"), "text")), "hello");
	json_decref(result);
	result = job(same, handle, "\"cancel\"");
	assert_string_equal(member(result, "state"), "cancelled");
	assert_int_equal(fake_engine_record()->cancelled, 1);
	json_decref(result);
	bench_free(same);
	bench_free(other);
	bench_free(bench);
}

/* What waits is woken by what comes, and ends with its stream. */
static void
waiting_ends_with_news(void **state)
{
	struct bench *bench = bench_new(), *beside = bench_beside(bench, 1000);
	char handle[128], arguments[256];
	json_t *result;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	bench_initialize(beside, "2025-11-25");
	start(bench, "hang", handle);
	snprintf(arguments, sizeof(arguments),
		 "{\"id\":\"%s\",\"action\":\"wait\",\"wait_seconds\":300}", handle);
	send_call(bench, "job", arguments);
	send_call(beside, "job", arguments);
	bench_turn(bench);
	assert_int_equal(bench_unread(bench), 0);
	bench_free(beside);
	assert_int_equal(fake_engine_record()->cancelled, 0);
	beside = bench_beside(bench, 1000);
	bench_initialize(beside, "2025-11-25");
	result = job(beside, handle, "\"cancel\"");
	json_decref(result);
	result = result_of_next(bench);
	assert_string_equal(member(result, "state"), "cancelled");
	json_decref(result);
	result = job(bench, handle, "\"wait\",\"wait_seconds\":0");
	assert_string_equal(member(result, "state"), "cancelled");
	json_decref(result);
	bench_free(beside);
	bench_free(bench);
}

static void
one_job(struct config *config)
{
	config->mcp.jobs_per_tenant = 1;
}

static void
one_that_is_over_makes_room(void **state)
{
	struct bench *bench = bench_new_with(NULL, one_job);
	char first[128], second[128];
	json_t *result;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	start(bench, "hang", first);
	result = call(bench, "run_script", "{\"script\":\"x\",\"background\":true}");
	assert_string_equal(member(result, "status"), "too_many_jobs");
	assert_true(json_is_true(json_object_get(result, "isError")));
	assert_int_equal(fake_engine_record()->started, 1);
	json_decref(result);
	json_decref(job(bench, first, "\"cancel\""));
	start(bench, "hang", second);
	result = job(bench, first, "\"status\"");
	assert_null(json_object_get(result, "structuredContent"));
	json_decref(result);
	bench_free(bench);		/* with one that runs */
}

static void
what_is_wrong_is_told_at_once(void **state)
{
	struct bench *bench = bench_new();
	json_t *result;

	(void)state;
	bench_initialize(bench, "2025-11-25");
	result = call(bench, "run_script",
		      "{\"script\":\"x\",\"background\":true,\"pids\":0}");
	assert_string_equal(member(result, "status"), "invalid_arguments");
	assert_null(member(result, "job"));
	json_decref(result);
	result = call(bench, "run_script", "{\"script\":\"x\",\"background\":1}");
	assert_string_equal(member(result, "status"), "invalid_arguments");
	json_decref(result);
	assert_int_equal(fake_engine_record()->started, 0);
	bench_free(bench);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_answers_when_it_is_over),
		cmocka_unit_test(it_outlives_the_stream_and_is_its_tenants),
		cmocka_unit_test(waiting_ends_with_news),
		cmocka_unit_test(one_that_is_over_makes_room),
		cmocka_unit_test(what_is_wrong_is_told_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
