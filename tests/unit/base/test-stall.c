/* SPDX-License-Identifier: Apache-2.0 */
/* The guard ends waits in the middle of a turn, and nothing else. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/stall.h"
#include "tests/unit/base/linger.h"

#define MS(n) { .tv_nsec = (n) * 1000000L }

static unsigned int slow_calls, slow_ms;

static void
on_slow(unsigned int milliseconds)
{
	slow_calls++;
	slow_ms = milliseconds;
}

static long
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
compute(long ms)
{
	for (long end = now_ms() + ms; now_ms() < end;)
		;
}

static int
begin(void **state)
{
	(void)state;
	return stall_guard(on_slow);
}

/* ---- what it ends ---- */

static void
a_lingering_close_is_ended(void **state)
{
	int fd = linger_open(NULL);
	long start = now_ms();

	(void)state;
	stall_turn();
	close(fd);
	assert_true(now_ms() - start < HANG_MS);
}

static void
so_are_descriptors_that_nobody_asked_for(void **state)
{
	long start;
	int pair[2];
	char byte;

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), errno);
	for (int i = 0; i < 20; i++)
		assert_int_equal(linger_pass(pair[1], linger_open(NULL)), 0);
	start = now_ms();
	stall_turn();
	for (int i = 0; i < 10; i++)
		assert_int_equal(read(pair[0], &byte, 1), 1);
	/* The other ten are never read. */
	close(pair[0]);
	assert_true(now_ms() - start < HANG_MS);
	close(pair[1]);
}

/* A rest ends the first turn's signals, and the second turn has its own. */
static void
each_turn_is_guarded(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		int fd = linger_open(NULL);
		long start = now_ms();

		stall_turn();
		close(fd);
		assert_true(now_ms() - start < HANG_MS);
		stall_rest();
	}
}

static void
a_slow_turn_is_told(void **state)
{
	struct timespec wait = { .tv_sec = HANG_MS / 1000 };
	unsigned int before = slow_calls;

	(void)state;
	stall_turn();
	assert_int_equal(nanosleep(&wait, NULL), -1);
	stall_rest();
	assert_int_equal(slow_calls, before + 1);
	assert_true(slow_ms >= STALL_MS / 2 && slow_ms < HANG_MS);
	stall_turn();
	stall_rest();
	assert_int_equal(slow_calls, before + 1);
}

/* ---- what it leaves alone ---- */

static void *
rest_elsewhere(void *arg)
{
	stall_turn();
	stall_rest();
	stall_forget();
	return arg;
}

