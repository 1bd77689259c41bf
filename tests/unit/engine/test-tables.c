/* SPDX-License-Identifier: Apache-2.0 */
/* Whose worker is ended when a table of the machine that no cgroup counts becomes full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/tables.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static void
bounds_follow_the_machine(void **state)
{
	static const struct {
		uint64_t machine;
		uint32_t sockets;
		uint64_t pressure, share;
	} rows[] = {
		{ 256 * MIB, 1024, 8 * MIB, MIB }, { 2 * GIB, 2048, 64 * MIB, 8 * MIB },
		{ 64 * GIB, 16384, 2 * GIB, 256 * MIB },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tables_bounds bounds = tables_bounds(rows[i].machine, 500);

		assert_int_equal(bounds.sockets, rows[i].sockets);
		assert_int_equal(bounds.pressure_bytes, rows[i].pressure);
		assert_int_equal(bounds.share_bytes, rows[i].share);
		assert_int_equal(bounds.tasks, 500);
	}
}

static void
the_largest_worker_of_the_tenant_ends(void **state)
{
	static const struct tables_bounds bounds = {
		.sockets = 1000, .tasks = 500, .pressure_bytes = 64 * MIB, .share_bytes = 8 * MIB,
	};
	static const struct {
		const char *what;
		struct tables_sample sample;
		enum stop_reason stop;
	} rows[] = {
		{ "nothing", { .tenant_workers = 1 }, STOP_NONE },
		{ "all it may", { 1000, 500, 1000, 500, 1, 64 * MIB, GIB }, STOP_NONE },
		{ "one socket more", { 1001, 0, 1001, 0, 1, 0, GIB }, STOP_SOCKETS },
		{ "one task more", { 0, 501, 0, 501, 1, 0, GIB }, STOP_TASKS },
		{ "more than its memory", { 129, 0, 129, 0, 1, 0, 16 * MIB }, STOP_SOCKETS },
		{ "as much as its memory", { 128, 0, 128, 0, 1, 0, 16 * MIB }, STOP_NONE },
		{ "a small one of many", { 10, 10, 1500, 800, 4, 0, GIB }, STOP_NONE },
		{ "an average one", { 375, 0, 1500, 0, 4, 0, GIB }, STOP_SOCKETS },
		{ "an average one's tasks", { 0, 200, 0, 800, 4, 0, GIB }, STOP_TASKS },
		{ "under pressure, a share", { 64, 0, 64, 0, 1, 65 * MIB, GIB }, STOP_NONE },
		{ "under pressure, more", { 65, 0, 65, 0, 1, 65 * MIB, GIB }, STOP_SOCKETS },
		{ "the same by another of it", { 5, 0, 65, 0, 2, 65 * MIB, GIB }, STOP_NONE },
		{ "more, without pressure", { 65, 0, 65, 0, 1, 64 * MIB, GIB }, STOP_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum stop_reason stop = tables_decide(&bounds, &rows[i].sample);

		if (stop != rows[i].stop)
			fail_msg("%s: %d", rows[i].what, (int)stop);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_follow_the_machine),
		cmocka_unit_test(the_largest_worker_of_the_tenant_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
