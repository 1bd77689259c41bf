/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a minute and an hour: what was used slides out of them, and the wait that is told
 * is long enough and not too long. */
#include "policy/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000)
#define START (UINT64_C(7777) * SECOND + 123)

static void
what_is_old_no_longer_counts(void **state)
{
	struct quota_window window = { .slot = 0 };

	(void)state;
	quota_add(&window, QUOTA_MINUTE_SLOT_MS, START, 1);
	quota_add(&window, QUOTA_MINUTE_SLOT_MS, START + 30 * SECOND, 2);
	assert_int_equal(quota_used(&window, QUOTA_MINUTE_SLOT_MS, START + 30 * SECOND), 3);
	assert_int_equal(quota_used(&window, QUOTA_MINUTE_SLOT_MS, START + 59 * SECOND), 3);
	assert_int_equal(quota_used(&window, QUOTA_MINUTE_SLOT_MS, START + 60 * SECOND), 2);
	assert_int_equal(quota_used(&window, QUOTA_MINUTE_SLOT_MS, START + 90 * SECOND), 0);
	quota_add(&window, QUOTA_MINUTE_SLOT_MS, START + 1000 * SECOND, 5);
	assert_int_equal(quota_used(&window, QUOTA_MINUTE_SLOT_MS, START + 1000 * SECOND), 5);
}

static void
the_wait_is_just_long_enough(void **state)
{
	struct quota_window window = { .slot = 0 };
	uint64_t now = START;

	(void)state;
	assert_int_equal(quota_wait_ms(&window, QUOTA_MINUTE_SLOT_MS, now, 1), 0);
	for (int i = 0; i < 5; i++, now += 7 * SECOND)
		quota_add(&window, QUOTA_MINUTE_SLOT_MS, now, 1);
	for (uint64_t most = 1; most <= 5; most++) {
		uint64_t wait = quota_wait_ms(&window, QUOTA_MINUTE_SLOT_MS, now, most);
		struct quota_window later = window, earlier = window;

		assert_true(wait > 0 && wait <= 60 * SECOND);
		assert_true(quota_used(&later, QUOTA_MINUTE_SLOT_MS, now + wait) < most);
		assert_true(quota_used(&earlier, QUOTA_MINUTE_SLOT_MS, now + wait - 1) >= most);
	}
	assert_int_equal(quota_wait_ms(&window, QUOTA_MINUTE_SLOT_MS, now, 6), 0);
}

static void
time_that_stands_still_is_fine(void **state)
{
	struct quota_window window = { .slot = 0 };

	(void)state;
	quota_add(&window, QUOTA_HOUR_SLOT_MS, START, 10);
	quota_add(&window, QUOTA_HOUR_SLOT_MS, START - 2 * SECOND, 10);
	assert_int_equal(quota_used(&window, QUOTA_HOUR_SLOT_MS, START), 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_old_no_longer_counts),
		cmocka_unit_test(the_wait_is_just_long_enough),
		cmocka_unit_test(time_that_stands_still_is_fine),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
