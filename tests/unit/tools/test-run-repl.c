/* SPDX-License-Identifier: Apache-2.0 */
/* run_repl from its arguments to its answer, and the handles of sessions, on the fake
 * engine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>
#include <jansson.h>

#include "mcp/tool.h"
#include "policy/config.h"
#include "tests/unit/base/effort.h"
#include "tests/unit/mcp/bench_stream.h"
#include "tests/unit/tools/fake_engine.h"
#include "tools/session/repl_sessions.h"

#define COPY_MS 50

static struct bench *
begin(void)
{
	struct bench *bench = bench_new();

	bench_initialize(bench, "2025-11-25");
	return bench;
}

static void
end(struct bench *bench)
{
	repl_sessions_close_all();
	assert_int_equal(fake_repls_open(), 0);
	bench_free(bench);
}

/* Sends a call with this id; session: its handle, NULL: none; more: further members. */
static void
ask(struct bench *bench, int id, const char *session, const char *more)
{
	char *line;

	assert_true(asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
			     "\"params\":{\"name\":\"run_repl\",\"arguments\":{%s%s%s%s%s}}}", id,
			     session ? "\"session\":\"" : "", session ? session : "",
			     session ? "\"" : "", session && *more ? "," : "", more) > 0);
	bench_say(bench, line);
	free(line);
}

/* The structuredContent of the next answer; the caller's. */
static json_t *
take(struct bench *bench)
{
	json_t *answer, *structured;

	if (!bench_unread(bench))
		bench_wait(bench, 1);
	answer = bench_next_json(bench);
	structured = json_incref(json_object_get(json_object_get(answer, "result"),
						 "structuredContent"));
	json_decref(answer);
	assert_non_null(structured);
	return structured;
}

static json_t *
call(struct bench *bench, const char *session, const char *more)
{
	ask(bench, 1, session, more);
	return take(bench);
}

static const char *
member(const json_t *structured, const char *name)
{
	return json_string_value(json_object_get(structured, name));
}

/* Its members status and state, and the session's handle if handle_r is not NULL. */
static void
expect(json_t *structured, const char *status, const char *state, char *handle_r)
{
	const char *got = member(structured, "state"), *handle = member(structured, "session");

	assert_string_equal(member(structured, "status"), status);
	if (state)
		assert_string_equal(got, state);
	else
		assert_null(got);
	if (handle_r)
		snprintf(handle_r, HANDLE_MAX + 1, "%s", handle ? handle : "");
	json_decref(structured);
}

static void
a_session_goes_on_until_it_is_closed(void **state)
{
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1], again[HANDLE_MAX + 1];

	(void)state;
	expect(call(bench, NULL, "\"code\":\"x\""), "ok", "kept", handle);
	assert_memory_equal(handle, "r-", 2);
	assert_int_equal(fake_repls_open(), 1);
	expect(call(bench, handle, "\"code\":\"y\""), "ok", "kept", again);
	assert_string_equal(handle, again);
	expect(call(bench, handle, "\"code\":\"status error\""), "error", "kept", again);
	expect(call(bench, handle, "\"code\":\"status timeout\""), "timeout", "rolled_back",
	       again);
	assert_string_equal(handle, again);
	assert_int_equal(fake_repls_open(), 1);
	expect(call(bench, handle, "\"close\":true"), "ok", "closed", again);
	assert_string_equal(again, "");
	assert_int_equal(fake_repls_open(), 0);
	expect(call(bench, handle, "\"code\":\"x\""), "no_session", NULL, again);
	assert_string_equal(again, "");
	end(bench);
}

