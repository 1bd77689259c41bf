/* SPDX-License-Identifier: Apache-2.0 */
/* Queues are bounded and first come, first served; the ring is fair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "engine/scheduler.h"

static void
queue_is_first_come_first_served_by_kind(void **state)
{
	struct sched_item item[6] = { { .kind = 0 }, { .kind = 1 }, { .kind = 0 },
				      { .kind = 1 }, { .kind = 0 }, { .kind = 2 } };
	struct sched_queue queue;

	(void)state;
	sched_queue_init(&queue, 10, 10);
	for (int i = 0; i < 6; i++)
		assert_int_equal(sched_queue_put(&queue, &item[i]), 0);
	assert_ptr_equal(sched_queue_take(&queue, 1), &item[1]);
	assert_ptr_equal(sched_queue_take(&queue, 0), &item[0]);
	assert_ptr_equal(sched_queue_take(&queue, 0), &item[2]);
	sched_queue_put_back(&queue, &item[2]);
	assert_ptr_equal(sched_queue_take(&queue, 0), &item[2]);
	sched_queue_remove(&queue, &item[4]);
	assert_null(sched_queue_take(&queue, 0));
	assert_ptr_equal(sched_queue_take(&queue, 1), &item[3]);
	assert_ptr_equal(sched_queue_take(&queue, 2), &item[5]);
	assert_int_equal(queue.n_waiting, 0);
	assert_int_equal(queue.n_running, 5);
}

/* Also if the bound has been lowered: an item that is in no queue would never be answered. */
static void
queue_moves_items(void **state)
{
	struct sched_item item[3] = { { .kind = 0 }, { .kind = 1 }, { .kind = 0 } };
	struct sched_queue queue;

	(void)state;
	sched_queue_init(&queue, 3, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sched_queue_put(&queue, &item[i]), 0);
	queue.waiting_max = 1;
	sched_queue_move(&queue, &item[0], 1);
	assert_int_equal(queue.n_waiting, 3);
	assert_ptr_equal(sched_queue_take(&queue, 0), &item[2]);
	assert_null(sched_queue_take(&queue, 0));
	assert_ptr_equal(sched_queue_take(&queue, 1), &item[1]);
	assert_ptr_equal(sched_queue_take(&queue, 1), &item[0]);
	assert_int_equal(queue.n_waiting, 0);
}

static void
what_is_held_holds_what_is_behind_it(void **state)
{
	struct sched_item item[3] = { { .kind = 1, .held = true }, { .kind = 1 }, { .kind = 2 } };
	struct sched_queue queue;

	(void)state;
	sched_queue_init(&queue, 8, 8);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sched_queue_put(&queue, &item[i]), 0);
	assert_null(sched_queue_take(&queue, 1));
	assert_ptr_equal(sched_queue_take(&queue, 2), &item[2]);
	assert_int_equal(sched_queue_take_item(&queue, &item[0]), -EBUSY);
	item[0].held = false;
	assert_ptr_equal(sched_queue_take(&queue, 1), &item[0]);
	assert_ptr_equal(sched_queue_take(&queue, 1), &item[1]);
}

static void
queue_is_bounded(void **state)
{
	struct sched_item item[4] = { { .kind = 0 } };
	struct sched_queue queue;

	(void)state;
	sched_queue_init(&queue, 3, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sched_queue_put(&queue, &item[i]), 0);
	assert_int_equal(sched_queue_put(&queue, &item[3]), -EBUSY);
	assert_non_null(sched_queue_take(&queue, 0));
	assert_int_equal(sched_queue_put(&queue, &item[3]), 0);
	/* No more runs at once than may. */
	assert_int_equal(sched_queue_useful(&queue, 0), 0);
	assert_null(sched_queue_take(&queue, 0));
	sched_queue_done(&queue, 10);
	assert_int_equal(sched_queue_useful(&queue, 0), 1);
	assert_ptr_equal(sched_queue_take(&queue, 0), &item[1]);
}

