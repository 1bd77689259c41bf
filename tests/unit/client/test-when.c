/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people write them: each is the right second, and what is no time is refused. */
#include "client/when.h"

#include <errno.h>

#include "tests/unit/client/cmocka_all.h"

#define NOW 1795383000 /* 2026-11-22T21:30:00Z */

static void
words_are_times(void **state)
{
	static const struct {
		const char *text;
		time_t want;
	} cases[] = {
		{ "now", NOW },
		{ "today", NOW - 77400 },
		{ "yesterday", NOW - 77400 - 86400 },
		{ "-10min", NOW - 600 },
		{ "10min ago", NOW - 600 },
		{ "2 hours ago", NOW - 7200 },
		{ "-3d", NOW - 3 * 86400 },
		{ "2026-11-22", NOW - 77400 },
		{ "2026-11-22 21:30", NOW },
		{ "2026-11-22T21:30", NOW },
		{ "2026-11-22T21:30:05Z", NOW + 5 },
		{ "2024-02-29", 1709164800 },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		time_t when = 0;

		if (when_read(cases[i].text, NOW, &when) != 0 || when != cases[i].want)
			fail_msg("%s: %ld", cases[i].text, (long)when);
	}
}

static void
other_words_are_none(void **state)
{
	static const char *const cases[] = {
		"", "zzz", "10min", "-", "-min", "-10", "-10 parsecs", "2026-99-99", "2026-02-30",
		"2025-02-29", "2026-11-22T25:00", "2026-11-22T21:30:05X", "2026-11-22 ", "2026",
		"2026-11", "yesterday ", "-99999999d", "- 10min", "10min ago ",
	};
	time_t when;

	(void)state;
	for (size_t i = 0; i < N(cases); i++)
		if (when_read(cases[i], NOW, &when) != -EINVAL)
			fail_msg("%s is a time", cases[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_times),
		cmocka_unit_test(other_words_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