static void
limits_are_the_cell_s_and_memory_the_session_s(void **state)
{
	const struct fake_record *record = fake_engine_record();
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1], more[64];

	(void)state;
	expect(call(bench, NULL, "\"memory_mb\":100"), "ok", "kept", handle);
	assert_int_equal(record->last_limits.memory_bytes, 100 << 20);
	expect(call(bench, handle, "\"timeout_seconds\":2,\"pids\":3"), "ok", "kept", NULL);
	assert_int_equal(record->last_limits.memory_bytes, 100 << 20);
	assert_int_equal(record->last_limits.wall_ms, 2000);
	assert_int_equal(record->last_limits.pids, 3);
	expect(call(bench, handle, "\"memory_mb\":150"), "ok", "kept", NULL);
	assert_int_equal(record->last_limits.memory_bytes, 150 << 20);
	expect(call(bench, handle, "\"memory_mb\":149"), "invalid_arguments", NULL, NULL);
	snprintf(more, sizeof(more), "\"memory_mb\":%u", (FAKE_MEMORY_MOST >> 20) + 1);
	expect(call(bench, handle, more), "invalid_arguments", NULL, NULL);
	expect(call(bench, handle, "\"pids\":3"), "ok", "kept", NULL);
	assert_int_equal(record->last_limits.memory_bytes, 150 << 20);
	expect(call(bench, handle, "\"reset\":true,\"memory_mb\":100"), "ok", "kept", NULL);
	assert_int_equal(record->last_limits.memory_bytes, 100 << 20);
	expect(call(bench, handle, "\"reset\":true,\"memory_mb\":200"), "ok", "kept", NULL);
	assert_int_equal(record->last_limits.memory_bytes, 200 << 20);
	expect(call(bench, handle, "\"reset\":true"), "ok", "kept", NULL);
	assert_int_equal(record->last_limits.memory_bytes, 200 << 20);
	assert_int_equal(fake_repls_open(), 1);
	end(bench);
}

static void
checkpoints_have_names(void **state)
{
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1], more[64];
	json_t *structured;

	(void)state;
	structured = call(bench, NULL, "\"checkpoint\":\"a\"");
	assert_int_equal(json_array_size(json_object_get(structured, "checkpoints")), 1);
	expect(structured, "ok", "kept", handle);
	structured = call(bench, handle, "\"code\":\"status error\",\"checkpoint\":\"b\"");
	assert_int_equal(json_array_size(json_object_get(structured, "checkpoints")), 1);
	assert_non_null(strstr(member(structured, "state_text"), "No checkpoint"));
	expect(structured, "error", "kept", NULL);
	expect(call(bench, handle, "\"restore\":\"a\""), "ok", "kept", NULL);
	expect(call(bench, handle, "\"restore\":\"b\""), "no_checkpoint", NULL, NULL);
	/* Sixteen states: the head and fifteen names. */
	for (int i = 1; i < 15; i++) {
		snprintf(more, sizeof(more), "\"checkpoint\":\"c%d\"", i);
		expect(call(bench, handle, more), "ok", "kept", NULL);
	}
	expect(call(bench, handle, "\"checkpoint\":\"more\""), "session_limit", NULL, NULL);
	expect(call(bench, handle, "\"branch\":true"), "session_limit", NULL, NULL);
	expect(call(bench, handle, "\"checkpoint\":\"c1\""), "ok", "kept", NULL);
	expect(call(bench, handle, "\"reset\":true,\"checkpoint\":\"more\""), "ok", "kept",
	       NULL);
	end(bench);
}

static void
branches_share_what_they_come_from(void **state)
{
	struct bench *bench = begin();
	char first[HANDLE_MAX + 1], second[HANDLE_MAX + 1];

	(void)state;
	expect(call(bench, NULL, "\"checkpoint\":\"a\""), "ok", "kept", first);
	expect(call(bench, first, "\"branch\":true"), "ok", "kept", second);
	assert_string_not_equal(first, second);
	assert_int_equal(fake_repls_open(), 1);
	expect(call(bench, second, "\"restore\":\"a\""), "no_checkpoint", NULL, NULL);
	expect(call(bench, first, "\"close\":true"), "ok", "closed", NULL);
	assert_int_equal(fake_repls_open(), 1);
	expect(call(bench, second, "\"code\":\"x\""), "ok", "kept", NULL);
	expect(call(bench, second, "\"reset\":true"), "ok", "kept", NULL);
	assert_int_equal(fake_repls_open(), 1);
	expect(call(bench, second, "\"close\":true"), "ok", "closed", NULL);
	assert_int_equal(fake_repls_open(), 0);
	end(bench);
}

