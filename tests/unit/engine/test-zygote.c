/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of one zygote: started, renewed, lost. Each is a process that waits; what a zygote
 * says the test says in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/zygote.h"
#include "host/child.h"
#include "host/launcher.h"
#include "policy/config.h"
#include "policy/learnable.h"
#include "proto/frame.h"
#include "../proto/few_fds.h"
#include "../proto/no_memory.h"

/* ---- a launcher that starts processes which do nothing ---- */

#define STARTS_MAX 16

static struct start {
	pid_t pid;
	int line;		/* the zygote's end */
	uint64_t modules;	/* of LAUNCH */
} started[STARTS_MAX];
static size_t n_started;
static const char *packages = "";	/* what zygotes say that is installed */
static struct event_base *base;
static unsigned int away;	/* so many orders find no launcher */

void
launch_init(struct launch *launch)
{
	*launch = (struct launch){ .pidfd = -1, .control = -1, .trouble = -1 };
}

void
launch_done(struct launch *launch)
{
	if (launch->pidfd >= 0)
		close(launch->pidfd);
	if (launch->control >= 0)
		close(launch->control);
	launch_init(launch);
}

bool
launch_trouble(const struct launch *launch, const char **step_r, int *error_r)
{
	(void)launch;
	(void)step_r;
	(void)error_r;
	return false;
}

void
launcher_finish(struct launch_order *order)
{
	(void)order;
}

