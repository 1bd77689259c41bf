/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts are numbered, one at a time, and no more than were allowed; the time of their answers is
 * excused up to a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/execution_prompts.h"

#define MS 1000		/* microseconds */

static void
one_is_open_at_a_time(void **state)
{
	struct execution_prompts prompts;

	(void)state;
	prompts_init(&prompts, 2, 100);
	assert_int_equal(prompts_close(&prompts, 1), 0);
	assert_true(prompts_open(&prompts, 2, 1) < 0);
	assert_int_equal(prompts_open(&prompts, 1, 1), 0);
	assert_true(prompts_open(&prompts, 2, 2) < 0);
	assert_int_equal(prompts_close(&prompts, 2), 1);
	assert_int_equal(prompts_close(&prompts, 2), 0);
	assert_true(prompts_open(&prompts, 1, 3) < 0);
	assert_int_equal(prompts_open(&prompts, 2, 3), 0);
	assert_int_equal(prompts_close(&prompts, 4), 2);
	assert_true(prompts_open(&prompts, 3, 5) < 0);
}

static void
waits_are_excused_up_to_a_bound(void **state)
{
	struct execution_prompts prompts;

	(void)state;
	prompts_init(&prompts, 3, 100);
	assert_int_equal(prompts_excused_us(&prompts, 500 * MS), 0);
	assert_int_equal(prompts_patience_ms(&prompts, 500 * MS), 0);
	assert_int_equal(prompts_open(&prompts, 1, 500 * MS), 0);
	assert_int_equal(prompts_excused_us(&prompts, 530 * MS), 30 * MS);
	assert_int_equal(prompts_patience_ms(&prompts, 530 * MS), 70);
	assert_int_equal(prompts_close(&prompts, 540 * MS), 1);
	assert_int_equal(prompts_excused_us(&prompts, 900 * MS), 40 * MS);
	assert_int_equal(prompts_patience_ms(&prompts, 900 * MS), 0);
	assert_int_equal(prompts_open(&prompts, 2, 1000 * MS), 0);
	assert_int_equal(prompts_patience_ms(&prompts, 1000 * MS), 60);
	assert_int_equal(prompts_excused_us(&prompts, 1060 * MS), 100 * MS);
	assert_int_equal(prompts_excused_us(&prompts, 2000 * MS), 100 * MS);
	assert_int_equal(prompts_patience_ms(&prompts, 2000 * MS), 0);
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