static void
calls_wait_for_their_turn(void **state)
{
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1];

	(void)state;
	expect(call(bench, NULL, ""), "ok", "kept", handle);
	ask(bench, 2, handle, "\"code\":\"hang\"");
	for (int i = 0; i <= REPL_WAITING_MAX; i++)
		ask(bench, 10 + i, handle, "\"code\":\"x\"");
	/* The first answer is that of the last one, which is one too many. */
	expect(take(bench), "session_busy", NULL, NULL);
	bench_turn(bench);
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
			 "{\"requestId\":2}}");
	for (int i = 0; i < REPL_WAITING_MAX; i++) {
		json_t *structured = take(bench);
		const char *text = member(structured, "state_text");

		/* What became of the cancelled one is told once. */
		assert_int_equal(text != NULL, i == 0);
		if (text)
			assert_non_null(strstr(text, "cancelled and had to be killed"));
		expect(structured, "ok", "kept", NULL);
	}
	/* A call that waits is removed; a session whose handle no client has is closed. */
	ask(bench, 3, handle, "\"code\":\"hang\"");
	bench_turn(bench);
	ask(bench, 4, handle, "\"code\":\"x\"");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
			 "{\"requestId\":4}}");
	ask(bench, 5, NULL, "\"code\":\"hang\"");
	assert_int_equal(fake_repls_open(), 2);
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
			 "{\"requestId\":5}}");
	bench_say(bench, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
			 "{\"requestId\":3}}");
	expect(call(bench, handle, "\"code\":\"x\""), "ok", "kept", NULL);
	assert_int_equal(fake_repls_open(), 1);
	end(bench);
}

/* Turns that do not wait suffice for the answer: no timer is in between. */
static void
a_look_is_answered_when_there_is_a_list(void **state)
{
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1];
	json_t *structured;

	(void)state;
	expect(call(bench, NULL, ""), "ok", "kept", handle);
	ask(bench, 2, handle, "\"code\":\"hang\",\"timeout_seconds\":100");
	ask(bench, 3, handle, "\"inspect\":true");
	ask(bench, 4, handle, "\"code\":\"x\"");
	for (int i = 0; i < 100; i++)
		bench_turn(bench);
	assert_int_equal(bench_unread(bench), 1);
	structured = take(bench);
	assert_non_null(strstr(member(structured, "state_text"), "before another call, which"));
	expect(structured, "ok", NULL, NULL);
	ask(bench, 5, handle, "\"close\":true");
	expect(take(bench), "cancelled", "closed", NULL);
	expect(take(bench), "no_session", NULL, NULL);
	expect(take(bench), "ok", "closed", NULL);
	end(bench);
}

static void
closing_waits_for_nobody(void **state)
{
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1], branch[HANDLE_MAX + 1];
	json_t *structured;

	(void)state;
	expect(call(bench, NULL, ""), "ok", "kept", handle);
	expect(call(bench, handle, "\"branch\":true"), "ok", "kept", branch);
	ask(bench, 2, handle, "\"code\":\"hang\"");
	bench_turn(bench);
	for (int i = 0; i < REPL_WAITING_MAX; i++)
		ask(bench, 10 + i, handle, "\"code\":\"x\"");
	ask(bench, 3, handle, "\"close\":true");
	ask(bench, 4, handle, "\"close\":true");
	structured = take(bench);
	assert_true(json_is_null(json_object_get(structured, "session")));
	expect(structured, "cancelled", "closed", NULL);
	/* One of the two closes it, and is answered last. */
	expect(take(bench), "ok", "closed", NULL);
	for (int i = 0; i < REPL_WAITING_MAX; i++)
		expect(take(bench), "no_session", NULL, NULL);
	expect(take(bench), "ok", "closed", NULL);
	/* Its branch goes on; with code a call has its turn first. */
	expect(call(bench, branch, "\"code\":\"x\""), "ok", "kept", NULL);
	expect(call(bench, branch, "\"code\":\"x\",\"close\":true"), "ok", "closed", NULL);
	assert_int_equal(fake_repls_open(), 0);
	end(bench);
}

