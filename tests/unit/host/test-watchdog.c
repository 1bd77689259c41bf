/* SPDX-License-Identifier: Apache-2.0 */
/* What the watchdog sees of a tree of processes without a cgroup: the tree is made here. */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <cmocka.h>

#include "host/watchdog.h"

#define BURN_US 150000u
#define CHILDREN 4

/* Between a tree of processes and who watches it; both ends of each pipe. */
static int said[2], looked[2];

/* A look that no caller waits for ends when it is complete. */
static void
burn(bool await_look)
{
	struct timespec used;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while ((uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000 < BURN_US);
	if (await_look && (write(said[1], "b", 1) != 1 || read(looked[0], &(char){ 0 }, 1) != 1))
		_exit(1);
}

/* Stands for a worker's init: children one after the other, each burning its time. Then it
 * says so and waits. */
static _Noreturn void
live(bool ignore, bool grandchildren)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, ignore ? SIG_IGN : SIG_DFL);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		if (pid == 0 && grandchildren && fork() == 0) {
			burn(ignore);
			_exit(0);
		}
		if (pid == 0) {
			if (!grandchildren)
				burn(ignore);
			while (wait(NULL) > 0)
				;
			_exit(0);
		}
		while (wait(NULL) > 0)
			;
	}
	if (write(said[1], "e", 1) == 1)
		pause();
	_exit(0);
}

/* Looks every few milliseconds until nothing more will be used; returns what was seen. */
static uint64_t
watch(bool ignore, bool grandchildren)
{
	struct watchdog_usage usage = { 0 };
	struct watchdog_seen seen = { 0 };
	time_t most = time(NULL) + 60;
	struct pollfd ear = { .events = POLLIN };
	pid_t parent = getpid(), pid;
	char word = 0;

	assert_int_equal(pipe(said), 0);
	assert_int_equal(pipe(looked), 0);
	pid = fork();
	if (pid == 0)
		live(ignore, grandchildren);
	assert_true(pid > 0 && parent == getpid());
	ear.fd = said[0];
	while (word != 'e') {
		int ready = poll(&ear, 1, 5);

		assert_true(time(NULL) < most);
		if (ready > 0)
			assert_int_equal(read(said[0], &word, 1), 1);
		watchdog_measure(pid, NULL, &seen, &usage);
		if (ready > 0 && word == 'b')
			assert_int_equal(write(looked[1], "", 1), 1);
	}
	/* What is gone stays counted. */
	for (int i = 0; i < 5; i++) {
		uint64_t before = usage.cpu_us;

		watchdog_measure(pid, NULL, &seen, &usage);
		assert_true(usage.cpu_us >= before);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 2; i++) {
		close(said[i]);
		close(looked[i]);
	}
	watchdog_seen_done(&seen);
	return usage.cpu_us;
}

/* What they use beside it is the machine's matter, but is not as much again. */
static void
children_are_counted_once(void **state)
{
	(void)state;
	for (int grandchildren = 0; grandchildren < 2; grandchildren++)
		assert_in_range(watch(false, grandchildren), CHILDREN * BURN_US * 9 / 10,
				CHILDREN * BURN_US * 7 / 4);
}

static void
children_that_nobody_waits_for_are_counted(void **state)
{
	(void)state;
	for (int grandchildren = 0; grandchildren < 2; grandchildren++)
		assert_in_range(watch(true, grandchildren), CHILDREN * BURN_US * 9 / 10,
				CHILDREN * BURN_US * 7 / 4);
}

static int
hold(void *arg)
{
	/* Every thread has this of its own. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(arg, 1, 32 << 20);
	while (pause() < 0)
		;
	return 0;
}

/* When told to go on: a process whose first thread has ended, below one that stands for
 * init. */
static _Noreturn void
live_headless(int go_on)
{
	static const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				 CLONE_THREAD | CLONE_SYSVSEM;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go_on, &(char){ 0 }, 1) == 1 && fork() == 0) {
		char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *held = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		clone(hold, stack + 65536, flags, held);
		syscall(SYS_exit, 0);
	}
	pause();
	_exit(0);
}

/* Without a jail the machine's own /run and sockets are in what is measured, and these are also
 * other tests'. */
static uint64_t
measured(pid_t pid, struct watchdog_seen *seen)
{
	struct watchdog_usage usage;

	watchdog_measure(pid, NULL, seen, &usage);
	return usage.memory_bytes - usage.kept_bytes;
}

static void
count(void *arg)
{
	++*(unsigned int *)arg;
}

