/* SPDX-License-Identifier: Apache-2.0 */
/* The directory helper: users and their groups, and directories that hang, crash or answer with an
 * error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "host/directory.h"
#include "host/helper.h"

#define LONG_S 600	/* the test does not wait for it */

/* ---- a directory that does what a uid says ---- */

enum { ANN = 1, NOBODY, DOWN, HANGS, CRASHES, STUBBORN };

static int
odd_look_up(uid_t uid, const char *const *group, size_t n, struct directory_person *person_r)
{
	sigset_t all;

	switch (uid) {
	case NOBODY:
		*person_r = (struct directory_person){ .member = calloc(n + 1, 1) };
		return 0;
	case DOWN:
		return -ECONNREFUSED;
	case STUBBORN:
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		__attribute__((fallthrough));
	case HANGS:
		for (;;)
			pause();
	case CRASHES:
		raise(SIGSEGV);
		return 0;
	default:
		*person_r = (struct directory_person){ uid, strdup("ann"), calloc(n + 1, 1) };
		for (size_t i = 0; i < n; i++)
			person_r->member[i] = strcmp(group[i], "staff") == 0;
		return 0;
	}
}

/* ---- one directory, and its answers ---- */

static struct event_base *base;
static struct directory *directory;

struct answer {
	int error;
	bool is_there;
	char user[64];
	unsigned char member[4];
};

static void
on_answer(void *arg, int error, const struct directory_person *person)
{
	struct answer *answer = arg;

	assert_false(answer->is_there);
	answer->is_there = true;
	answer->error = error;
	assert_int_equal(person == NULL, error != 0);
	if (!person)
		return;
	snprintf(answer->user, sizeof(answer->user), "%s", person->user ? person->user : "-");
	memcpy(answer->member, person->member, 2);
}

static const char *const groups[] = { "staff", "other" };

static struct directory_lookup *
ask(uid_t uid, unsigned int seconds, struct answer *answer)
{
	*answer = (struct answer){ .error = 1 };
	return directory_ask(directory, uid, groups, 2, seconds, on_answer, answer);
}

