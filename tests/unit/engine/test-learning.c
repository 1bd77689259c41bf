/* SPDX-License-Identifier: Apache-2.0 */
/* Which modules are worth learning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/learning.h"

#define MINUTE_MS 60000

static void
time_spent_decides(void **state)
{
	struct learning l = { .hits = 0 };

	(void)state;
	assert_int_equal(learning_worth(&l, 1000), 0);
	learning_count(&l, 1, 8000, 1000);
	learning_count(&l, 3, 8000, 1001);
	assert_int_equal(learning_worth(&l, 1002), 0);
	learning_count(&l, 5, 8000, 1003);
	assert_int_equal(learning_worth(&l, 1004), 1);
	learning_count(&l, UINT64_C(1) << 62, 400000, 1005);
	assert_true(learning_worth(&l, 1006) == (UINT64_C(1) << 62 | 1));
}

static void
old_use_counts_less(void **state)
{
	struct learning l = { .hits = 0 };

	(void)state;
	learning_count(&l, 1, 30000, 1000);
	assert_int_equal(learning_worth(&l, 1000 + 9 * MINUTE_MS), 1);
	assert_int_equal(learning_worth(&l, 1000 + 10 * MINUTE_MS), 0);
	learning_count(&l, 1, 30000, 1000 + 10 * MINUTE_MS);
	/* Nothing overflows after a long rest. */
	assert_int_equal(learning_worth(&l, UINT64_C(1) << 36), 0);
}

/* A script may report any time. */
static void
a_false_report_is_bounded(void **state)
{
	struct learning l = { .hits = 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		learning_count(&l, UINT64_MAX, UINT32_MAX, 1000);
	for (size_t i = 0; i < LEARNABLE_MAX; i++)
		assert_true(l.spent_us[i] <= UINT64_C(1000000000));
	/* An hour later it is nearly forgotten. */
	assert_true(learning_worth(&l, 1000 + 60 * MINUTE_MS) == UINT64_MAX >> 1);
	assert_int_equal(learning_worth(&l, 1000 + 300 * MINUTE_MS), 0);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_spent_decides),
		cmocka_unit_test(old_use_counts_less),
		cmocka_unit_test(a_false_report_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
