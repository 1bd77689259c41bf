/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a principal for policy: requests that wait for the host's directory, and
 * principals of whom it says nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/why.h"
#include "govern/gate.h"
#include "host/directory.h"
#include "policy/config.h"
#include "policy/id_range.h"
#include "policy/rules.h"

#define ANN "uid:1"
#define BEN "uid:2"
#define MINUTE 60000
#define OF_BEN 71000	/* the first of ben's subordinate uids */
#define NOBODY 72000
#define TWO_OWNERS 73000

/* ---- a directory that does as it is told ---- */

static struct world {
	volatile bool down, hangs, ann_is_staff;
	volatile unsigned int asked;
} *world;

static int
look_up(uid_t uid, const char *const *group, size_t n, struct directory_person *person_r)
{
	__atomic_add_fetch(&world->asked, 1, __ATOMIC_SEQ_CST);
	while (world->hangs)
		pause();
	if (world->down)
		return -ECONNREFUSED;
	if (uid == TWO_OWNERS)
		return -EMLINK;
	*person_r = (struct directory_person){ uid, uid == NOBODY ? NULL
					       : strdup(uid == 1 ? "ann" : "ben"),
					       calloc(n + 1, 1) };
	if (uid >= OF_BEN && uid < NOBODY)
		person_r->uid = 2;
	for (size_t i = 0; i < n; i++)
		person_r->member[i] = uid == 1 && world->ann_is_staff &&
				      strcmp(group[i], "staff") == 0;
	return 0;
}

/* ---- a gate ---- */

static struct event_base *base;
static struct directory *directory;
static struct gate *gate;
static uint64_t now;
static unsigned int reloaded;
static bool lacks_uids;

static uint64_t
clock_of_test(void)
{
	return now;
}

static struct config *
read_text(const char *text)
{
	char path[] = "test-gate-XXXXXX";
	struct config *config = config_new();
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(config_read(config, path, stderr), 0);
	assert_int_equal(config_check(config, path, stderr), 0);
	unlink(path);
	return config;
}

static void
open_gate(const char *text)
{
	struct config *config = read_text(text);

	now = 1000;
	gate = gate_new(&(struct gate_options){ .base = base, .config = config,
						.directory = directory, .clock = clock_of_test,
						.lacks_uids = lacks_uids });
	config_free(config);
}

static int
set_up(void **state)
{
	(void)state;
	world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (world == MAP_FAILED)
		return -1;
	world->ann_is_staff = true;
	base = event_base_new();
	reloaded = 0;
	lacks_uids = false;
	if (directory_new(look_up, &directory) < 0)
		return -1;
	directory_watch(directory, base);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	gate_free(gate);
	directory_free(directory);
	event_base_free(base);
	munmap(world, sizeof(*world));
	return 0;
}

/* ---- a caller that waits ---- */

struct waiter {
	struct gate_wait wait;
	unsigned int woken;
};

static void
on_known(void *arg)
{
	struct waiter *waiter = arg;

	waiter->woken++;
}

static struct waiter
waiter_of(void)
{
	return (struct waiter){ .woken = 0 };
}

static int
identify(const char *principal, struct waiter *waiter)
{
	waiter->wait.on_known = on_known;
	waiter->wait.arg = waiter;
	return gate_identify(gate, principal, &waiter->wait, NULL);
}

