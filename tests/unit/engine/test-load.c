/* SPDX-License-Identifier: Apache-2.0 */
/* How a tenant's weight follows what it has used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/load.h"

#define SECOND_US 1000000ULL

/* Looks a second apart; permille: what is used between two of them. */
static void
seconds(struct load *load, unsigned int n, uint64_t permille)
{
	uint64_t now_ms = load->seen_ms, used_us = load->used_us;

	if (now_ms == 0)
		load_note(load, now_ms = 1, used_us);
	while (n-- > 0)
		load_note(load, now_ms += 1000, used_us += permille * SECOND_US / 1000);
}

static void
the_busy_weigh_less(void **state)
{
	static const struct { unsigned int permille, weight; } rows[] = {
		{ 0, 100 }, { 50, 100 }, { 100, 100 }, { 200, 50 }, { 500, 20 }, { 1000, 10 },
		{ 2000, 5 }, { 64000, 5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct load load = { 0 };

		seconds(&load, 40, rows[i].permille);
		assert_in_range(load_weight(&load), rows[i].weight, rows[i].weight + 1);
	}
}

static void
what_was_used_is_soon_forgotten(void **state)
{
	struct load load = { 0 };

	(void)state;
	assert_int_equal(load_weight(&load), LOAD_WEIGHT_MOST);
	seconds(&load, 1, 1000);
	assert_in_range(load_weight(&load), 19, 21);	/* the half of it */
	seconds(&load, 20, 1000);
	assert_in_range(load_weight(&load), 10, 11);
	seconds(&load, 1, 0);
	assert_in_range(load_weight(&load), 19, 21);
	seconds(&load, 3, 0);
	assert_int_equal(load_weight(&load), LOAD_WEIGHT_MOST);
}

/* What looks may come as: a cgroup that was made again begins at 0, a clock may stand still. */
static void
strange_looks_change_nothing(void **state)
{
	struct load load = { 0 };
	uint32_t before;

	(void)state;
	seconds(&load, 4, 1000);
	before = load.permille;
	load_note(&load, load.seen_ms, load.used_us + SECOND_US);
	load_note(&load, load.seen_ms - 1, load.used_us + SECOND_US);
	load_note(&load, load.seen_ms + 1, load.used_us + SECOND_US);
	assert_int_equal(load.permille, before);
	load_note(&load, load.seen_ms + 1000, 0);
	assert_int_equal(load.permille, before);
	assert_int_equal(load.used_us, 0);
	load_note(&load, load.seen_ms + 1000, UINT64_MAX);
	assert_int_equal(load_weight(&load), LOAD_WEIGHT_LEAST);
	load_note(&load, load.seen_ms + UINT32_MAX, UINT64_MAX);
	assert_int_equal(load_weight(&load), LOAD_WEIGHT_MOST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_busy_weigh_less),
		cmocka_unit_test(what_was_used_is_soon_forgotten),
		cmocka_unit_test(strange_looks_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