/* A library's thread that waits by a function of turns.c. */
static void
another_thread_ends_no_turn(void **state)
{
	struct timespec wait = { .tv_sec = HANG_MS / 1000 };
	unsigned int before = slow_calls;
	pthread_t thread;

	(void)state;
	stall_turn();
	assert_int_equal(pthread_create(&thread, NULL, rest_elsewhere, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(nanosleep(&wait, NULL), -1);
	stall_rest();
	assert_int_equal(slow_calls, before + 1);
}

/* What was armed for the turn comes once, and then there is quiet; also in a loop that takes it for
 * a turn. */
static void
a_rest_lasts(void **state)
{
	struct timespec wait = { .tv_sec = 1 };
	int turns = 0;

	(void)state;
	do {
		stall_turn();
		turns++;
		stall_rest();
	} while (nanosleep(&wait, &wait) < 0);
	assert_in_range(turns, 1, 2);
}

static void
a_pause_is_not_interrupted(void **state)
{
	struct timespec wait = MS(4 * STALL_MS);

	(void)state;
	stall_turn();
	stall_pause();
	assert_int_equal(nanosleep(&wait, NULL), 0);
	stall_turn();
	assert_int_equal(nanosleep(&(struct timespec){ .tv_sec = HANG_MS / 1000 }, NULL), -1);
	stall_rest();
}

/* ---- whose doing it was ---- */

static enum stall
watch_linger(struct stall_debt *debt, long *took_ms_r)
{
	int fd = linger_open(NULL);
	long start = now_ms();
	enum stall found;

	stall_turn();
	stall_watch(debt);
	close(fd);
	found = stall_waited(debt);
	*took_ms_r = now_ms() - start;
	assert_int_equal(stall_waited(debt), STALL_NONE);
	stall_rest();
	return found;
}

/* A first wait is excused. The next ones are ended much sooner, and are soon no chance any more. */
static void
a_wait_is_found(void **state)
{
	struct stall_debt debt = { 0 };
	long took_ms, least_ms = HANG_MS;
	int tries = 1;

	(void)state;
	assert_int_equal(watch_linger(&debt, &took_ms), STALL_EXCUSED);
	assert_true(stall_is_in_debt(&debt));
	while (watch_linger(&debt, &took_ms) != STALL_PROVEN) {
		least_ms = took_ms < least_ms ? took_ms : least_ms;
		assert_true(tries++ < 40);
	}
	assert_true(least_ms < STALL_MS - 10);
	debt.at_ms -= 20000;
	assert_false(stall_is_in_debt(&debt));
	assert_int_equal(watch_linger(&debt, &took_ms), STALL_EXCUSED);
}

/* A suspect costs nobody else his patience. */
static void
another_is_not_interrupted(void **state)
{
	struct stall_debt suspect = { 0 }, other = { 0 };
	struct timespec wait = MS(5 * BRIEF_MS), briefly = MS(STALL_MS);

	(void)state;
	stall_owe(&suspect);
	stall_rest();
	nanosleep(&(struct timespec)MS(2 * STALL_MS), NULL);	/* no timer of before is left */
	stall_turn();
	stall_watch(&other);
	assert_int_equal(nanosleep(&wait, NULL), 0);
	stall_waited(&other);
	stall_watch(&suspect);
	assert_int_equal(nanosleep(&briefly, NULL), -1);
	assert_int_equal(stall_waited(&suspect), STALL_PROVEN);
	stall_rest();
}

/* A busy machine: the turn is long, and its thread has waited for a lock of the kernel. */
static void
chance_is_no_proof(void **state)
{
	struct stall_debt debt = { 0 };

	(void)state;
	stall_turn();
	compute(STALL_MS + 10);
	stall_watch(&debt);
	for (int i = 0; i < 20; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000 }, NULL);
		compute(1);
	}
	assert_true(stall_waited(&debt) != STALL_PROVEN);
	stall_rest();
	/* The longest wait is still one. */
	debt.us = 0;
	stall_pause();
	stall_watch(&debt);
	nanosleep(&(struct timespec)MS(6 * STALL_MS), NULL);
	assert_int_equal(stall_waited(&debt), STALL_EXCUSED);
}

static void
work_is_no_wait(void **state)
{
	struct stall_debt debt = { 0 };

	(void)state;
	stall_owe(&debt);
	stall_turn();
	stall_watch(&debt);
	compute(4 * STALL_MS);
	assert_int_equal(stall_waited(&debt), STALL_NONE);
	stall_rest();
}

static void
a_wait_of_before_is_nobodys(void **state)
{
	struct stall_debt debt = { 0 };
	int fd = linger_open(NULL);

	(void)state;
	stall_owe(&debt);
	stall_turn();
	close(fd);
	stall_watch(&debt);
	compute(10);
	assert_int_equal(stall_waited(&debt), STALL_NONE);
	stall_rest();
}

static void
a_signal_of_somebody_else_counts_nothing(void **state)
{
	unsigned int before = slow_calls;

	(void)state;
	stall_rest();
	nanosleep(&(struct timespec)MS(2 * STALL_MS), NULL);
	stall_turn();
	raise(STALL_SIGNAL);
	stall_rest();
	assert_int_equal(slow_calls, before);
}

static long
close_takes_ms(void)
{
	int fd = linger_open(NULL);
	long start = now_ms();

	stall_turn();
	stall_close(true);
	close(fd);
	stall_close(false);
	stall_rest();
	return now_ms() - start;
}