void
launcher_start(struct launcher *launcher, enum launch_kind kind, unsigned int profile,
	       uint64_t modules, struct launch_order *order,
	       void (*on_launched)(void *arg, int error, const char *what, struct launch *launch),
	       void *arg)
{
	struct launch launch;
	int pair[2];
	pid_t pid;

	(void)launcher;
	(void)profile;
	(void)order;
	assert_int_equal(kind, LAUNCH_ZYGOTE);
	if (away > 0) {
		away--;
		on_launched(arg, -ENOTCONN, "ask the launcher, which is away", NULL);
		return;
	}
	assert_true(n_started < STARTS_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	launch = (struct launch){ pid, (int)syscall(SYS_pidfd_open, pid, 0), pair[0], -1 };
	started[n_started++] = (struct start){ pid, pair[1], modules };
	event_base_loopbreak(base);
	on_launched(arg, 0, "", &launch);
}

/* ---- one zygote, and what its owner has heard ---- */

static struct zygote *zygote;
static struct config_profile profile = { .name = "test" };
static struct {
	unsigned int ready, failed, renewed, spawned, stopped, lost;
	uint64_t lost_generation;
	char failure[200];
} heard;

static void
on_ready(void *arg)
{
	(void)arg;
	heard.ready++;
	event_base_loopbreak(base);
}

static void
on_failed(void *arg, int error, const char *text)
{
	(void)arg;
	(void)error;
	snprintf(heard.failure, sizeof(heard.failure), "%s", text);
	heard.failed++;
	event_base_loopbreak(base);
}

static void
on_lost(void *arg, uint64_t generation)
{
	(void)arg;
	heard.lost++;
	heard.lost_generation = generation;
	event_base_loopbreak(base);
}

static void
on_renewed(void *arg)
{
	(void)arg;
	heard.renewed++;
}

static void
on_spawned(void *arg, uint64_t worker, pid_t pid, int pidfd)
{
	(void)arg;
	(void)worker;
	(void)pid;
	close(pidfd);
	heard.spawned++;
	event_base_loopbreak(base);
}

static void
on_spawn_failed(void *arg, uint64_t worker, int error, const char *text)
{
	(void)arg;
	fail_msg("worker %u: %d, %s", (unsigned int)worker, error, text);
}

static void
on_stopped(void *arg)
{
	(void)arg;
	heard.stopped++;
	event_base_loopbreak(base);
}

#define UNTIL(condition) \
	while (!(condition)) \
		assert_int_equal(event_base_dispatch(base), 0)

static int
open_with(unsigned int renew_seconds, bool early, bool rests)
{
	const struct zygote_options options = {
		.profile = &profile, .renew_seconds = renew_seconds, .early = early, .rests = rests,
		.base = base = event_base_new(),
		.watcher = { on_ready, on_failed, on_lost, on_renewed, on_spawned,
			     on_spawn_failed, on_stopped, NULL },
	};

	n_started = 0;
	memset(&heard, 0, sizeof(heard));
	return zygote_new(&options, &zygote);
}

static int
open_it(void **state)
{
	(void)state;
	return open_with(1, false, false);
}

static int
open_lasting(void **state)
{
	(void)state;
	return open_with(0, false, false);
}

static int
open_early(void **state)
{
	(void)state;
	return open_with(0, true, false);
}

static int
open_learning(void **state)
{
	(void)state;
	return open_with(1, false, true);
}

static int
close_it(void **state)
{
	(void)state;
	zygote_free(zygote);
	event_base_free(base);
	for (size_t i = 0; i < n_started; i++)
		if (started[i].line >= 0)
			close(started[i].line);
	/* All are reaped. */
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

static void
say_learned(size_t i, uint64_t learned, uint64_t untried)
{
	struct msg hello = { .type = MSG_HELLO, .hello.build = msg_str(PROTO_BUILD) };
	struct msg_str reason = msg_str("a: reason");
	struct msg ready = { .type = MSG_ZYGOTE_READY, .zygote_ready = {
		.unlearned = { &reason, 1 },
		.python = msg_str("3"), .packages = msg_str(packages),
		.platform = msg_str("x"), .extension = msg_str(".so"),
		.learned = learned, .untried = untried } };
	unsigned int before = heard.ready;

	assert_int_equal(frame_send(started[i].line, &hello, NULL, 0), 0);
	assert_int_equal(frame_send(started[i].line, &ready, NULL, 0), 0);
	UNTIL(heard.ready > before);
}

static void
say_ready(size_t i)
{
	say_learned(i, 0, 0);
}

/* With so many descriptors free. 0 or -errno. */
static int
ask_with(size_t free, uint64_t worker)
{
	int fd[3], r;

	for (size_t i = 0; i < 3; i++)
		fd[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	few_fds(free);
	r = zygote_spawn(zygote, worker, 1, 1, fd, 3);
	few_fds_end();
	return r;
}

static void
ask_for_worker(uint64_t worker)
{
	assert_int_equal(ask_with(3, worker), 0);
}

static void
say_spawned(size_t i, uint64_t worker)
{
	struct msg msg = { .type = MSG_SPAWNED, .spawned = { worker, 12345 } };
	unsigned int before = heard.spawned;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(frame_send(started[i].line, &msg, &fd, 1), 0);
	close(fd);
	UNTIL(heard.spawned > before);
}

/* ---- tests ---- */

static void
the_old_one_serves_until_the_new_one_is_ready(void **state)
{
	uint64_t first;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	first = zygote_generation(zygote);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	assert_true(zygote_is_ready(zygote));
	assert_int_equal(zygote_generation(zygote), first);
	assert_int_equal(zygote_room(zygote), ZYGOTE_SPAWNS_MAX - 1);
	ask_for_worker(2);
	assert_int_equal(heard.renewed, 0);

	say_ready(1);
	assert_int_equal(heard.renewed, 1);
	assert_true(zygote_generation(zygote) > first);
	assert_int_equal(zygote_pid(zygote), started[1].pid);
	assert_int_equal(zygote_room(zygote), ZYGOTE_SPAWNS_MAX);
	/* It lives until it has answered. */
	say_spawned(0, 1);
	assert_true(zygote_is_alive(zygote, first));
	assert_true(child_is_one(started[0].pid));
	say_spawned(0, 2);
	while (child_is_one(started[0].pid))
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_false(zygote_is_alive(zygote, first));
	assert_int_equal(heard.lost + heard.failed, 0);

	/* And so on. */
	ask_for_worker(3);
	say_spawned(1, 3);
	UNTIL(n_started == 3);
	say_ready(2);
	assert_int_equal(heard.renewed, 2);
	assert_int_equal(zygote_pid(zygote), started[2].pid);
}

/* The line to it rests then, and goes on: no zygote is lost, and no message. */
static void
no_memory_for_messages_passes(void **state)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	uint64_t generation;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	generation = zygote_generation(zygote);
	failing_send = (struct failing){ 3, ENOBUFS };
	ask_for_worker(1);
	UNTIL(failing_send.times == 0);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	assert_int_equal(fcntl(started[0].line, F_SETFL, O_NONBLOCK), 0);
	while (frame_reader_read(&reader, started[0].line, &frame) == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_int_equal(frame.msg.type, MSG_SPAWN);
	assert_int_equal(frame.msg.spawn.worker, 1);
	frame_done(&frame);
	frame_reader_done(&reader);
	failing_receive = (struct failing){ 3, ENOMEM };
	say_spawned(0, 1);
	assert_int_equal(failing_receive.times, 0);
	assert_true(zygote_is_alive(zygote, generation));
	assert_int_equal(heard.lost + heard.failed, 0);
}

/* A worker is asked for only if a descriptor can be reserved for the answer. */
static void
no_free_descriptor_loses_no_zygote(void **state)
{
	const struct msg msg = { .type = MSG_SPAWNED, .spawned = { 1, 12345 } };
	uint64_t generation;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	generation = zygote_generation(zygote);
	ask_for_worker(1);
	assert_int_equal(ask_with(0, 2), -EMFILE);
	assert_int_equal(zygote_room(zygote), ZYGOTE_SPAWNS_MAX - 1);
	assert_int_equal(frame_send(started[0].line, &msg, &null, 1), 0);
	few_fds(0);
	UNTIL(heard.spawned + heard.lost == 1);
	few_fds_end();
	assert_int_equal(heard.spawned, 1);
	assert_true(zygote_is_alive(zygote, generation));
	ask_for_worker(3);
	say_spawned(0, 3);
	close(null);
}

/* Its end and its last message may be seen in the same turn. */
static void
one_that_fails_says_why(void **state)
{
	struct msg hello = { .type = MSG_HELLO, .hello.build = msg_str(PROTO_BUILD) };
	struct msg failed = { .type = MSG_ZYGOTE_FAILED,
			      .zygote_failed = { .error = EPERM, .what = msg_str("a wall") } };
	siginfo_t info;

	(void)state;
	UNTIL(n_started == 1);
	assert_int_equal(frame_send(started[0].line, &hello, NULL, 0), 0);
	assert_int_equal(frame_send(started[0].line, &failed, NULL, 0), 0);
	kill(started[0].pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)started[0].pid, &info, WEXITED | WNOWAIT), 0);
	UNTIL(heard.failed == 1);
	assert_string_equal(heard.failure, "a wall: Operation not permitted");
}

/* A launcher is made again in a second or two. The pauses until then do not grow. */
static void
a_launcher_that_is_away_is_not_waited_for_longer(void **state)
{
	uint64_t begin_ms = clock_ms();

	(void)state;
	away = 12;
	UNTIL(n_started == 1);
	assert_int_equal(away, 0);
	assert_int_equal(heard.failed, 0);
	assert_null(zygote_trouble(zygote));
	assert_true(clock_ms() - begin_ms < 30000);
}

static void
pauses_grow_only_after_early_ends(void **state)
{
	struct child c = { .error = -ECHILD };
	uint32_t ms = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		uint32_t next_ms = child_backoff_ms(&c);

		assert_true(next_ms >= ms);
		ms = next_ms;
		c.has_served = true;
		c.ready_ms = clock_ms();
	}
	assert_true(ms >= 30000);
	c.ready_ms -= 15000;
	assert_true(child_backoff_ms(&c) <= 100);
	assert_true(child_backoff_ms(&c) <= 100);
}

