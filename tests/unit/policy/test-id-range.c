/* SPDX-License-Identifier: Apache-2.0 */
/* The workers' range: that of the configuration on a machine, and what is mapped in a container. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "policy/id_range.h"

#define MACHINE "         0          0 4294967295\n"
#define ROOTLESS "         0       1000          1\n         1     100000      65536\n"
#define LEAST 258

static const struct id_range wanted = { 1879048192, 65536 };

static const struct {
	const char *what, *uid_map, *gid_map;
	int result;
	struct id_range range;
} cases[] = {
	{ "a machine", MACHINE, MACHINE, 0, { 1879048192, 65536 } },
	{ "a rootless container", ROOTLESS, ROOTLESS, 0, { 32769, 65534 - 32769 } },
	{ "an unprivileged container of LXC", "0 100000 65536\n", "0 100000 65536\n", 0,
	  { 32768, 65534 - 32768 } },
	{ "a large one", "0 1000000 1000000000\n", "0 1000000 1000000000\n", 0,
	  { 500000000, 65536 } },
	{ "unshare -r", "         0       1000          1\n", "         0       1000          1\n",
	  -ERANGE, { 0, 1 } },
	{ "groups are fewer", ROOTLESS, "0 1000 1\n1 100000 1000\n", 0, { 501, 500 } },
	{ "users and groups have nothing in common", "0 0 1000\n", "1000 0 1000\n", -ERANGE,
	  { 0, 0 } },
	{ "the range lies across two lines", "0 0 1879048200\n1879048200 2000000000 65536\n",
	  MACHINE, 0, { 939524100, 65536 } },
	{ "a range that begins at nobody", "65534 65534 400\n", MACHINE, -ERANGE, { 65734, 200 } },
	{ "nobody in the upper half's first id", "65332 0 404\n", MACHINE, -ERANGE, { 65536, 200 } },
	{ "too few", "0 0 500\n", "0 0 500\n", -ERANGE, { 250, 250 } },
	{ "a line at the end of all ids", "4294900000 0 67295\n", MACHINE, 0,
	  { 4294933647, 33648 } },
	{ "no line", "", MACHINE, -ERANGE, { 0, 0 } },
	{ "not a map", "a b c\n", "1\n", -ERANGE, { 0, 0 } },
};

static void
a_range_is_chosen(void **state)
{
	struct id_range range;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].what);
		assert_int_equal(id_range_choose(cases[i].uid_map, cases[i].gid_map, &wanted, LEAST,
						 &range), cases[i].result);
		assert_int_equal(range.first, cases[i].range.first);
		assert_int_equal(range.count, cases[i].range.count);
	}
}

/* Half a configured range is none: it is all there, or another one is taken. */
static void
the_wanted_range_has_to_be_whole(void **state)
{
	const struct id_range inside = { 70000, 1000 };
	struct id_range range;

	(void)state;
	assert_int_equal(id_range_choose("0 0 71000\n", MACHINE, &inside, LEAST, &range), 0);
	assert_int_equal(range.first, 70000);
	assert_int_equal(range.count, 1000);
	assert_int_equal(id_range_choose("0 0 70999\n", MACHINE, &inside, LEAST, &range), 0);
	assert_int_equal(range.first, 35499);
	assert_int_equal(range.count, 1000);
	assert_int_equal(id_range_choose(MACHINE, MACHINE, &inside, 1001, &range), -EINVAL);
}

static void
a_machine_has_all_ids(void **state)
{
	(void)state;
	assert_true(id_range_is_whole(MACHINE));
	assert_true(id_range_is_whole("0 0 1000\n1000 1000 4294966295\n"));
	assert_false(id_range_is_whole("0 0 4294967294\n"));
	assert_false(id_range_is_whole(ROOTLESS));
	assert_false(id_range_is_whole(""));
}

/* With too few ids workers have the uid of the service. */
static void
root_of_the_machine_is_recognised(void **state)
{
	(void)state;
	assert_true(id_range_keeps_root(MACHINE));
	assert_true(id_range_keeps_root("0 0 1\n"));
	assert_true(id_range_keeps_root(""));
	assert_false(id_range_keeps_root(ROOTLESS));
	assert_false(id_range_keeps_root("0 100000 65536\n"));
}

static void
the_own_maps_are_read(void **state)
{
	struct id_range range;
	int r;

	(void)state;
	r = id_range_here(&wanted, 1, &range);
	assert_true(r == 0 || r == -ERANGE);
	assert_true(range.count > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_chosen),
		cmocka_unit_test(the_wanted_range_has_to_be_whole),
		cmocka_unit_test(a_machine_has_all_ids),
		cmocka_unit_test(root_of_the_machine_is_recognised),
		cmocka_unit_test(the_own_maps_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
