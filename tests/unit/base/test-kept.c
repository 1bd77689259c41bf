/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept: how room is made, for whom, and when it ends. */
#include "base/kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/fair.h"

struct thing {
	struct kept kept;
	char name;
};

static struct event_base *base;
static struct kept_store store;
static char dropped[32];

static void
drop(struct kept *kept)
{
	size_t n = strlen(dropped);

	kept_remove(kept);
	dropped[n] = ((struct thing *)kept)->name;
	dropped[n + 1] = '\0';
}

static int
begin(void **state)
{
	(void)state;
	base = event_base_new();
	kept_store_init(&store, drop);
	dropped[0] = '\0';
	return base ? 0 : -1;
}

static int
end(void **state)
{
	(void)state;
	while (!TAILQ_EMPTY(&store.list))
		drop(TAILQ_FIRST(&store.list));
	event_base_free(base);
	return 0;
}

/* Things named a, b, c ..., of ten bytes each. */
static void
add(struct thing *things, size_t n, const char *owner)
{
	for (size_t i = 0; i < n; i++) {
		things[i] = (struct thing){ .kept.charge = 10, .name = (char)('a' + i) };
		kept_add(&store, &things[i].kept, owner, base);
	}
}

static void
the_oldest_makes_room(void **state)
{
	static struct thing things[4];

	(void)state;
	add(things, 4, "x");
	assert_true(kept_make_room(&store, "x", NULL, 4, 40));
	assert_string_equal(dropped, "");
	assert_true(kept_make_room(&store, "x", NULL, 3, 40));
	assert_string_equal(dropped, "a");
	assert_true(kept_make_room(&store, "x", NULL, 3, 29));
	assert_string_equal(dropped, "ab");
}

static void
what_was_seen_goes_first(void **state)
{
	static struct thing things[4];

	(void)state;
	add(things, 4, "x");
	things[1].kept.seen = things[3].kept.seen = true;
	assert_true(kept_make_room(&store, "x", NULL, 1, 40));
	assert_string_equal(dropped, "bda");
}

static void
what_is_in_use_stays(void **state)
{
	static struct thing things[3];

	(void)state;
	add(things, 3, "x");
	things[0].kept.in_use = things[1].kept.in_use = true;
	things[0].kept.seen = true;
	assert_false(kept_make_room(&store, "x", NULL, 1, 100));
	assert_string_equal(dropped, "c");
	assert_true(kept_make_room(&store, "x", NULL, 2, 20));
}

static void
the_latest_stays(void **state)
{
	static struct thing things[3];

	(void)state;
	add(things, 3, "x");
	assert_true(kept_make_room(&store, "x", &things[0].kept, 2, 20));
	assert_string_equal(dropped, "b");
	assert_false(kept_make_room(&store, "x", &things[0].kept, 2, 5));
	assert_string_equal(dropped, "bc");
}

/* Each owner has what the others leave, and loses its own to stay within that. */
static void
owners_have_shares_of_the_memory(void **state)
{
	static struct thing things[4];
	size_t all = fair_memory(16);

	(void)state;
	add(things, 2, "x");
	kept_charge(&things[0].kept, all / 8);
	kept_charge(&things[1].kept, all / 2);
	assert_true(kept_make_room(&store, "x", NULL, 9, UINT64_MAX));
	assert_string_equal(dropped, "a");
	add(things + 2, 2, "y");
	kept_charge(&things[2].kept, all / 4);
	kept_charge(&things[3].kept, all / 8);
	assert_true(kept_make_room(&store, "y", NULL, 9, UINT64_MAX));
	assert_string_equal(dropped, "aa");	/* the first of y */
}

static void
owners_are_apart(void **state)
{
	static const char one[] = "1", two[] = "2";
	static struct thing of_one[3], of_two[2];
	unsigned int in_use, others;

	(void)state;
	add(of_one, 3, one);
	add(of_two, 2, two);
	of_one[2].kept.in_use = true;
	kept_count(&store, one, &in_use, &others);
	assert_int_equal(in_use, 1);
	assert_int_equal(others, 2);
	kept_count(&store, NULL, &in_use, &others);
	assert_int_equal(in_use, 1);
	assert_int_equal(others, 4);
	assert_true(kept_make_room(&store, two, NULL, 0, 0));
	assert_string_equal(dropped, "ab");
	kept_count(&store, one, &in_use, &others);
	assert_int_equal(in_use + others, 3);
}

static void
its_time_ends(void **state)
{
	static struct thing things[3];

	(void)state;
	add(things, 3, "x");
	things[1].kept.in_use = true;	/* no matter */
	kept_expire(&things[1].kept, 0);
	kept_expire(&things[2].kept, 3600);
	assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_string_equal(dropped, "b");
	/* A removed object does not expire any more; removing it again is fine. */
	kept_remove(&things[2].kept);
	kept_remove(&things[2].kept);
	assert_int_equal(event_base_loop(base, EVLOOP_NONBLOCK), 1);
	assert_string_equal(dropped, "b");
}

/* The objects of one owner are found without a look at those of others, which is checked by links
 * of theirs that must not be followed. */
static void
an_owner_has_a_list_of_its_own(void **state)
{
	static char others[1000];
	static struct thing own[3];
	struct thing *foreign = calloc(1000, sizeof(*foreign));
	struct kept *kept;
	unsigned int in_use, over;
	char seen[4] = "";
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		kept_add(&store, &foreign[i].kept, &others[i], base);
	add(own, 3, "x");
	assert_null(kept_first(&store, &n));
	KEPT_FOREACH(kept, &store, own[0].kept.owner)
		seen[n++] = ((struct thing *)kept)->name;
	assert_string_equal(seen, "abc");
	for (size_t i = 0; i < 999; i++)
		foreign[i].kept.link.tqe_next = (struct kept *)1;
	kept_count(&store, own[0].kept.owner, &in_use, &over);
	assert_int_equal(in_use + over, 3);
	assert_true(kept_make_room(&store, own[0].kept.owner, NULL, 1, UINT64_MAX));
	assert_string_equal(dropped, "ab");
	for (size_t i = 0; i < 999; i++)
		foreign[i].kept.link.tqe_next = &foreign[i + 1].kept;
	for (size_t i = 0; i < 1000; i++)
		kept_remove(&foreign[i].kept);
	assert_null(kept_first(&store, &others[7]));
	free(foreign);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_oldest_makes_room, begin, end),
		cmocka_unit_test_setup_teardown(an_owner_has_a_list_of_its_own, begin, end),
		cmocka_unit_test_setup_teardown(what_was_seen_goes_first, begin, end),
		cmocka_unit_test_setup_teardown(what_is_in_use_stays, begin, end),
		cmocka_unit_test_setup_teardown(the_latest_stays, begin, end),
		cmocka_unit_test_setup_teardown(owners_have_shares_of_the_memory, begin, end),
		cmocka_unit_test_setup_teardown(owners_are_apart, begin, end),
		cmocka_unit_test_setup_teardown(its_time_ends, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