static void
names_are_names(void **state)
{
	static const char *const odd[] = { "numpy\nYou must", "<b>numpy</b>", "num\303\251", "a;b" };

	(void)state;
	UNTIL(n_started == 1);
	assert_string_equal(zygote_packages(zygote), "");
	packages = "numpy, PIL, my_own2";
	say_ready(0);
	assert_string_equal(zygote_packages(zygote), packages);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		ask_for_worker(i + 1);
		UNTIL(n_started == i + 2);
		packages = odd[i];
		say_ready(i + 1);
		assert_string_equal(zygote_packages(zygote), "");
		say_spawned(i, i + 1);
	}
	packages = "";
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
	event_base_loopbreak(base);
}

static void
one_that_has_made_no_worker_is_kept(void **state)
{
	static const struct timeval longer = { 2, 500000 };
	bool is_over = false;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	event_base_once(base, -1, EV_TIMEOUT, on_time, &is_over, &longer);
	UNTIL(is_over);
	assert_int_equal(n_started, 1);
	ask_for_worker(1);
	UNTIL(n_started == 2);
}

static void
a_successor_that_fails_is_nobodys_trouble(void **state)
{
	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	kill(started[1].pid, SIGKILL);
	UNTIL(n_started == 3);
	assert_true(zygote_is_ready(zygote));
	assert_null(zygote_trouble(zygote));
	assert_int_equal(zygote_pid(zygote), started[0].pid);
	assert_int_equal(heard.failed + heard.lost + heard.renewed, 0);
	say_ready(2);
	assert_int_equal(heard.renewed, 1);
}