static void
the_end_is_told_to_whoever_waits(void **state)
{
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1];

	(void)state;
	expect(call(bench, NULL, ""), "ok", "kept", handle);
	ask(bench, 2, handle, "\"code\":\"x\",\"close\":true");
	ask(bench, 3, handle, "\"code\":\"x\"");
	expect(take(bench), "no_session", NULL, NULL);
	expect(take(bench), "ok", "closed", NULL);
	end(bench);
}

static void
stop(const char *handle)
{
	struct tenant *tenant = engine_tenant(NULL, 1000);

	repl_session_stop(repl_session_find(tenant, handle), "an operator closed it");
	tenant_release(tenant);
}

/* Each call has one answer; the branch goes on, and can have all states. */
static void
an_operator_closes_it_while_a_call_has_the_turn(void **state)
{
	static const struct {
		const char *more, *status;
	} calls[] = {
		{ "\"restore\":\"a\"", "no_session" },
		{ "\"branch\":true", "no_session" },
		{ "\"checkpoint\":\"b\"", "ok" },
		{ "\"code\":\"hang\",\"checkpoint\":\"b\"", "cancelled" },
	};
	struct bench *bench = begin();
	char handle[HANDLE_MAX + 1], branch[HANDLE_MAX + 1], more[64];

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		expect(call(bench, NULL, "\"checkpoint\":\"a\""), "ok", "kept", handle);
		expect(call(bench, handle, "\"branch\":true"), "ok", "kept", branch);
		fake_repls_copy_in(COPY_MS);
		ask(bench, 2, handle, calls[i].more);
		bench_turn(bench);
		assert_int_equal(bench_unread(bench), 0);
		stop(handle);
		expect(take(bench), calls[i].status, i < 2 ? NULL : "lost", NULL);
		while (fake_repls_copying())
			bench_turn(bench);
		assert_int_equal(bench_unread(bench), 0);
		fake_repls_copy_in(0);
		for (int n = 1; n < 16; n++) {
			snprintf(more, sizeof(more), "\"checkpoint\":\"c%d\"", n);
			expect(call(bench, branch, more), "ok", "kept", NULL);
		}
		expect(call(bench, branch, "\"close\":true"), "ok", "closed", NULL);
		assert_int_equal(fake_repls_open(), 0);
	}
	end(bench);
}

/* A client cannot distinguish another tenant's handle from one that never existed. */
static void
a_handle_is_its_tenant_s(void **state)
{
	struct bench *bench = begin(), *other = bench_beside(bench, 4711);
	char handle[HANDLE_MAX + 1];
	json_t *theirs, *nobody_s;

	(void)state;
	bench_initialize(other, "2025-11-25");
	expect(call(bench, NULL, ""), "ok", "kept", handle);
	theirs = call(other, handle, "\"close\":true");
	handle[5] = handle[5] == 'A' ? 'B' : 'A';
	nobody_s = call(other, handle, "\"close\":true");
	assert_true(json_equal(theirs, nobody_s));
	json_decref(nobody_s);
	expect(theirs, "no_session", NULL, NULL);
	assert_int_equal(fake_repls_open(), 1);
	repl_sessions_close_all();
	bench_free(other);
	end(bench);
}

/* Opens a session and leaves it idle. */
static struct repl_session *
idle_session(const struct tool_host *host)
{
	const struct repl_first first = { .alone = false };
	const struct limits limits = { .memory_bytes = 1 << 20 };
	struct repl_turn turn = { .arg = NULL };
	struct repl_session *session;

	assert_int_equal(repl_session_new(host, NULL, &limits, NULL, &first, &turn, &session,
					  NULL), 0);
	repl_session_leave(&turn, true);
	return session;
}

/* What a call asks of the sessions: its own by its handle, all its own, and whether its tenant may
 * have one more, which these limits refuse. */