static void
retry_hint_follows_load_and_durations(void **state)
{
	struct sched_item item[20] = { { .kind = 0 } };
	struct sched_queue queue;
	uint32_t quick, slow;

	(void)state;
	sched_queue_init(&queue, 20, 2);
	for (int i = 0; i < 20; i++)
		sched_queue_put(&queue, &item[i]);
	for (int i = 0; i < 50; i++) {
		queue.n_running++;
		sched_queue_done(&queue, 20);
	}
	quick = sched_queue_retry_ms(&queue);
	for (int i = 0; i < 50; i++) {
		queue.n_running++;
		sched_queue_done(&queue, 4000);
	}
	slow = sched_queue_retry_ms(&queue);
	assert_in_range(quick, 50, 400);
	assert_in_range(slow, 10 * 3500, 60000);
	for (int i = 0; i < 200; i++) {
		queue.n_running++;
		sched_queue_done(&queue, UINT32_MAX);
	}
	assert_int_equal(sched_queue_retry_ms(&queue), 60000);
}

/* However much more some want than others: over any stretch each gets its turn. */
static void
ring_is_fair(void **state)
{
	enum { N = 7, ROUNDS = 100 };
	struct sched_entity entity[N];
	unsigned int turns[N] = { 0 };
	struct sched_ring ring;

	(void)state;
	memset(entity, 0, sizeof(entity));
	sched_ring_init(&ring);
	assert_null(sched_ring_next(&ring, SCHED_WAITING));
	assert_false(sched_ring_wants(&ring, SCHED_WAITING));
	for (int i = 0; i < N; i++)
		sched_ring_want(&ring, &entity[i], SCHED_WAITING, true);
	assert_true(sched_ring_wants(&ring, SCHED_WAITING));
	assert_false(sched_ring_wants(&ring, SCHED_WARMING));
	for (int i = 0; i < N * ROUNDS; i++) {
		struct sched_entity *next = sched_ring_next(&ring, SCHED_WAITING);

		turns[next - entity]++;
		/* The greedy one says again and again that it wants: it keeps its
		 * place. */
		sched_ring_want(&ring, &entity[0], SCHED_WAITING, true);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(turns[i], ROUNDS);
}

static void
newcomer_has_its_turn_within_one_round(void **state)
{
	struct sched_entity entity[5];
	struct sched_ring ring;
	int after = 0;

	(void)state;
	memset(entity, 0, sizeof(entity));
	sched_ring_init(&ring);
	for (int i = 0; i < 4; i++)
		sched_ring_want(&ring, &entity[i], SCHED_WAITING, true);
	sched_ring_next(&ring, SCHED_WAITING);
	sched_ring_want(&ring, &entity[4], SCHED_WAITING, true);
	while (sched_ring_next(&ring, SCHED_WAITING) != &entity[4])
		after++;
	assert_in_range(after, 0, 4);
}

static void
classes_are_apart(void **state)
{
	struct sched_entity entity[2];
	struct sched_ring ring;

	(void)state;
	memset(entity, 0, sizeof(entity));
	sched_ring_init(&ring);
	sched_ring_want(&ring, &entity[0], SCHED_WARMING, true);
	sched_ring_want(&ring, &entity[1], SCHED_WAITING, true);
	sched_ring_want(&ring, &entity[1], SCHED_WARMING, true);
	assert_ptr_equal(sched_ring_next(&ring, SCHED_WAITING), &entity[1]);
	sched_ring_want(&ring, &entity[1], SCHED_WAITING, false);
	assert_null(sched_ring_next(&ring, SCHED_WAITING));
	assert_ptr_equal(sched_ring_next(&ring, SCHED_WARMING), &entity[0]);
	assert_ptr_equal(sched_ring_next(&ring, SCHED_WARMING), &entity[1]);
	sched_ring_want(&ring, &entity[0], SCHED_WARMING, false);
	sched_ring_want(&ring, &entity[0], SCHED_WARMING, false);
	assert_ptr_equal(sched_ring_next(&ring, SCHED_WARMING), &entity[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_is_first_come_first_served_by_kind),
		cmocka_unit_test(queue_moves_items),
		cmocka_unit_test(what_is_held_holds_what_is_behind_it),
		cmocka_unit_test(queue_is_bounded),
		cmocka_unit_test(retry_hint_follows_load_and_durations),
		cmocka_unit_test(ring_is_fair),
		cmocka_unit_test(newcomer_has_its_turn_within_one_round),
		cmocka_unit_test(classes_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
