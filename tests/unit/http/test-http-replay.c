/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/jsonout.h"
#include "base/xalloc.h"
#include "http/account.h"
#include "http/replay.h"
#include "tests/unit/base/effort.h"

struct rig {
	struct event_base *base;
	struct http_tenants tenants;
	struct http_tenant tenant;
	struct http_replays replays;
	int exchange;			/* what stands for one; nothing is asked of it */
};

static struct http_exchange *
somebody(struct rig *rig)
{
	return (struct http_exchange *)&rig->exchange;
}

/* Exchanges without a connection; these have none that would have to be freed. */
static void
forget(void *exchange)
{
	(void)exchange;
}

static int
set_up(void **state)
{
	struct rig *rig = xcalloc(1, sizeof(*rig));

	rig->base = xalloc_check(event_base_new());
	rig->tenant.all = &rig->tenants;
	http_replays_init(&rig->replays, rig->base, &rig->tenant, 1);
	*state = rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;

	http_replays_clear(&rig->replays);
	event_base_free(rig->base);
	assert_int_equal(rig->tenant.replay_bytes, 0);
	assert_int_equal(rig->tenants.replay_bytes, 0);
	free(rig);
	return 0;
}

/* A message of so many bytes, each of them letter. */
static void
say(struct http_replay *replay, bool is_news, char letter, size_t len)
{
	struct evbuffer *out = xalloc_check(evbuffer_new());
	char *text = xcalloc(1, len + 1);
	struct jsonout message;

	memset(text, letter, len);
	jsonout_init(&message);
	jsonout_raw(&message, text, len);
	free(text);
	http_replay_say(replay, is_news, &message, out);
	assert_true(evbuffer_get_length(out) > len);
	evbuffer_free(out);
}

/* What comes after an event: the first letter of each message. */
static void
expect_after(const struct http_replay *replay, uint64_t number, const char *want)
{
	struct evbuffer *out = xalloc_check(evbuffer_new());
	char *line, got[64] = "";

	http_replay_write(replay, number, out);
	while ((line = evbuffer_readln(out, NULL, EVBUFFER_EOL_LF))) {
		if (strncmp(line, "data: ", 6) == 0)
			strncat(got, line + 6, 1);
		free(line);
	}
	evbuffer_free(out);
	assert_string_equal(got, want);
}

static void
events_come_in_their_order(void **state)
{
	struct rig *rig = *state;
	struct http_replay *one = http_replay_new(&rig->replays, somebody(rig), forget);
	struct http_replay *two = http_replay_new(&rig->replays, somebody(rig), forget);
	char id[HTTP_EVENT_ID_MAX];
	uint64_t number;

	say(one, true, 'a', 10);
	say(two, true, 'x', 10);
	say(one, false, 'b', 10);
	say(one, false, 'c', 10);
	expect_after(one, 0, "abc");
	expect_after(one, 1, "bc");
	expect_after(one, 3, "");
	expect_after(two, 0, "x");
	http_replay_id(one, 2, id);
	assert_ptr_equal(http_replay_find(&rig->replays, id, &number), one);
	assert_int_equal(number, 2);
	http_replay_end(one);
	assert_null(one->exchange);
	expect_after(one, 1, "bc");
	http_replay_end(two);
}

static void
ids_that_are_none(void **state)
{
	static const char *const bad[] = {
		"", "-", "1", "1-", "-1", "1-2", "2-0", "0-0", "1-0 ", " 1-0", "1-0-0", "+1-0",
		"1--0", "0x1-0", "1-18446744073709551617", "18446744073709551617-0",
	};
	struct rig *rig = *state;
	struct http_replay *replay = http_replay_new(&rig->replays, somebody(rig), forget);
	uint64_t number;

	say(replay, false, 'a', 1);
	assert_ptr_equal(http_replay_find(&rig->replays, "1-0", &number), replay);
	assert_ptr_equal(http_replay_find(&rig->replays, "1-1", &number), replay);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_null(http_replay_find(&rig->replays, bad[i], &number));
	http_replay_end(replay);
}

