/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that must not begin again: for how long, over a restart, of how many tenants, and whatever
 * becomes of the file. */
#include "govern/ledger.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/why.h"

#define SECONDS 600

static time_t passed;		/* of the clock that nobody sets */
static time_t jumped;		/* of the machine's clock, which somebody has set */

int
clock_gettime(clockid_t clock, struct timespec *now_r)
{
	*now_r = (struct timespec){ .tv_sec = 1000 + passed };
	(void)clock;
	return 0;
}

time_t
time(time_t *now_r)
{
	time_t now = 1700000000 + passed + jumped;

	if (now_r)
		*now_r = now;
	return now;
}

struct rig {
	char path[32];
	struct ledger *ledger;
};

static void
start(struct rig *rig)
{
	struct why why = { .field = "" };

	ledger_free(rig->ledger);
	assert_int_equal(ledger_new(rig->path, SECONDS, &rig->ledger, &why), 0);
}

static int
set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	passed = jumped = 0;
	strcpy(rig->path, "/tmp/ledger-XXXXXX");
	close(mkstemp(rig->path));
	start(rig);
	*state = rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;

	ledger_free(rig->ledger);
	unlink(rig->path);
	free(rig);
	return 0;
}

static struct ledger_call
call_of(unsigned int owner, unsigned int key)
{
	struct ledger_call call = { .id = { 0 } };

	memcpy(call.id, &key, sizeof(key));
	memcpy(call.id + 8, &owner, sizeof(owner));
	memcpy(call.call, &key, sizeof(key));
	memcpy(call.owner, &owner, sizeof(owner));
	return call;
}

static struct ledger_entry *
find(struct rig *rig, unsigned int owner, unsigned int key)
{
	return ledger_find(rig->ledger, call_of(owner, key).id);
}

static int
begin_most(struct rig *rig, unsigned int owner, unsigned int key, uint32_t most)
{
	struct ledger_call call = call_of(owner, key);
	struct ledger_entry *entry = NULL;
	int r = ledger_begin(rig->ledger, &call, most, &entry);

	if (r == 0)
		assert_memory_equal(&entry->is, &call, sizeof(call));
	return r;
}

static void
begin(struct rig *rig, unsigned int key)
{
	assert_int_equal(begin_most(rig, 1, key, UINT32_MAX), 0);
}

static void
calls_are_known_in_their_time(void **state)
{
	struct rig *rig = *state;

	begin(rig, 1);
	begin(rig, 2);
	begin(rig, 3);
	assert_null(find(rig, 1, 4));
	assert_null(find(rig, 2, 1));
	ledger_end(rig->ledger, find(rig, 1, 1), SECONDS);
	ledger_drop(rig->ledger, find(rig, 1, 3));
	assert_null(find(rig, 1, 3));
	passed = SECONDS - 1;
	assert_non_null(find(rig, 1, 1));
	passed = SECONDS;
	assert_null(find(rig, 1, 1));
	passed = 90 * SECONDS;
	assert_non_null(find(rig, 1, 2));	/* it still runs */
	begin(rig, 1);
}

static void
a_restart_knows_them(void **state)
{
	struct rig *rig = *state;
	struct stat st;

	for (unsigned int i = 0; i < 3000; i++)
		begin(rig, i);
	for (unsigned int i = 0; i < 3000; i += 2)
		ledger_end(rig->ledger, find(rig, 1, i), SECONDS);
	ledger_drop(rig->ledger, find(rig, 1, 7));
	passed = 100;
	start(rig);
	for (unsigned int i = 0; i < 3000; i++) {
		if (i == 7)
			assert_null(find(rig, 1, i));
		else
			assert_int_equal(find(rig, 1, i)->is.call[0], i & 0xff);
	}
	assert_null(find(rig, 1, 1)->user);
	/* What had ended is known as long as before, what was cut from the restart on. */
	passed = SECONDS;
	assert_null(find(rig, 1, 0));
	assert_non_null(find(rig, 1, 1));
	passed = SECONDS + 100;
	assert_null(find(rig, 1, 1));
	start(rig);
	assert_int_equal(begin_most(rig, 1, 1, 1), 0);	/* none counts any more */
	assert_int_equal(stat(rig->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void
a_clock_that_is_set_forgets_none(void **state)
{
	struct rig *rig = *state;

	begin(rig, 1);
	begin(rig, 2);
	ledger_end(rig->ledger, find(rig, 1, 1), SECONDS);
	jumped = 86400 * 365;
	assert_non_null(find(rig, 1, 1));
	jumped = -86400 * 365;
	start(rig);
	assert_non_null(find(rig, 1, 1));
	passed = SECONDS;
	assert_null(find(rig, 1, 1));	/* and for no longer */
	assert_null(find(rig, 1, 2));
}

static void
each_tenant_has_a_share(void **state)
{
	struct rig *rig = *state;
	unsigned int n[4] = { 0 };

	assert_int_equal(begin_most(rig, 9, 1, 2), 0);
	assert_int_equal(begin_most(rig, 9, 2, 2), 0);
	assert_int_equal(begin_most(rig, 9, 3, 2), -EDQUOT);
	for (unsigned int owner = 0; owner < 4; owner++)
		while (begin_most(rig, owner, n[owner], UINT32_MAX) == 0)
			n[owner]++;
	assert_in_range(n[0], LEDGER_CALLS_MAX / 2 - 2, LEDGER_CALLS_MAX / 2);
	for (unsigned int owner = 1; owner < 4; owner++)
		assert_in_range(n[owner], n[owner - 1] / 2 - 2, n[owner - 1] / 2 + 2);
	/* There is room again when their time is over. */
	for (unsigned int i = 0; i < n[0]; i++)
		ledger_end(rig->ledger, find(rig, 0, i), SECONDS);
	assert_int_equal(begin_most(rig, 0, n[0], UINT32_MAX), -EDQUOT);
	passed = SECONDS;
	assert_int_equal(begin_most(rig, 0, n[0], UINT32_MAX), 0);
	assert_null(find(rig, 0, 0));
	assert_non_null(find(rig, 1, 0));
}

static void
what_becomes_of_the_file(void **state)
{
	struct rig *rig = *state;
	struct why why = { .field = "" };
	struct ledger *other = NULL;
	FILE *file;

	begin(rig, 1);
	unlink(rig->path);
	begin(rig, 2);		/* made again, with all of them */
	start(rig);
	assert_non_null(find(rig, 1, 1));
	assert_non_null(find(rig, 1, 2));
	unlink(rig->path);
	assert_int_equal(mkdir(rig->path, 0700), 0);
	assert_int_equal(begin_most(rig, 1, 3, UINT32_MAX), -EISDIR);
	assert_null(find(rig, 1, 3));
	assert_int_equal(ledger_new(rig->path, SECONDS, &other, &why), -EISDIR);
	assert_string_equal(why.field, "repeat_file");
	rmdir(rig->path);
	begin(rig, 3);
	/* What is no record is skipped; a torn end, too. */
	file = fopen(rig->path, "r+");
	fputs("garbage", file);
	fseek(file, 0, SEEK_END);
	fputs("torn", file);
	fclose(file);
	start(rig);
	assert_int_equal(!!find(rig, 1, 1) + !!find(rig, 1, 2) + !!find(rig, 1, 3), 2);
	begin(rig, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_are_known_in_their_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_restart_knows_them, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_clock_that_is_set_forgets_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_tenant_has_a_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_becomes_of_the_file, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