static void
a_successor_takes_the_place_of_one_that_is_lost(void **state)
{
	uint64_t first;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	first = zygote_generation(zygote);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	kill(started[0].pid, SIGKILL);
	UNTIL(heard.lost == 1);
	assert_int_equal(heard.lost_generation, first);
	assert_false(zygote_is_ready(zygote));
	assert_int_equal(zygote_room(zygote), 0);
	say_ready(1);
	assert_true(zygote_is_ready(zygote));
	assert_int_equal(n_started, 2);
	assert_int_equal(heard.renewed + heard.failed, 0);
}

static void
what_a_replaced_one_owes_is_told_when_it_is_lost(void **state)
{
	uint64_t first;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	first = zygote_generation(zygote);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	say_ready(1);
	kill(started[0].pid, SIGKILL);
	UNTIL(heard.lost == 1);
	assert_int_equal(heard.lost_generation, first);
	assert_true(zygote_is_ready(zygote));
	assert_int_equal(zygote_pid(zygote), started[1].pid);
}

static void
the_one_that_hangs_is_killed(void **state)
{
	uint64_t first;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	first = zygote_generation(zygote);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	say_ready(1);
	assert_true(zygote_kill(zygote, first));
	assert_false(zygote_kill(zygote, first));
	assert_false(zygote_kill(zygote, first + 100));
	UNTIL(heard.lost == 1);
	assert_true(zygote_is_ready(zygote));
}

/* If it lives, reads what was sent to a zygote, and answers PING. The number of other messages. */
static unsigned int
live(size_t i, bool lives)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	unsigned int others = 0;

	frame_reader_init(&reader, FROM_SUPERVISOR);
	assert_int_equal(fcntl(started[i].line, F_SETFL, O_NONBLOCK), 0);
	while (lives && frame_reader_read(&reader, started[i].line, &frame) == 1) {
		if (frame.msg.type == MSG_PING)
			assert_int_equal(frame_send_pong(started[i].line, &frame.msg.ping), 0);
		else
			others++;
		frame_done(&frame);
	}
	frame_reader_done(&reader);
	return others;
}

/* The second answers each PING, and is still there when the first was lost and replaced: its time
 * would have been over before. A successor takes the place of one that is silent. */
static void
one_that_gives_no_sign_is_killed(void **state)
{
	static const bool lives[] = { false, true };
	uint64_t generation = 0;
	unsigned int asked = 0;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		UNTIL(n_started == i + 1);
		say_ready(i);
		generation = zygote_generation(zygote);
		ask_for_worker(i + 1);
		for (unsigned int turns = 0; heard.lost == i && turns < (lives[i] ? 12 : 60);
		     turns++) {
			const struct timeval turn = { .tv_usec = 500000 };

			event_base_loopexit(base, &turn);
			event_base_dispatch(base);
			asked += live(i, lives[i]);
		}
		assert_int_equal(heard.lost, 1);
	}
	assert_int_equal(asked, 1);
	assert_true(zygote_is_alive(zygote, generation));
}

/* One that is stopped is lost sooner. */
static void
one_that_is_stopped_is_killed(void **state)
{
	siginfo_t info;

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	kill(started[0].pid, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)started[0].pid, &info, WSTOPPED | WNOWAIT), 0);
	ask_for_worker(1);
	UNTIL(heard.lost == 1);
}

/* An answer to no question, or to an earlier one, breaks the protocol. */
static void
a_pong_answers_a_ping(void **state)
{
	const struct msg_ping ping = { .number = 7 };

	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	assert_int_equal(frame_send_pong(started[0].line, &ping), 0);
	UNTIL(heard.lost == 1);
}

static void
both_are_stopped(void **state)
{
	(void)state;
	UNTIL(n_started == 1);
	say_ready(0);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	zygote_stop(zygote);
	assert_int_equal(heard.stopped, 0);
	UNTIL(heard.stopped == 1);
	assert_false(child_is_one(started[0].pid) || child_is_one(started[1].pid));
	assert_int_equal(heard.lost + heard.failed, 0);
}

static void
an_early_one_is_bare_and_replaced(void **state)
{
	(void)state;
	UNTIL(n_started == 1);
	assert_true(started[0].modules == LEARNABLE_BARE);
	say_ready(0);
	assert_true(zygote_learned(zygote) == 0);
	UNTIL(n_started == 2);
	assert_true(started[1].modules == 0);
	say_ready(1);
	assert_int_equal(heard.renewed, 1);
	assert_int_equal(zygote_pid(zygote), started[1].pid);
}

