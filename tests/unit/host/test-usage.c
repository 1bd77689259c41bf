/* SPDX-License-Identifier: Apache-2.0 */
/* The usage helper answers what this process would find by itself, and is made again when it is
 * lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "host/helper.h"
#include "host/usage.h"
#include "tests/unit/base/refuse_syscall.h"

#define HELD (8 << 20)
#define SLACK (1 << 20)

static pid_t worker;
static bool refuses_kills;	/* the kernel */

int
refuses_syscall(long number)
{
	return number == SYS_pidfd_send_signal && refuses_kills ? EPERM : 0;
}

/* Stands for a worker: an init that holds memory, and a child. Ready when the child runs. */
static void
begin_with(void (*make_child)(int ready))
{
	int ready[2];
	char c;

	assert_int_equal(pipe(ready), 0);
	worker = fork();
	if (worker == 0) {
		char *held = mmap(NULL, HELD, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(held, 1, HELD);
		make_child(ready[1]);
		for (;;)
			pause();
	}
	assert_true(worker > 0);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static void
live(int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!write(ready, "x", 1);
	for (;;)
		pause();
}

static void
make_copy(int ready)
{
	if (fork() == 0)
		live(ready);
}

/* As one that is just starting a program: init stands still until the child has ended. */
static void
make_sharer(int ready)
{
	if (syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL, 0, 0, 0) == 0)
		live(ready);
}

static int
begin(void **state)
{
	(void)state;
	begin_with(make_copy);
	return 0;
}

static int
begin_with_sharer(void **state)
{
	(void)state;
	begin_with(make_sharer);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
	usage_stop();
	return 0;
}

static void
helper_sees_the_same(void **state)
{
	struct usage_asked asked = { .question = USAGE_ALL, .pid = worker };
	struct usage_answer by_self, by_helper;

	(void)state;
	usage_ask(&asked, &by_self);
	assert_int_equal(usage_start(), 0);
	usage_ask(&asked, &by_helper);
	assert_int_equal(by_self.n, 2);
	assert_int_equal(by_self.tasks, 2);
	assert_true(by_self.memory_bytes >= HELD);
	assert_int_equal(by_helper.n, 2);
	assert_memory_equal(by_helper.process, by_self.process, sizeof(by_self.process[0]) * 2);
	assert_int_equal(by_helper.tasks, by_self.tasks);
	/* A process that has just begun to wait may still have got a page. */
	assert_in_range(by_helper.memory_bytes, by_self.memory_bytes - SLACK,
			by_self.memory_bytes + SLACK);
	assert_int_equal(by_helper.files, by_self.files);

	/* The members of a leaf are given. */
	asked = (struct usage_asked){ .question = USAGE_ALL, .pid = worker, .n = 1,
				      .member = { worker } };
	usage_ask(&asked, &by_helper);
	assert_int_equal(by_helper.n, 1);
	assert_int_equal(by_helper.tasks, 1);

	asked = (struct usage_asked){ .question = USAGE_ONE, .pid = worker };
	usage_ask(&asked, &by_helper);
	assert_true(by_helper.private_bytes >= HELD / 2);
	assert_int_equal(usage_uid(worker), getuid());
	assert_int_equal(usage_uid(0), 0);
}

static void
memory_of_a_child_that_shares_it_counts_once(void **state)
{
	struct usage_asked asked = { .question = USAGE_ALL, .pid = worker };
	struct usage_answer all, one;
	uint64_t memory = 0;

	(void)state;
	assert_int_equal(usage_start(), 0);
	usage_ask(&asked, &all);
	assert_int_equal(all.n, 2);
	assert_int_equal(all.tasks, 2);
	assert_in_range(all.memory_bytes, HELD, 2 * HELD - SLACK);
	for (unsigned int i = 0; i < all.n; i++) {
		asked = (struct usage_asked){ .question = USAGE_ONE,
					      .pid = all.process[i].pid };
		usage_ask(&asked, &one);
		memory += one.private_bytes;
	}
	assert_in_range(memory, HELD, 2 * HELD - SLACK);
}

/* The loop ends when the helper is made again, or with the last of these turns. */
static void
turn_until_replaced(struct event_base *base, pid_t old)
{
	const uint64_t end_ms = clock_ms() + 30000;

	while ((usage_pid() == old || usage_pid() == 0) && clock_ms() < end_ms)
		event_base_loop(base, EVLOOP_ONCE);
	assert_true(usage_pid() != old && usage_pid() != 0);
}

/* It is made again. Until then nothing is measured, and nobody waits. */
static void
lost_helper_is_made_again(void **state)
{
	struct event_base *base = event_base_new();
	struct usage_asked asked = { .question = USAGE_ALL, .pid = worker };
	static struct usage_answer answer;
	siginfo_t info;
	pid_t old;

	(void)state;
	assert_int_equal(usage_start(), 0);
	usage_watch(base);
	old = usage_pid();
	assert_int_equal(kill(old, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)old, &info, WEXITED | WNOWAIT), 0);
	assert_false(usage_ask(&asked, &answer));
	assert_int_equal(answer.n, 0);
	assert_int_equal(answer.tasks, 0);
	assert_int_equal(helper_state(HELPER_USAGE).away, 1);
	turn_until_replaced(base, old);
	assert_int_equal(helper_state(HELPER_USAGE).away, 0);
	assert_true(usage_ask(&asked, &answer));
	assert_true(answer.tasks > 0);
	usage_stop();
	helper_reap_all();
	event_base_free(base);
}

