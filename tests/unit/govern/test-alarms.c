/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of unusual use by one tenant: what decays, what is usual, one alarm in a period. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "govern/alarms.h"
#include "policy/config.h"

#define MINUTE_MS UINT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

static const struct config_alarms bounds = {
	.executions = 100, .failures = 10, .new_hosts = 3, .unusual_times = 10,
	.period_seconds = 3600,
};

/* Adds n at once. How many alarms that has raised. */
static unsigned int
add(struct alarms *alarms, enum alarm_pattern pattern, unsigned int n, uint64_t now_ms)
{
	unsigned int raised = 0;

	while (n-- > 0)
		raised += alarms_add(alarms, &bounds, pattern, 1, now_ms);
	return raised;
}

static void
each_pattern_has_a_bound_of_its_own(void **state)
{
	struct alarms alarms = { .hosts = NULL };

	(void)state;
	assert_int_equal(add(&alarms, ALARM_EXECUTIONS, 99, 1000), 0);
	assert_int_equal(add(&alarms, ALARM_FAILURES, 9, 1000), 0);
	assert_false(alarms_is_raised(&alarms, &bounds, ALARM_EXECUTIONS, 1000));
	assert_int_equal(add(&alarms, ALARM_EXECUTIONS, 1, 1000), 1);
	assert_int_equal(alarms.count[ALARM_EXECUTIONS].raised_count, 100);
	assert_true(alarms_is_raised(&alarms, &bounds, ALARM_EXECUTIONS, 1000));
	assert_false(alarms_is_raised(&alarms, &bounds, ALARM_FAILURES, 1000));
	/* 0: no alarm */
	assert_int_equal(add(&alarms, ALARM_DENIALS, 100000, 1000), 0);
}

static void
there_is_one_alarm_in_a_period(void **state)
{
	struct alarms alarms = { .hosts = NULL };

	(void)state;
	assert_int_equal(add(&alarms, ALARM_FAILURES, 1000, 1000), 1);
	assert_int_equal(add(&alarms, ALARM_FAILURES, 1000, HOUR_MS), 0);
	assert_int_equal(add(&alarms, ALARM_FAILURES, 1000, HOUR_MS + 1000), 1);
	assert_false(alarms_is_raised(&alarms, &bounds, ALARM_FAILURES, 2 * HOUR_MS + 1000));
}

static void
what_is_slow_is_no_alarm(void **state)
{
	struct alarms alarms = { .hosts = NULL };

	(void)state;
	/* nine in ten minutes, all day */
	for (uint64_t i = 1; i < 24 * 54; i++)
		assert_int_equal(add(&alarms, ALARM_FAILURES, 1, i * HOUR_MS / 54), 0);
}

static void
what_is_usual_is_no_alarm(void **state)
{
	struct alarms alarms = { .hosts = NULL };
	unsigned int raised = 0;
	uint64_t now = 1000;

	(void)state;
	/* much from the beginning: an alarm at first, and none once it is a habit */
	for (uint64_t i = 0; i < 20 * 60; i++, now += MINUTE_MS)
		raised += add(&alarms, ALARM_EXECUTIONS, 30, now);
	assert_in_range(raised, 1, 4);
	for (uint64_t i = 0; i < 4 * 60; i++, now += MINUTE_MS)
		assert_int_equal(add(&alarms, ALARM_EXECUTIONS, 30, now), 0);
	/* twice as much is no alarm either; twenty times as much is one */
	assert_int_equal(add(&alarms, ALARM_EXECUTIONS, 300, now), 0);
	assert_int_equal(add(&alarms, ALARM_EXECUTIONS, 6000, now), 1);
	assert_in_range(alarms.count[ALARM_EXECUTIONS].raised_usual, 100, 400);
}

static void
hosts_are_new_once(void **state)
{
	struct alarms alarms = { .hosts = NULL };
	char host[32];
	size_t known = 0;

	(void)state;
	assert_true(alarms_is_new_host(&alarms, "a.example", 9));
	assert_true(alarms_is_new_host(&alarms, "b.example", 9));
	assert_false(alarms_is_new_host(&alarms, "a.example", 9));
	/* no text that ends elsewhere is taken for it */
	assert_true(alarms_is_new_host(&alarms, "a.example", 8));
	/* memory stays bounded: the oldest are forgotten, the newest are known */
	for (unsigned int i = 0; i < 5000; i++) {
		size_t len = (size_t)snprintf(host, sizeof(host), "h%u.example", i);

		alarms_is_new_host(&alarms, host, len);
		assert_false(alarms_is_new_host(&alarms, host, len));
	}
	for (unsigned int i = 0; i < 5000; i++) {
		size_t len = (size_t)snprintf(host, sizeof(host), "h%u.example", i);
		struct alarms copy = alarms;
		uint64_t hosts[ALARM_HOST_SETS][ALARM_HOSTS_OF_SET];

		memcpy(hosts, alarms.hosts, sizeof(hosts));
		copy.hosts = hosts;
		known += !alarms_is_new_host(&copy, host, len);
	}
	assert_in_range(known, 200, ALARM_HOST_SETS * ALARM_HOSTS_OF_SET);
	alarms_done(&alarms);
	assert_null(alarms.hosts);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pattern_has_a_bound_of_its_own),
		cmocka_unit_test(there_is_one_alarm_in_a_period),
		cmocka_unit_test(what_is_slow_is_no_alarm),
		cmocka_unit_test(what_is_usual_is_no_alarm),
		cmocka_unit_test(hosts_are_new_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