static void
wait_for(const unsigned int *number, unsigned int least)
{
	while (*number < least)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* Waits as a carrier does; what it comes to. */
static int
settle(const char *principal)
{
	struct waiter waiter = waiter_of();
	int r;

	while ((r = identify(principal, &waiter)) == -EINPROGRESS)
		wait_for(&waiter.woken, waiter.woken + 1);
	return r;
}

static enum policy_verdict
verdict_of(const char *principal)
{
	const struct config *config = gate_config_named(gate, principal);
	enum policy_verdict verdict = policy_tool(config, "run_script");

	config_free(config);
	return verdict;
}

static void
on_reloaded(void *arg)
{
	(void)arg;
	reloaded++;
}

static void
reload(const char *text)
{
	struct config *config = read_text(text);

	gate_reload(gate, config, on_reloaded, NULL);
	config_free(config);
}

/* Waits as a carrier does for the owner of a uid. 0 or -errno. */
static int
owner_of(uid_t uid, uid_t *owner_r, struct why *why)
{
	struct waiter waiter = waiter_of();
	int r;

	waiter.wait.on_known = on_known;
	waiter.wait.arg = &waiter;
	while ((r = gate_owner(gate, uid, &waiter.wait, owner_r, why)) == -EINPROGRESS)
		wait_for(&waiter.woken, waiter.woken + 1);
	return r;
}

#define STAFF "[tenant group:staff]\npolicy.run_script = deny\n"

/* ---- tests ---- */

static void
where_nobody_is_named_nobody_is_asked(void **state)
{
	struct waiter waiter = waiter_of();

	(void)state;
	open_gate("[tenant uid:2]\npolicy.run_script = deny\n");
	world->down = true;
	assert_int_equal(identify(ANN, &waiter), 0);
	assert_int_equal(identify(BEN, &waiter), 0);
	assert_int_equal(verdict_of(ANN), POLICY_ALLOW);
	assert_int_equal(verdict_of(BEN), POLICY_DENY);
	reload("");
	assert_int_equal(reloaded, 1);
	assert_int_equal(verdict_of(BEN), POLICY_ALLOW);
	assert_int_equal(gate_identify(NULL, ANN, NULL, NULL), 0);
	assert_int_equal(world->asked, 0);
}

static void
a_subordinate_uid_is_its_owner(void **state)
{
	struct why why = { .text = "" };
	uid_t owner = 0;

	(void)state;
	open_gate("[service]\nidentity_seconds = 600\n");
	assert_int_equal(owner_of(OF_BEN, &owner, &why), 0);
	assert_int_equal(owner, 2);
	assert_int_equal(owner_of(2, &owner, &why), 0);
	assert_int_equal(owner, 2);
	assert_int_equal(world->asked, 2);
	/* root and the service itself are not asked about, also while the directory is down. */
	world->down = true;
	assert_int_equal(owner_of(0, &owner, &why), 0);
	assert_int_equal(owner_of(geteuid(), &owner, &why), 0);
	assert_int_equal(owner_of(OF_BEN, &owner, &why), 0);
	assert_int_equal(world->asked, 2);
	/* An answer that is too old is none. */
	now += 10 * MINUTE;
	assert_int_equal(owner_of(OF_BEN, &owner, &why), -ECONNREFUSED);
	assert_int_equal(gate_owner(NULL, OF_BEN, NULL, &owner, NULL), 0);
	assert_int_equal(owner, OF_BEN);
}

static void
a_uid_of_nobody_or_of_two_is_refused(void **state)
{
	struct why why = { .text = "" };
	uid_t owner = 0;

	(void)state;
	open_gate("");
	assert_int_equal(owner_of(NOBODY, &owner, &why), -EACCES);
	assert_non_null(strstr(why.text, "has no account on the host"));
	assert_int_equal(owner_of(TWO_OWNERS, &owner, &why), -EMLINK);
	assert_non_null(strstr(why.text, "several users"));
	gate_free(gate);
	open_gate("[service]\nunknown_uids = allow\n");
	assert_int_equal(owner_of(NOBODY, &owner, &why), 0);
	assert_int_equal(owner, NOBODY);
	assert_int_equal(owner_of(TWO_OWNERS, &owner, &why), -EMLINK);
}

/* In a container every uid of the host that is not mapped looks like that of nobody. */
static void
a_uid_that_stands_for_many_is_refused(void **state)
{
	struct why why = { .text = "" };
	uid_t owner = 0;

	(void)state;
	open_gate("[service]\nunknown_uids = allow\n");
	assert_int_equal(owner_of(ID_RANGE_NOBODY, &owner, &why), 0);
	gate_free(gate);
	lacks_uids = true;
	open_gate("[service]\nunknown_uids = allow\n");
	assert_int_equal(owner_of(ID_RANGE_NOBODY, &owner, &why), -EMLINK);
	assert_non_null(strstr(why.text, "does not exist in the service's user namespace"));
	assert_int_equal(owner_of(NOBODY, &owner, &why), 0);
}

static void
requests_wait_until_it_is_known(void **state)
{
	struct waiter waiter[3] = { waiter_of(), waiter_of(), waiter_of() };

	(void)state;
	open_gate(STAFF);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(identify(ANN, &waiter[i]), -EINPROGRESS);
	assert_int_equal(identify(ANN, &waiter[0]), -EINPROGRESS);
	assert_int_equal(verdict_of(ANN), POLICY_DENY);
	assert_string_equal(gate_subject(gate, ANN)->principal, ANN);
	assert_null(gate_subject(gate, ANN)->user);
	gate_unwait(&waiter[1].wait);
	gate_unwait(&waiter[1].wait);
	wait_for(&waiter[0].woken, 1);
	assert_int_equal(waiter[0].woken, 1);
	assert_int_equal(waiter[1].woken, 0);
	assert_int_equal(waiter[2].woken, 1);
	assert_int_equal(world->asked, 1);
	assert_int_equal(identify(ANN, &waiter[0]), 0);
	assert_int_equal(verdict_of(ANN), POLICY_DENY);
	assert_string_equal(gate_subject(gate, ANN)->user, "ann");
	assert_string_equal(gate_subject(gate, ANN)->group[0], "staff");
	assert_int_equal(settle(BEN), 0);
	assert_int_equal(verdict_of(BEN), POLICY_ALLOW);
	assert_int_equal(gate_subject(gate, BEN)->n_groups, 0);
	/* A token is no user of the host. */
	assert_int_equal(identify("token:ci", &waiter[0]), 0);
	assert_int_equal(world->asked, 2);
}

static void
a_directory_that_is_down_is_not_no_groups(void **state)
{
	struct why why = { .text = "" };

	(void)state;
	open_gate(STAFF "[policy]\nrun_script = allow\nrun_repl = allow\ninstall_package = allow\n");
	world->down = true;
	assert_int_equal(settle(BEN), -ECONNREFUSED);
	assert_int_equal(verdict_of(BEN), POLICY_DENY);
	assert_int_equal(gate_identify(gate, BEN, NULL, &why), -ECONNREFUSED);
	assert_non_null(strstr(why.text, "the host's directory of users cannot be asked"));
	{
		const struct config *config = gate_config_named(gate, BEN);
		const struct policy_subject root = { "uid:0", "root", NULL, 0 };

		assert_int_equal(policy_tool(config, "run_repl"), POLICY_DENY);
		assert_int_equal(policy_tool(config, "install_package"), POLICY_DENY);
		assert_int_equal(config->tool_calls.servers.n, 0);
		assert_false(policy_may_approve(config, &root, gate_subject(gate, BEN)));
		config_free(config);
	}
	/* Not asked with each request, but soon. */
	assert_int_equal(world->asked, 1);
	world->down = false;
	now += 9999;
	assert_int_equal(settle(BEN), -ECONNREFUSED);
	assert_int_equal(world->asked, 1);
	now += 1;
	assert_int_equal(settle(BEN), 0);
	assert_int_equal(verdict_of(BEN), POLICY_ALLOW);
}

static void
what_hangs_is_out_of_time_for_one_alone(void **state)
{
	struct waiter hangs = waiter_of();
	struct why why = { .text = "" };

	(void)state;
	open_gate(STAFF "[service]\ndirectory_seconds = 1\n");
	world->hangs = true;
	assert_int_equal(identify(ANN, &hangs), -EINPROGRESS);
	while (world->asked == 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
	world->hangs = false;	/* the child waits for a signal, which does not come */
	assert_int_equal(settle(BEN), 0);
	assert_int_equal(hangs.woken, 0);
	wait_for(&hangs.woken, 1);
	assert_int_equal(gate_identify(gate, ANN, NULL, &why), -ETIMEDOUT);
	assert_non_null(strstr(why.text, "does not answer"));
}

static void
an_answer_is_good_for_its_time(void **state)
{
	struct waiter waiter = waiter_of();

	(void)state;
	open_gate(STAFF "[service]\nidentity_seconds = 600\n");
	assert_int_equal(settle(ANN), 0);
	now += 5 * MINUTE - 1;
	assert_int_equal(identify(ANN, &waiter), 0);
	assert_int_equal(world->asked, 1);
	/* From half of the time on the directory is asked again, and no caller waits. */
	now += 1;
	world->ann_is_staff = false;
	assert_int_equal(identify(ANN, &waiter), 0);
	assert_int_equal(identify(ANN, &waiter), 0);
	assert_int_equal(verdict_of(ANN), POLICY_DENY);
	while (gate_subject(gate, ANN)->n_groups > 0)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(verdict_of(ANN), POLICY_ALLOW);
	assert_int_equal(world->asked, 2);
	assert_int_equal(waiter.woken, 0);
}

static void
an_old_answer_holds_while_there_is_no_new_one(void **state)
{
	struct waiter waiter = waiter_of();

	(void)state;
	open_gate(STAFF "[service]\nidentity_seconds = 600\n");
	assert_int_equal(settle(BEN), 0);
	world->down = true;
	now += 9 * MINUTE;
	assert_int_equal(identify(BEN, &waiter), 0);
	while (world->asked < 2)
		event_base_loop(base, EVLOOP_NONBLOCK);
	assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_int_equal(settle(BEN), 0);
	assert_int_equal(verdict_of(BEN), POLICY_ALLOW);
	/* Not for longer than its time. */
	now += MINUTE;
	assert_int_equal(settle(BEN), -ECONNREFUSED);
	assert_int_equal(verdict_of(BEN), POLICY_DENY);
}

static void
a_reload_asks_again(void **state)
{
	struct waiter waiter = waiter_of();

	(void)state;
	open_gate(STAFF);
	assert_int_equal(settle(ANN), 0);
	assert_int_equal(settle(BEN), 0);
	world->ann_is_staff = false;
	reload(STAFF "[policy]\nrun_script = approve\n");
	assert_int_equal(reloaded, 0);
	assert_int_equal(identify(ANN, &waiter), -EINPROGRESS);
	wait_for(&waiter.woken, 1);
	assert_int_equal(identify(ANN, &waiter), 0);
	assert_int_equal(verdict_of(ANN), POLICY_APPROVE);
	wait_for(&reloaded, 1);
	assert_int_equal(verdict_of(BEN), POLICY_APPROVE);
	assert_int_equal(world->asked, 4);
	/* One on top of another: only the last one is told of. */
	reload(STAFF);
	reload("");
	assert_int_equal(reloaded, 2);
	assert_int_equal(identify(ANN, &waiter), 0);
	assert_int_equal(verdict_of(ANN), POLICY_ALLOW);
}

static void
a_reload_without_a_directory(void **state)
{
	(void)state;
	open_gate(STAFF);
	assert_int_equal(settle(BEN), 0);
	world->down = true;
	/* The same is asked: what it said before holds. */
	reload(STAFF "[limits]\npids = 9\n");
	wait_for(&reloaded, 1);
	assert_int_equal(settle(BEN), 0);
	assert_int_equal(verdict_of(BEN), POLICY_ALLOW);
	/* Another group: it is not known whether the user is in it. */
	reload(STAFF "[tenant group:crew]\npolicy.run_script = deny\n");
	wait_for(&reloaded, 2);
	assert_int_equal(settle(BEN), -ECONNREFUSED);
	assert_int_equal(verdict_of(BEN), POLICY_DENY);
	/* Policy names no user and no group: nothing has to be known. */
	reload("");
	assert_int_equal(reloaded, 3);
	assert_int_equal(settle(BEN), 0);
	assert_int_equal(verdict_of(BEN), POLICY_ALLOW);
}

static void
whoever_waits_at_the_end_is_let_go(void **state)
{
	static struct waiter waiter[2];

	(void)state;
	open_gate(STAFF);
	world->hangs = true;
	assert_int_equal(identify(ANN, &waiter[0]), -EINPROGRESS);
	assert_int_equal(identify(BEN, &waiter[1]), -EINPROGRESS);
	gate_free(gate);
	gate = NULL;
	assert_false(waiter[0].wait.waits);
	gate_unwait(&waiter[0].wait);
	assert_int_equal(waiter[0].woken + waiter[1].woken, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(where_nobody_is_named_nobody_is_asked),
		TEST(a_subordinate_uid_is_its_owner),
		TEST(a_uid_of_nobody_or_of_two_is_refused),
		TEST(a_uid_that_stands_for_many_is_refused),
		TEST(requests_wait_until_it_is_known),
		TEST(a_directory_that_is_down_is_not_no_groups),
		TEST(what_hangs_is_out_of_time_for_one_alone),
		TEST(an_answer_is_good_for_its_time),
		TEST(an_old_answer_holds_while_there_is_no_new_one),
		TEST(a_reload_asks_again),
		TEST(a_reload_without_a_directory),
		TEST(whoever_waits_at_the_end_is_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