/* A helper that stands still costs one short wait. Its late answer is for whoever asks the same. */
static void
late_answer_is_kept(void **state)
{
	struct event_base *base = event_base_new();
	struct usage_asked asked = { .question = USAGE_ALL, .pid = worker };
	struct usage_asked other = { .question = USAGE_ONE, .pid = worker };
	static struct usage_answer answer;
	uint64_t before_ms;

	(void)state;
	assert_int_equal(usage_start(), 0);
	usage_watch(base);
	assert_int_equal(kill(usage_pid(), SIGSTOP), 0);
	assert_false(usage_ask(&asked, &answer));
	before_ms = clock_ms();
	for (int i = 0; i < 100; i++)
		assert_false(usage_ask(&other, &answer));
	assert_true(clock_ms() - before_ms < 2000);	/* 100 waits would take 5 s */
	assert_int_equal(kill(usage_pid(), SIGCONT), 0);
	event_base_loop(base, EVLOOP_ONCE);
	assert_true(usage_ask(&other, &answer));
	assert_int_equal(answer.tasks, 0);
	assert_true(usage_ask(&asked, &answer));
	assert_true(answer.tasks > 0);
	usage_stop();
	event_base_free(base);
}

/* A worker has ended, and another process has got its number: an answer about the first one that
 * comes later is nobody's. */
static void
late_answer_is_not_about_another_process(void **state)
{
	struct event_base *base = event_base_new();
	struct usage_asked asked = { .question = USAGE_ONE, .pid = worker };
	static struct usage_answer answer;

	(void)state;
	for (int early = 0; early < 2; early++) {
		assert_int_equal(usage_start(), 0);
		usage_watch(base);
		asked.question = USAGE_ALL;
		assert_int_equal(kill(usage_pid(), SIGSTOP), 0);
		assert_false(usage_ask(&asked, &answer));
		if (early)
			usage_forget(worker);
		assert_int_equal(kill(usage_pid(), SIGCONT), 0);
		event_base_loop(base, EVLOOP_ONCE);
		usage_forget(worker);
		/* It is asked again, and does not answer now. */
		assert_int_equal(kill(usage_pid(), SIGSTOP), 0);
		assert_false(usage_ask(&asked, &answer));
		assert_int_equal(kill(usage_pid(), SIGCONT), 0);
		usage_stop();
	}
	event_base_free(base);
}