static void
in_a_turn(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* Returns what a look finds, and in how many pieces: how often another event has met it further on
 * than before. */
static uint64_t
look_at(pid_t pid, unsigned int *pieces_r)
{
	static const struct timeval at_once;
	size_t at = 0;
	struct event_base *base = event_base_new();
	struct watchdog *watchdog = watchdog_new(base, 20);
	struct watchdog_look look = { 0 };
	unsigned int done = 0;
	struct event *turn = event_new(base, -1, EV_PERSIST, in_a_turn, NULL);

	event_add(turn, &at_once);
	if (!watchdog_look(watchdog, &look, pid, NULL, true, count, &done))
		while (*(volatile unsigned int *)&done == 0) {	/* counted by the loop */
			event_base_loop(base, EVLOOP_ONCE);
			*pieces_r += look.at > at;
			at = look.at;
		}
	assert_true(watchdog_look_rests(&look));
	/* One that is ended is not told of. */
	if (!watchdog_look(watchdog, &look, pid, NULL, true, count, &done)) {
		watchdog_look_end(&look);
		for (int i = 0; i < 10; i++)
			event_base_loop(base, EVLOOP_ONCE);
	}
	assert_in_range(done, 0, 1);
	event_free(turn);
	watchdog_free(watchdog);
	event_base_free(base);
	return look.bytes;
}

/* Memory of a process whose first thread has ended is that of its others. */
static void
first_threads_may_end(void **state)
{
	struct watchdog_seen seen = { 0 };
	time_t most = time(NULL) + 60;
	uint64_t least, true_least;
	unsigned int pieces = 0;
	int go_on[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go_on), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		live_headless(go_on[0]);
	least = measured(pid, &seen) + (30 << 20);
	true_least = look_at(pid, &pieces) + (30 << 20);
	assert_int_equal(write(go_on[1], "", 1), 1);
	while (measured(pid, &seen) < least || look_at(pid, &pieces) < true_least)
		assert_true(time(NULL) < most);
	close(go_on[0]);
	close(go_on[1]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	watchdog_seen_done(&seen);
}

/* A sum that was small enough stays the result when the next one counts shared pages twice. */
static void
a_sum_is_a_result(void **state)
{
	const struct watchdog_usage before = { .memory_bytes = 10 };
	const struct watchdog_usage small = { .memory_bytes = 100, .kept_bytes = 30 };
	const struct watchdog_usage twice = { .memory_bytes = 170, .kept_bytes = 30 };
	const struct watchdog_usage more_files = { .memory_bytes = 200, .kept_bytes = 60 };
	const struct watchdog_usage files_alone = { .memory_bytes = 40, .kept_bytes = 40 };
	struct watchdog_look look = { 0 };

	(void)state;
	assert_int_equal(watchdog_looked_memory(&look, &before, &twice), 160);
	watchdog_look_take(&look, &before, &small);
	assert_int_equal(watchdog_looked_memory(&look, &before, &small), 90);
	assert_int_equal(watchdog_looked_memory(&look, &before, &twice), 90);
	assert_int_equal(watchdog_looked_memory(&look, &before, &more_files), 120);
	watchdog_look_take(&look, &before, &files_alone);
	assert_in_range(watchdog_looked_memory(&look, &before, &twice), 30, 31);
}

#define SHARED (64U << 20)
#define SHARERS 60

/* Touches memory, and has children that share it. */
static _Noreturn void
live_shared(void)
{
	char *shared = mmap(NULL, SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	madvise(shared, SHARED, MADV_NOHUGEPAGE);
	memset(shared, 1, SHARED);
	for (int i = 0; i < SHARERS; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (pause() < 0)
				;
		}
	if (write(said[1], "e", 1) == 1)
		pause();
	_exit(0);
}

/* A look counts a page once, and lets the loop go on between processes. */
static void
looks_go_on_from_turn_to_turn(void **state)
{
	struct watchdog_seen seen = { 0 };
	unsigned int pieces = 0;
	uint64_t bytes;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(said), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		live_shared();
	assert_int_equal(read(said[0], &(char){ 0 }, 1), 1);
	assert_true(measured(pid, &seen) > (uint64_t)SHARERS * SHARED);
	bytes = look_at(pid, &pieces);
	/* With sanitizers each has half a MiB and more of its own. */
	assert_in_range(bytes, SHARED, 4 * SHARED);
	/* Each process takes the kernel half a millisecond, and a piece is five. */
	assert_true(pieces >= 3);
	close(said[0]);
	close(said[1]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	watchdog_seen_done(&seen);
}

/* ---- a busy machine ---- */

#define SLOW_MS 300

static unsigned int checks;

/* Takes long and costs nothing, as on a machine where others have the processors. */
static void
check_slowly(void *arg)
{
	static const struct timespec while_others_run = { .tv_nsec = SLOW_MS * 1000000 };

	(void)arg;
	checks++;
	nanosleep(&while_others_run, NULL);
}

static void
stop(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(arg);
}

/* Otherwise one check that was held up would hold up the checks of all for ten times as long. */
static void
checks_that_wait_are_soon_repeated(void **state)
{
	static const struct timeval less_than_ten_times = { .tv_sec = 2 };
	struct event_base *base = event_base_new();
	struct watchdog *watchdog = watchdog_new(base, 20);
	struct watchdog_link link = { 0 };

	(void)state;
	watchdog_watch(watchdog, &link, check_slowly, NULL);
	event_base_once(base, -1, EV_TIMEOUT, stop, base, &less_than_ten_times);
	event_base_dispatch(base);
	assert_in_range(checks, 2, 4);
	watchdog_forget(&link);
	watchdog_free(watchdog);
	event_base_free(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks_that_wait_are_soon_repeated),
		cmocka_unit_test(children_are_counted_once),
		cmocka_unit_test(children_that_nobody_waits_for_are_counted),
		cmocka_unit_test(first_threads_may_end),
		cmocka_unit_test(a_sum_is_a_result),
		cmocka_unit_test(looks_go_on_from_turn_to_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
