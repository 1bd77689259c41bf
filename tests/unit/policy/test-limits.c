/* SPDX-License-Identifier: Apache-2.0 */
/* A client can only tighten: tables of wishes, and a search for one that gets too much. */
#include "policy/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/why.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define MiB(n) ((n) * UINT64_C(1048576))

static const struct limits_policy policy = {
	.standard = { .wall_ms = 30000, .cpu_ms = 20000, .memory_bytes = MiB(512), .pids = 64,
		      .output_bytes = 1000, .output_total = 5000 },
	.cap = { .wall_ms = 600000, .cpu_ms = 300000, .memory_bytes = MiB(2048), .pids = 512,
		 .output_bytes = 2000, .output_total = 9000 },
};

static const struct limits_case {
	const char *name;
	struct limits_asked asked;
	uint32_t wall_ms, cpu_ms;
	uint64_t memory_bytes;
	uint32_t pids;
} cases[] = {
	{ "nothing", { 0 }, 30000, 20000, MiB(512), 64 },
	{ "less time", { .wall_ms = 1000 }, 1000, 20000, MiB(512), 64 },
	{ "time of the standard cpu", { .wall_ms = 20000 }, 20000, 20000, MiB(512), 64 },
	{ "more time brings cpu", { .wall_ms = 20001 }, 20001, 20001, MiB(512), 64 },
	{ "cpu grows to its cap only", { .wall_ms = 600000 }, 600000, 300000, MiB(512), 64 },
	{ "time with its own cpu", { .wall_ms = 90000, .cpu_ms = 5 }, 90000, 5, MiB(512), 64 },
	{ "cpu alone", { .cpu_ms = 300000 }, 30000, 300000, MiB(512), 64 },
	{ "less memory", { .memory_bytes = 1 }, 30000, 20000, 1, 64 },
	{ "all the memory", { .memory_bytes = MiB(2048) }, 30000, 20000, MiB(2048), 64 },
	{ "one process", { .pids = 1 }, 30000, 20000, MiB(512), 1 },
	{ "all processes", { .pids = 512 }, 30000, 20000, MiB(512), 512 },
};

static void
wishes_below_the_caps_are_granted(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		const struct limits_case *c = &cases[i];
		struct limits got;
		struct why why;

		if (limits_merge(&policy, &c->asked, &got, &why) != 0)
			fail_msg("%s: %s", c->name, why.text);
		if (got.wall_ms != c->wall_ms || got.cpu_ms != c->cpu_ms ||
		    got.memory_bytes != c->memory_bytes || got.pids != c->pids)
			fail_msg("%s", c->name);
		assert_int_equal(got.output_bytes, 1000);
		assert_int_equal(got.output_total, 5000);
	}
}

static const struct refusal {
	struct limits_asked asked;
	const char *field, *text;
} refusals[] = {
	{ { .wall_ms = 600001 }, "timeout_seconds",
	  "timeout_seconds may be at most 600 here; 600.001 was asked for" },
	{ { .cpu_ms = 301000 }, "cpu_seconds",
	  "cpu_seconds may be at most 300 here; 301 was asked for" },
	{ { .memory_bytes = MiB(2049) }, "memory_mb",
	  "memory_mb may be at most 2048 here; 2049 was asked for" },
	{ { .pids = 513 }, "pids", "pids may be at most 512 here; 513 was asked for" },
	{ { .memory_bytes = UINT64_MAX }, "memory_mb", NULL },
	{ { .wall_ms = UINT32_MAX, .pids = 513 }, "timeout_seconds", NULL },
};

static void
wishes_above_a_cap_name_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(refusals); i++) {
		struct limits got = { .pids = 4711 };
		struct why why;

		assert_int_equal(limits_merge(&policy, &refusals[i].asked, &got, &why), -ERANGE);
		assert_string_equal(why.field, refusals[i].field);
		if (refusals[i].text)
			assert_string_equal(why.text, refusals[i].text);
		assert_int_equal(got.pids, 4711);
		assert_int_equal(got.wall_ms, 0);
	}
}

static void
a_standard_above_its_cap_is_lowered(void **state)
{
	struct limits_policy wrong = { .standard = policy.cap, .cap = policy.standard };
	struct limits got;

	(void)state;
	assert_int_equal(limits_merge(&wrong, &(struct limits_asked){ 0 }, &got, NULL), 0);
	assert_int_equal(got.wall_ms, wrong.cap.wall_ms);
	assert_int_equal(got.cpu_ms, wrong.cap.cpu_ms);
	assert_int_equal(got.memory_bytes, wrong.cap.memory_bytes);
	assert_int_equal(got.pids, wrong.cap.pids);
	assert_int_equal(got.output_bytes, wrong.cap.output_bytes);
	assert_int_equal(got.output_total, wrong.cap.output_total);
}

/* A repeatable stream of numbers, of every magnitude. */
static uint64_t
any_number(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x >> (x % 60) | 1;
}

static struct limits
any_limits(void)
{
	return (struct limits){ (uint32_t)any_number() | 1, (uint32_t)any_number() | 1,
		any_number(), (uint32_t)any_number() | 1, any_number(), any_number(),
		{ .spill_bytes = any_number() } };
}

static void
no_wish_gets_more_than_the_cap_or_nothing(void **state)
{
	unsigned int granted = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 300000; i++) {
		struct limits_policy p = { .standard = any_limits(), .cap = any_limits() };
		struct limits_asked asked = { 0 };
		struct limits got;

		if (i % 2)
			asked.wall_ms = (uint32_t)any_number();
		if (i % 3)
			asked.cpu_ms = (uint32_t)any_number();
		if (i % 5)
			asked.memory_bytes = any_number();
		if (i % 7)
			asked.pids = (uint32_t)any_number();
		if (limits_merge(&p, &asked, &got, NULL) < 0) {
			refused++;
			continue;
		}
		granted++;
		assert_in_range(got.wall_ms, 1, p.cap.wall_ms);
		assert_in_range(got.cpu_ms, 1, p.cap.cpu_ms);
		assert_in_range(got.memory_bytes, 1, p.cap.memory_bytes);
		assert_in_range(got.pids, 1, p.cap.pids);
		assert_in_range(got.output_bytes, 1, p.cap.output_bytes);
		assert_in_range(got.output_total, 1, p.cap.output_total);
		if (asked.wall_ms)
			assert_int_equal(got.wall_ms, asked.wall_ms);
		if (asked.cpu_ms)
			assert_int_equal(got.cpu_ms, asked.cpu_ms);
		if (asked.memory_bytes)
			assert_int_equal(got.memory_bytes, asked.memory_bytes);
		if (asked.pids)
			assert_int_equal(got.pids, asked.pids);
	}
	assert_true(granted > 10000 && refused > 10000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes_below_the_caps_are_granted),
		cmocka_unit_test(wishes_above_a_cap_name_it),
		cmocka_unit_test(a_standard_above_its_cap_is_lowered),
		cmocka_unit_test(no_wish_gets_more_than_the_cap_or_nothing),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