/* Whoever has taken over the supervisor can have helpers made again and again, but not many that
 * live. */
static void
few_of_a_kind_live(void **state)
{
	struct helper helper[12];
	struct pollfd end[13];
	const size_t n = sizeof(helper) / sizeof(*helper);
	size_t living = 0;

	(void)state;
	assert_int_equal(usage_start(), 0);	/* one more, which may be slower than those below */
	end[n] = (struct pollfd){ .fd = (int)syscall(SYS_pidfd_open, usage_pid(), 0),
				  .events = POLLIN };
	assert_return_code(end[n].fd, errno);
	memset(helper, 0, sizeof(helper));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(helper_fork(&helper[i], HELPER_USAGE), 0);
		end[i] = (struct pollfd){ .fd = helper[i].pidfd, .events = POLLIN };
	}
	while (poll(end, n + 1, 0) < (int)n + 1 - 4)	/* all but four end at once */
		usleep(1000);
	usleep(50000);
	for (size_t i = 0; i <= n; i++)
		living += poll(&end[i], 1, 0) == 0;
	assert_int_equal(living, 4);
	close(end[n].fd);
	for (size_t i = 0; i < n; i++)
		helper_end(&helper[i]);
	assert_int_equal(helper_fork(&helper[0], HELPER_USAGE), 0);
	end[0].fd = helper[0].pidfd;
	assert_int_equal(poll(end, 1, 200), 0);
	helper_end(&helper[0]);
	usage_stop();
}

static void
stopped_helper_is_replaced(void **state)
{
	struct event_base *base = event_base_new();
	struct usage_asked asked = { .question = USAGE_ALL, .pid = worker };
	static struct usage_answer answer;
	pid_t old;

	(void)state;
	assert_int_equal(usage_start(), 0);
	usage_watch(base);
	old = usage_pid();
	assert_int_equal(kill(old, SIGSTOP), 0);
	assert_false(usage_ask(&asked, &answer));
	turn_until_replaced(base, old);
	assert_true(usage_ask(&asked, &answer));
	usage_stop();
	helper_reap_all();
	event_base_free(base);
}

static _Noreturn void
live_on(const void *arg, int socket, pid_t supervisor)
{
	(void)arg;
	(void)socket;
	(void)supervisor;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* Several hold their end up no longer than one. */
static void
those_that_cannot_be_killed_are_left(void **state)
{
	struct helper helper[4];
	pid_t pid[4];
	uint64_t first_ms, rest_ms;

	(void)state;
	helper_plan(HELPER_FILES, live_on, NULL);
	for (int i = 0; i < 4; i++) {
		helper[i] = (struct helper){ .pidfd = -1, .socket = -1 };
		assert_int_equal(helper_fork(&helper[i], HELPER_FILES), 0);
		pid[i] = helper[i].pid;
	}
	refuses_kills = true;
	first_ms = clock_ms();
	helper_end(&helper[0]);
	rest_ms = clock_ms();
	for (int i = 1; i < 4; i++)
		helper_end(&helper[i]);
	refuses_kills = false;
	assert_true(clock_ms() - rest_ms < rest_ms - first_ms);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(helper[i].pid, 0);
		assert_int_equal(kill(pid[i], SIGKILL), 0);
		assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(helper_sees_the_same, begin, end),
		cmocka_unit_test_setup_teardown(memory_of_a_child_that_shares_it_counts_once,
						begin_with_sharer, end),
		cmocka_unit_test_setup_teardown(lost_helper_is_made_again, begin, end),
		cmocka_unit_test_setup_teardown(late_answer_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(late_answer_is_not_about_another_process, begin,
						end),
		cmocka_unit_test(few_of_a_kind_live),
		cmocka_unit_test_setup_teardown(stopped_helper_is_replaced, begin, end),
		cmocka_unit_test(those_that_cannot_be_killed_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