static void
an_early_one_that_fails_is_followed_by_a_full_one(void **state)
{
	(void)state;
	UNTIL(n_started == 1);
	kill(started[0].pid, SIGKILL);
	UNTIL(heard.failed == 1);
	UNTIL(n_started == 2);
	assert_true(started[1].modules == 0);
}

/* A module for which there was no time is not refused; others are, until the next renewal. */
static void
a_verdict_holds_until_the_renewal(void **state)
{
	(void)state;
	zygote_learn(zygote, 7);
	UNTIL(n_started == 1);
	assert_true(started[0].modules == 7);
	say_learned(0, 1, 4);
	assert_true(zygote_learned(zygote) == 1);
	assert_true(zygote_refused(zygote) == 2);
	ask_for_worker(1);
	UNTIL(n_started == 2);
	assert_true(started[1].modules == 7);
	assert_true(zygote_refused(zygote) == 0);
	say_learned(1, 3, 0);
	assert_true(zygote_learned(zygote) == 3);
	assert_true(zygote_refused(zygote) == 4);
}

/* A module may have ended the first one. The second one tries each module. */
static void
one_that_ends_while_it_learns_is_followed_by_one_that_tries(void **state)
{
	(void)state;
	zygote_learn(zygote, 3);
	UNTIL(n_started == 1);
	assert_true(started[0].modules == 3);
	kill(started[0].pid, SIGKILL);
	UNTIL(n_started == 2);
	assert_int_equal(heard.failed, 0);
	assert_true(started[1].modules == (3 | LEARNABLE_TRIALS));
	say_learned(1, 1, 0);
	assert_true(zygote_learned(zygote) == 1);
	assert_null(zygote_reason(zygote, 0));
	assert_string_equal(zygote_reason(zygote, 1), "a: reason");
	ask_for_worker(1);
	UNTIL(n_started == 3);
	assert_true(started[2].modules == 3);	/* the renewal */
	kill(started[2].pid, SIGKILL);
	UNTIL(n_started == 4);
	assert_true(started[3].modules == (3 | LEARNABLE_TRIALS));
	say_learned(3, 3, 0);
	assert_true(zygote_learned(zygote) == 3);
	assert_null(zygote_reason(zygote, 1));
}

static void
one_that_ends_in_its_trials_has_failed(void **state)
{
	(void)state;
	zygote_learn(zygote, 1);
	for (size_t i = 0; i < 2; i++) {
		UNTIL(n_started == i + 1);
		kill(started[i].pid, SIGKILL);
	}
	UNTIL(heard.failed == 1);
}

#define ZYGOTE(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ZYGOTE(the_old_one_serves_until_the_new_one_is_ready),
		ZYGOTE(no_memory_for_messages_passes),
		cmocka_unit_test_setup_teardown(no_free_descriptor_loses_no_zygote, open_lasting,
						close_it),
		ZYGOTE(one_that_has_made_no_worker_is_kept),
		ZYGOTE(names_are_names),
		ZYGOTE(one_that_fails_says_why),
		ZYGOTE(a_launcher_that_is_away_is_not_waited_for_longer),
		ZYGOTE(pauses_grow_only_after_early_ends),
		ZYGOTE(a_successor_that_fails_is_nobodys_trouble),
		ZYGOTE(a_successor_takes_the_place_of_one_that_is_lost),
		ZYGOTE(what_a_replaced_one_owes_is_told_when_it_is_lost),
		ZYGOTE(the_one_that_hangs_is_killed),
		cmocka_unit_test_setup_teardown(one_that_gives_no_sign_is_killed, open_lasting,
						close_it),
		cmocka_unit_test_setup_teardown(one_that_is_stopped_is_killed, open_lasting,
						close_it),
		cmocka_unit_test_setup_teardown(a_pong_answers_a_ping, open_lasting,
						close_it),
		ZYGOTE(both_are_stopped),
		cmocka_unit_test_setup_teardown(an_early_one_is_bare_and_replaced, open_early,
						close_it),
		cmocka_unit_test_setup_teardown(an_early_one_that_fails_is_followed_by_a_full_one,
						open_early, close_it),
		cmocka_unit_test_setup_teardown(a_verdict_holds_until_the_renewal, open_learning,
						close_it),
		cmocka_unit_test_setup_teardown(
			one_that_ends_while_it_learns_is_followed_by_one_that_tries, open_learning,
			close_it),
		cmocka_unit_test_setup_teardown(one_that_ends_in_its_trials_has_failed,
						open_learning, close_it),
	};

	log_init(LOG_WARNING);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
