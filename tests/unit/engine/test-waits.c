/* SPDX-License-Identifier: Apache-2.0 */
/* Waits are numbered, one at a time, and no more than were allowed; their time is excused up to a
 * bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/execution_waits.h"

#define MS 1000		/* microseconds */

static void
one_is_open_at_a_time(void **state)
{
	struct execution_waits waits;

	(void)state;
	waits_init(&waits, 2, 100);
	assert_int_equal(waits_close(&waits, 1), 0);
	assert_true(waits_open(&waits, 2, 1) < 0);
	assert_int_equal(waits_open(&waits, 1, 1), 0);
	assert_true(waits_open(&waits, 2, 2) < 0);
	assert_int_equal(waits_close(&waits, 2), 1);
	assert_int_equal(waits_close(&waits, 2), 0);
	assert_true(waits_open(&waits, 1, 3) < 0);
	assert_int_equal(waits_open(&waits, 2, 3), 0);
	assert_int_equal(waits_close(&waits, 4), 2);
	assert_true(waits_open(&waits, 3, 5) < 0);
}

static void
waits_are_excused_up_to_a_bound(void **state)
{
	struct execution_waits waits;

	(void)state;
	waits_init(&waits, 3, 100);
	assert_int_equal(waits_excused_us(&waits, 500 * MS), 0);
	assert_int_equal(waits_patience_ms(&waits, 500 * MS), 0);
	assert_int_equal(waits_open(&waits, 1, 500 * MS), 0);
	assert_int_equal(waits_excused_us(&waits, 530 * MS), 30 * MS);
	assert_int_equal(waits_patience_ms(&waits, 530 * MS), 70);
	assert_int_equal(waits_close(&waits, 540 * MS), 1);
	assert_int_equal(waits_excused_us(&waits, 900 * MS), 40 * MS);
	assert_int_equal(waits_patience_ms(&waits, 900 * MS), 0);
	assert_int_equal(waits_open(&waits, 2, 1000 * MS), 0);
	assert_int_equal(waits_patience_ms(&waits, 1000 * MS), 60);
	assert_int_equal(waits_excused_us(&waits, 1060 * MS), 100 * MS);
	assert_int_equal(waits_excused_us(&waits, 2000 * MS), 100 * MS);
	assert_int_equal(waits_patience_ms(&waits, 2000 * MS), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_open_at_a_time),
		cmocka_unit_test(waits_are_excused_up_to_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