static void
news_make_room(void **state)
{
	struct rig *rig = *state;
	struct http_replay *replay = http_replay_new(&rig->replays, somebody(rig), forget);
	const size_t third = HTTP_REPLAY_STREAM_MAX / 3 + 1;

	say(replay, false, 'q', 10);
	say(replay, true, 'a', third);
	say(replay, true, 'b', third);
	say(replay, true, 'c', third);
	expect_after(replay, 0, "qbc");
	say(replay, false, 'd', third);
	assert_true(replay->whole);
	expect_after(replay, 0, "qcd");
	/* news that do not fit at all are not worth the rest */
	say(replay, true, 'e', HTTP_REPLAY_STREAM_MAX);
	assert_true(replay->whole);
	assert_true(rig->tenant.replay_bytes <= HTTP_REPLAY_STREAM_MAX);
	http_replay_end(replay);
}

static void
what_does_not_fit_is_not_kept(void **state)
{
	struct rig *rig = *state;
	struct http_replay *replay = http_replay_new(&rig->replays, somebody(rig), forget);
	uint64_t number;

	say(replay, false, 'a', 10);
	say(replay, false, 'b', HTTP_REPLAY_STREAM_MAX);
	assert_false(replay->whole);
	assert_null(http_replay_find(&rig->replays, "1-0", &number));
	say(replay, false, 'c', 10);
	expect_after(replay, 0, "");
	http_replay_end(replay);	/* it is gone at once */
	assert_int_equal(rig->tenant.replay_bytes, 0);
}

static void
a_tenant_has_a_bound(void **state)
{
	const size_t n = HTTP_REPLAY_TENANT_MAX / HTTP_REPLAY_STREAM_MAX + 2;
	struct rig *rig = *state;
	struct http_replay *replay[16];
	uint64_t number;

	assert_true(n <= sizeof(replay) / sizeof(*replay));
	for (size_t i = 0; i < n; i++) {
		replay[i] = http_replay_new(&rig->replays, somebody(rig), forget);
		assert_non_null(replay[i]);
		say(replay[i], false, 'a', HTTP_REPLAY_STREAM_MAX - 4096);
		http_replay_end(replay[i]);
		assert_true(rig->tenant.replay_bytes <= HTTP_REPLAY_TENANT_MAX);
	}
	/* the oldest made room */
	assert_null(http_replay_find(&rig->replays, "1-0", &number));
	assert_ptr_equal(http_replay_find(&rig->replays, "6-0", &number), replay[5]);
	/* those that go on do not */
	for (size_t i = 0; i < n; i++) {
		replay[i] = http_replay_new(&rig->replays, somebody(rig), forget);
		assert_non_null(replay[i]);
		say(replay[i], false, 'b', HTTP_REPLAY_STREAM_MAX - 4096);
		assert_true(rig->tenant.replay_bytes <= HTTP_REPLAY_TENANT_MAX);
	}
	assert_true(replay[0]->whole);
	assert_false((replay[n - 1])->whole);
	for (size_t i = 0; i < n; i++)
		http_replay_end(replay[i]);
}

static void
what_is_over_is_forgotten(void **state)
{
	struct rig *rig = *state;
	struct http_replay *replay = http_replay_new(&rig->replays, somebody(rig), forget);

	say(replay, false, 'a', 10);
	http_replay_end(replay);
	assert_true(rig->tenant.replay_bytes > 0);
	event_base_dispatch(rig->base);		/* until its timer is the last thing that was */
	assert_int_equal(rig->tenant.replay_bytes, 0);
}

static void
none_at_all(void **state)
{
	struct rig *rig = *state;

	rig->replays.seconds = 0;
	assert_null(http_replay_new(&rig->replays, somebody(rig), forget));
}

static void
find_the_latest(void *arg)
{
	const struct rig *rig = arg;
	struct http_replay *latest = TAILQ_LAST(&rig->replays.list, http_replay_list);
	char id[HTTP_EVENT_ID_MAX];
	uint64_t number;

	http_replay_id(latest, 0, id);
	assert_ptr_equal(http_replay_find(&rig->replays, id, &number), latest);
}

/* A walk over the streams would take some hundred times as long. */
static void
many_streams_are_searched_as_fast_as_one(void **state)
{
	struct rig *rig = *state;
	uint64_t one;

	http_replay_new(&rig->replays, somebody(rig), forget);
	one = effort(find_the_latest, rig);
	for (int i = 0; i < 10000; i++)
		http_replay_new(&rig->replays, somebody(rig), forget);
	assert_true(effort(find_the_latest, rig) < 30 * one);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_come_in_their_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ids_that_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(news_make_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_does_not_fit_is_not_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_tenant_has_a_bound, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_over_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(none_at_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_streams_are_searched_as_fast_as_one, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