static void
wait_for(const struct answer *answer)
{
	while (!answer->is_there)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

static uint64_t lost_before;

static int
open_with(directory_look_up_fn *look_up)
{
	lost_before = helper_state(HELPER_DIRECTORY).lost;
	base = event_base_new();
	if (directory_new(look_up, &directory) < 0)
		return -1;
	directory_watch(directory, base);
	return 0;
}

static int
open_odd(void **state)
{
	(void)state;
	return open_with(odd_look_up);
}

static int
open_real(void **state)
{
	(void)state;
	return open_with(NULL);
}

static int
close_it(void **state)
{
	(void)state;
	directory_free(directory);
	helper_reap_all();
	event_base_free(base);
	/* The helper, and all that it has made, are gone. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	return errno == ECHILD ? 0 : -1;
}

static void
expect(uid_t uid, int error, const char *user, int staff)
{
	struct answer answer;

	ask(uid, LONG_S, &answer);
	wait_for(&answer);
	assert_int_equal(answer.error, error);
	if (error)
		return;
	assert_string_equal(answer.user, user);
	assert_int_equal(answer.member[0], staff);
	assert_int_equal(answer.member[1], 0);
}

/* ---- tests ---- */

static void
an_error_is_not_nobody(void **state)
{
	(void)state;
	expect(ANN, 0, "ann", 1);
	expect(NOBODY, 0, "-", 0);
	expect(DOWN, -ECONNREFUSED, NULL, 0);
	expect(CRASHES, -ECHILD, NULL, 0);
	expect(ANN, 0, "ann", 1);
	assert_int_equal(helper_state(HELPER_DIRECTORY).lost, lost_before);
}

static void
what_hangs_holds_up_nobody_else(void **state)
{
	struct answer hanging[3], answer;

	(void)state;
	ask(HANGS, LONG_S, &hanging[0]);
	ask(STUBBORN, LONG_S, &hanging[1]);
	ask(HANGS, LONG_S, &hanging[2]);
	for (int i = 0; i < 20; i++)
		expect(ANN, 0, "ann", 1);
	ask(DOWN, LONG_S, &answer);
	wait_for(&answer);
	for (size_t i = 0; i < 3; i++)
		assert_false(hanging[i].is_there);
}

static void
what_hangs_is_out_of_time(void **state)
{
	struct answer hanging[2];
	uint64_t since = clock_ms();

	(void)state;
	ask(HANGS, 1, &hanging[0]);
	ask(STUBBORN, 1, &hanging[1]);
	wait_for(&hanging[0]);
	wait_for(&hanging[1]);
	assert_int_equal(hanging[0].error, -ETIMEDOUT);
	assert_int_equal(hanging[1].error, -ETIMEDOUT);
	assert_true(clock_ms() - since >= 1000);
	assert_int_equal(helper_state(HELPER_DIRECTORY).lost, lost_before);
	expect(ANN, 0, "ann", 1);
}

static void
there_may_be_more_questions_than_the_helper_takes(void **state)
{
	enum { N = 3 * DIRECTORY_AT_ONCE };
	static struct answer answer[N];

	(void)state;
	for (size_t i = 0; i < N; i++)
		ask(i % 3 ? ANN : DOWN, LONG_S, &answer[i]);
	for (size_t i = 0; i < N; i++) {
		wait_for(&answer[i]);
		assert_int_equal(answer[i].error, i % 3 ? 0 : -ECONNREFUSED);
	}
}

static void
what_nobody_waits_for_is_dropped(void **state)
{
	static struct answer answer[2 * DIRECTORY_AT_ONCE], last;
	struct directory_lookup *question[2 * DIRECTORY_AT_ONCE];

	(void)state;
	for (size_t i = 0; i < 2 * DIRECTORY_AT_ONCE; i++)
		question[i] = ask(ANN, LONG_S, &answer[i]);
	for (size_t i = 0; i < 2 * DIRECTORY_AT_ONCE; i++)
		directory_cancel(question[i]);
	ask(ANN, LONG_S, &last);
	wait_for(&last);
	for (size_t i = 0; i < 2 * DIRECTORY_AT_ONCE; i++)
		assert_false(answer[i].is_there);
}

static void
turn_until_back(uint64_t times)
{
	const uint64_t end_ms = clock_ms() + 60000;

	while ((helper_state(HELPER_DIRECTORY).lost != lost_before + times ||
		helper_state(HELPER_DIRECTORY).away != 0) && clock_ms() < end_ms)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(helper_state(HELPER_DIRECTORY).lost, lost_before + times);
}

/* It is made again, and asked again; but not for ever. */
static void
a_helper_that_is_gone_is_made_again(void **state)
{
	struct answer hangs;

	(void)state;
	ask(HANGS, LONG_S, &hangs);
	kill(directory_pid(directory), SIGKILL);
	expect(ANN, 0, "ann", 1);
	turn_until_back(1);
	assert_false(hangs.is_there);
	kill(directory_pid(directory), SIGKILL);
	wait_for(&hangs);
	assert_true(hangs.error < 0);
	turn_until_back(2);
	expect(ANN, 0, "ann", 1);
}

/* A helper that stands still itself is not waited for for ever. */
static void
a_helper_that_keeps_no_time_is_replaced(void **state)
{
	struct answer answer;
	pid_t old = directory_pid(directory);

	(void)state;
	kill(old, SIGSTOP);
	ask(ANN, 1, &answer);
	wait_for(&answer);
	assert_int_equal(answer.error, -ETIMEDOUT);
	turn_until_back(1);
	assert_int_not_equal(directory_pid(directory), old);
	expect(ANN, 0, "ann", 1);
}

/* What it could do harm with: none of it is there. */
static void
it_has_nothing_of_ours(void **state)
{
	char path[64], line[256], target[256];
	unsigned int n = 0;
	FILE *status;
	ssize_t len;

	(void)state;
	expect(ANN, 0, "ann", 1);
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)directory_pid(directory), fd);
		len = readlink(path, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		n++;
		assert_true(fd <= 3 || strncmp(target, "/memfd:mcp-leases", 17) == 0);
		if (fd == 0)
			assert_string_equal(target, "/dev/null");
		if (fd == 3)
			assert_memory_equal(target, "socket:", 7);
	}
	/* It is not dumpable: only root may look. */
	assert_true(n == 5 || (n == 0 && geteuid() != 0));
	snprintf(path, sizeof(path), "/proc/%d/status", (int)directory_pid(directory));
	status = fopen(path, "re");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		if (strncmp(line, "Name:", 5) == 0)
			assert_string_equal(line, "Name:\tmcp-directory\n");
	fclose(status);
}

/* The C library's, as it is here. */
static void
the_hosts_own_users_are_found(void **state)
{
	const struct group *first = getgrgid(0);
	const char *const names[] = { first ? first->gr_name : "root", "no-such-group-at-all" };
	struct directory_person person;
	struct answer answer = { .error = 1 };

	(void)state;
	assert_int_equal(directory_look_up(0, names, 2, &person), 0);
	assert_string_equal(person.user, "root");
	assert_int_equal(person.member[0], 1);
	assert_int_equal(person.member[1], 0);
	directory_person_done(&person);
	/* A number without a user. */
	assert_int_equal(directory_look_up(2147483646, names, 2, &person), 0);
	assert_null(person.user);
	assert_int_equal(person.member[0], 0);
	directory_person_done(&person);
	directory_ask(directory, 0, names, 2, LONG_S, on_answer, &answer);
	wait_for(&answer);
	assert_int_equal(answer.error, 0);
	assert_string_equal(answer.user, "root");
	assert_int_equal(answer.member[0], 1);
}

#define ODD(name) cmocka_unit_test_setup_teardown(name, open_odd, close_it)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ODD(an_error_is_not_nobody),
		ODD(what_hangs_holds_up_nobody_else),
		ODD(what_hangs_is_out_of_time),
		ODD(there_may_be_more_questions_than_the_helper_takes),
		ODD(what_nobody_waits_for_is_dropped),
		ODD(a_helper_that_is_gone_is_made_again),
		ODD(a_helper_that_keeps_no_time_is_replaced),
		ODD(it_has_nothing_of_ours),
		cmocka_unit_test_setup_teardown(the_hosts_own_users_are_found, open_real, close_it),
	};

	/* Processes that the helper leaves become children of this process. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