/* Where any socket may bring descriptors, a close may wait for those that lie unread in it. */
static void
a_close_is_hurried(void **state)
{
	long least_ms = HANG_MS;

	(void)state;
	stall_hurry();
	for (int i = 0; i < 5; i++) {
		long ms = close_takes_ms();

		least_ms = ms < least_ms ? ms : least_ms;
	}
	assert_true(least_ms < STALL_MS - 10);
}

/* A stopped process waits, but no peer has caused that. */
static void
a_stop_is_nobodys(void **state)
{
	int fd = linger_open(NULL), status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_return_code(pid, errno);
	if (pid == 0) {
		struct stall_debt debt = { 0 };
		enum stall blamed, found;

		stall_forget();
		if (stall_guard(NULL) < 0)
			_exit(2);
		stall_excuse_stops();
		stall_turn();
		stall_watch(&debt);
		raise(SIGSTOP);
		blamed = stall_waited(&debt);
		/* In the turn of the stop a wait would be interrupted too soon to count. */
		stall_rest();
		stall_turn();
		stall_watch(&debt);
		close(fd);
		found = stall_waited(&debt);
		_exit(blamed != STALL_NONE ? 3 : found == STALL_EXCUSED ? 0 : 4);
	}
	close(fd);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	/* The time of the turn has to pass while it is stopped. */
	nanosleep(&(struct timespec)MS(2 * STALL_MS), NULL);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- processes that are made ---- */

static void
a_fork_has_no_guard(void **state)
{
	struct timespec wait = MS(4 * STALL_MS);
	struct sigaction action;
	sigset_t mask;
	int status;
	pid_t pid;

	(void)state;
	stall_turn();
	pid = fork();
	assert_return_code(pid, errno);
	if (pid == 0) {
		stall_forget();
		sigaction(STALL_SIGNAL, NULL, &action);
		sigprocmask(SIG_BLOCK, NULL, &mask);
		stall_turn();
		_exit(action.sa_handler == SIG_DFL && !sigismember(&mask, STALL_SIGNAL) &&
		      nanosleep(&wait, NULL) == 0 ? 0 : 1);
	}
	stall_pause();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
a_fork_may_have_its_own(void **state)
{
	int fd = linger_open(NULL), status;
	pid_t pid;

	(void)state;
	stall_turn();
	pid = fork();
	assert_return_code(pid, errno);
	if (pid == 0) {
		long start = now_ms();

		stall_forget();
		if (stall_guard(NULL) < 0)
			_exit(1);
		stall_turn();
		close(fd);
		_exit(nanosleep(&(struct timespec){ .tv_sec = HANG_MS / 1000 }, NULL) < 0 &&
		      now_ms() - start < HANG_MS ? 0 : 1);
	}
	stall_pause();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	stall_turn();
	close(fd);
	stall_rest();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lingering_close_is_ended),
		cmocka_unit_test(so_are_descriptors_that_nobody_asked_for),
		cmocka_unit_test(each_turn_is_guarded),
		cmocka_unit_test(a_slow_turn_is_told),
		cmocka_unit_test(another_thread_ends_no_turn),
		cmocka_unit_test(a_rest_lasts),
		cmocka_unit_test(a_pause_is_not_interrupted),
		cmocka_unit_test(a_wait_is_found),
		cmocka_unit_test(another_is_not_interrupted),
		cmocka_unit_test(chance_is_no_proof),
		cmocka_unit_test(work_is_no_wait),
		cmocka_unit_test(a_wait_of_before_is_nobodys),
		cmocka_unit_test(a_signal_of_somebody_else_counts_nothing),
		cmocka_unit_test(a_close_is_hurried),
		cmocka_unit_test(a_stop_is_nobodys),
		cmocka_unit_test(a_fork_has_no_guard),
		cmocka_unit_test(a_fork_may_have_its_own),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