static void
ask_for_its_own(void *arg)
{
	const struct tool_host *host = arg;
	struct repl_session *own = repl_session_next(host->tenant, NULL);
	const struct limits too_much = { .memory_bytes = UINT64_C(1) << 60 };
	const struct repl_first first = { .alone = false };
	struct repl_turn turn = { .arg = NULL };
	struct repl_session *refused;

	assert_ptr_equal(repl_session_find(host->tenant, own->handle), own);
	assert_null(repl_session_next(host->tenant, own));
	assert_null(repl_session_other_job(own));
	assert_int_equal(repl_session_new(host, NULL, &too_much, NULL, &first, &turn, &refused,
					  NULL), -ENOSPC);
}

/* A walk over all sessions would take some hundred times as long. */
static void
sessions_of_others_cost_a_call_nothing(void **state)
{
	struct config *config = config_new();
	struct engine_options options = { .base = event_base_new(), .config = config };
	struct tool_host host = { .base = options.base, .config = config }, other;
	uint64_t alone;

	(void)state;
	config->repl.sessions_max = 20000;
	config->repl.memory_total = UINT64_C(1) << 40;
	assert_int_equal(engine_new(&options, &host.engine), 0);
	other = host;
	host.tenant = engine_tenant(host.engine, 1000);
	other.tenant = engine_tenant(host.engine, 1001);
	idle_session(&host);
	alone = effort(ask_for_its_own, &host);
	for (int i = 0; i < 10000; i++)
		idle_session(&other);
	assert_null(repl_session_find(host.tenant, idle_session(&other)->handle));
	assert_true(effort(ask_for_its_own, &host) < 30 * alone);
	repl_sessions_close_all();
	assert_int_equal(fake_repls_open(), 0);
	tenant_release(host.tenant);
	tenant_release(other.tenant);
	engine_free(host.engine);
	event_base_free(options.base);
	config_free(config);
}

static void
end_one(struct tool_host *host, char handle_r[HANDLE_MAX + 1])
{
	struct repl_session *session = idle_session(host);

	snprintf(handle_r, HANDLE_MAX + 1, "%s", session->handle);
	repl_session_stop(session, "an operator closed it");
}

/* The ends of one tenant's sessions do not push those of another out of memory. */
static void
ends_are_told_whatever_others_do(void **state)
{
	struct config *config = config_new();
	const struct engine_options options = { .config = config, .base = event_base_new() };
	struct tool_host host = { .config = config, .base = options.base }, other;
	char mine[HANDLE_MAX + 1], first[HANDLE_MAX + 1], last[HANDLE_MAX + 1];

	(void)state;
	assert_int_equal(engine_new(&options, &host.engine), 0);
	other = host;
	host.tenant = engine_tenant(host.engine, 1000);
	other.tenant = engine_tenant(host.engine, 1001);
	end_one(&host, mine);
	end_one(&other, first);
	for (int i = 0; i < 10000; i++)
		end_one(&other, last);
	assert_string_equal(repl_session_end_text(host.tenant, mine), "an operator closed it");
	assert_non_null(repl_session_end_text(other.tenant, last));
	assert_null(repl_session_end_text(other.tenant, first));
	assert_null(repl_session_end_text(other.tenant, mine));
	tenant_release(host.tenant);
	tenant_release(other.tenant);
	engine_free(host.engine);
	event_base_free(options.base);
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_goes_on_until_it_is_closed),
		cmocka_unit_test(limits_are_the_cell_s_and_memory_the_session_s),
		cmocka_unit_test(checkpoints_have_names),
		cmocka_unit_test(branches_share_what_they_come_from),
		cmocka_unit_test(calls_wait_for_their_turn),
		cmocka_unit_test(a_look_is_answered_when_there_is_a_list),
		cmocka_unit_test(a_handle_is_its_tenant_s),
		cmocka_unit_test(closing_waits_for_nobody),
		cmocka_unit_test(the_end_is_told_to_whoever_waits),
		cmocka_unit_test(an_operator_closes_it_while_a_call_has_the_turn),
		cmocka_unit_test(sessions_of_others_cost_a_call_nothing),
		cmocka_unit_test(ends_are_told_whatever_others_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
