/* SPDX-License-Identifier: Apache-2.0 */
/* What can be told of a worker without one: its states, and who has which uid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "engine/worker.h"
#include "engine/worker_slots.h"

static const bool may[WORKER_STATE_COUNT][WORKER_STATE_COUNT] = {
	/* to:              starting warm   leased running spent  ending */
	[WORKER_STARTING] = { false, true,  false, false,  false, true },
	[WORKER_WARM]     = { false, false, true,  true,   false, true },
	[WORKER_LEASED]   = { false, false, false, true,   false, true },
	[WORKER_RUNNING]  = { false, false, true,  false,  true,  true },
	[WORKER_SPENT]    = { false, false, false, false,  false, true },
	[WORKER_ENDING]   = { false, false, false, false,  false, false },
};

static void
states_only_go_forward(void **state)
{
	(void)state;
	for (int from = 0; from < WORKER_STATE_COUNT; from++)
		for (int to = 0; to < WORKER_STATE_COUNT; to++)
			assert_int_equal(worker_may_move((enum worker_state)from,
							 (enum worker_state)to),
					 may[from][to]);
}

static void
no_uid_is_given_out_twice(void **state)
{
	enum { N = 100 };
	struct worker_slots slots;
	bool held[N + 1] = { false };
	uint32_t given[N], slot;

	(void)state;
	srand(1);
	worker_slots_init(&slots, N);
	for (int round = 0; round < 200; round++) {
		int n = 1 + rand() % N;

		for (int i = 0; i < n; i++) {
			assert_int_equal(worker_slots_take(&slots, &slot), 0);
			assert_in_range(slot, 1, N);
			assert_false(held[slot]);
			held[slot] = true;
			given[i] = slot;
		}
		for (int i = 0; i < n; i++) {
			held[given[i]] = false;
			worker_slots_give(&slots, given[i]);
		}
	}
	worker_slots_done(&slots);
}

static void
uids_end_at_the_last_and_rest_longest(void **state)
{
	struct worker_slots slots;
	uint32_t slot, first;

	(void)state;
	worker_slots_init(&slots, 3);
	assert_int_equal(worker_slots_take(&slots, &first), 0);
	assert_int_equal(worker_slots_take(&slots, &slot), 0);
	worker_slots_give(&slots, first);
	assert_int_equal(worker_slots_take(&slots, &slot), 0);
	assert_int_not_equal(slot, first);
	assert_int_equal(worker_slots_take(&slots, &slot), 0);
	assert_int_equal(slot, first);
	slot = 99;
	assert_int_equal(worker_slots_take(&slots, &slot), -EAGAIN);
	assert_int_equal(slot, 99);
	worker_slots_done(&slots);
}

static void
without_a_range_all_share_one(void **state)
{
	struct worker_slots slots;
	uint32_t slot = 99;

	(void)state;
	worker_slots_init(&slots, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(worker_slots_take(&slots, &slot), 0);
		assert_int_equal(slot, 0);
	}
	worker_slots_give(&slots, 0);
	worker_slots_done(&slots);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_only_go_forward),
		cmocka_unit_test(no_uid_is_given_out_twice),
		cmocka_unit_test(uids_end_at_the_last_and_rest_longest),
		cmocka_unit_test(without_a_range_all_share_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
