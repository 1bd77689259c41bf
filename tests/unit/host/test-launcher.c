/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher with a supervisor that was taken over: it knows itself what it starts, and checks
 * each order. As root and as the user nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/own.h"
#include "base/why.h"
#include "host/cgroup.h"
#include "host/launcher.h"
#include "host/forker.h"
#include "host/helper.h"
#include "host/outer.h"
#include "host/startup.h"
#include "policy/config.h"
#include "policy/learnable.h"
#include "proto/frame.h"
#include "../engine/engine_rig.h"
#include "../proto/few_fds.h"

/* What becomes of a launcher that reads the configuration again. It has this in common with the
 * test. */
enum reading { READS_ALL, READS_NO_MORE, IS_KILLED };

static _Atomic enum reading *reading;

/* What the launcher finds when it reads the configuration again. */
static const struct config *
read_again(void *arg)
{
	static const char all[] = "[profile more]\nmodules = json is_missing\n[interpreter x]\n"
				  "worker = /nowhere\n[profile lost]\ninterpreter = x\n";
	const char *text = *reading == READS_NO_MORE ? "[profile other]\nmodules = json\n" : all;
	own_fd int fd = memfd_create("config", MFD_CLOEXEC);
	struct config *config = config_new();
	char path[64];

	(void)arg;
	if (*reading == IS_KILLED) {
		*reading = READS_ALL;
		raise(SIGKILL);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
	    config_read(config, path, stderr) == 0)
		return config;
	config_free(config);
	return NULL;
}

static int
set_up(void **state)
{
	struct why why = { .text = "" };

	(void)state;
	rig.base = event_base_new();
	rig.config = config_new();
	rig.programs.read = read_again;
	reading = mmap(NULL, sizeof(*reading), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_ptr_not_equal(reading, MAP_FAILED);
	if (startup_privilege(rig.config, false, &rig.programs, &rig.launcher, &rig.cgroups,
			      &why) == 0)
		return 0;
	print_error("%s\n", why.text);
	return -1;
}

static int
tear_down(void **state)
{
	(void)state;
	launcher_free(rig.launcher);
	forkers_stop();
	cgroup_root_free(rig.cgroups);
	config_free(rig.config);
	event_base_free(rig.base);
	return 0;
}

struct launched {
	struct launch *launch;
	int error;
};

static void
on_launched(void *arg, int error, const char *what, struct launch *launch)
{
	struct launched *launched = arg;

	(void)what;
	launched->error = error;
	if (error == 0)
		*launched->launch = *launch;
}

static int
start_with(enum launch_kind kind, unsigned int profile, uint64_t modules, struct launch *launch)
{
	struct launched launched = { launch, 1 };
	struct launch_order order;

	launch_init(launch);
	launcher_start(rig.launcher, kind, profile, modules, &order, on_launched, &launched);
	launcher_finish(&order);
	assert_true(launched.error <= 0);
	return launched.error;
}

static int
start(enum launch_kind kind, unsigned int profile, struct launch *launch)
{
	return start_with(kind, profile, 0, launch);
}

/* It ends with its line, and what it has forked before it. */
static void
end(struct launch *launch)
{
	siginfo_t info = { 0 };

	close(launch->control);
	launch->control = -1;
	assert_int_equal(waitid(P_PIDFD, (id_t)launch->pidfd, &info, WEXITED), 0);
	launch_done(launch);
}

/* How many modules of its profile it could not import. */
static size_t
zygote_misses(unsigned int profile, uint64_t modules)
{
	struct launch launch;
	struct frame frame = { 0 };
	struct frame_reader reader;
	size_t misses;

	assert_int_equal(start_with(LAUNCH_ZYGOTE, profile, modules, &launch), 0);
	assert_int_equal(fcntl(launch.control, F_SETFL, 0), 0);
	frame_reader_init(&reader, FROM_ZYGOTE);
	assert_int_equal(frame_reader_read(&reader, launch.control, &frame), 1);
	assert_int_equal(frame.msg.type, MSG_HELLO);
	frame_done(&frame);
	assert_int_equal(frame_reader_read(&reader, launch.control, &frame), 1);
	assert_int_equal(frame.msg.type, MSG_ZYGOTE_READY);
	misses = frame.msg.zygote_ready.missing.n;
	frame_done(&frame);
	frame_reader_done(&reader);
	end(&launch);
	return misses;
}

static void
zygote_starts(unsigned int profile)
{
	zygote_misses(profile, 0);
}

/* There is a reserve for one. The next is refused, and nothing is lost. */
static void
no_free_descriptor_is_no_end(void **state)
{
	pid_t pid = launcher_pid(rig.launcher);
	struct launch launch[2];
	struct launched launched[2] = { { &launch[0], 1 }, { &launch[1], 1 } };
	struct launch_order order[2];

	(void)state;
	few_fds(0);
	for (size_t i = 0; i < 2; i++)
		launcher_start(rig.launcher, LAUNCH_ZYGOTE, 0, 0, &order[i], on_launched,
			       &launched[i]);
	assert_int_equal(launcher_adopt(rig.launcher, getpid()), -EMFILE);
	few_fds_end();
	assert_int_equal(launched[0].error, 0);
	assert_int_equal(launched[1].error, -EMFILE);
	end(&launch[0]);
	assert_int_equal(launcher_adopt(rig.launcher, getpid()), -ECHILD);
	zygote_starts(0);
	assert_int_equal(launcher_pid(rig.launcher), pid);
}

/* It is a child of this process, and got its profile before this process could send anything. */
static void
zygote_is_ours_and_configured(void **state)
{
	(void)state;
	zygote_starts(0);
}

/* Only the configuration says what there is. */
static void
what_is_learned_is_configured(void **state)
{
	struct why why = { .text = "" };
	unsigned int profile = 9;

	(void)state;
	assert_int_equal(launcher_learn(rig.launcher, "none", &profile, &why), -ENOENT);
	assert_string_equal(why.text, "the configuration has no such profile");
	assert_int_equal(launcher_learn(rig.launcher, "lost", &profile, &why), -ENOENT);
	assert_string_equal(why.text, "[interpreter x] worker: /nowhere: No such file or directory");
	for (int i = 0; i < 2; i++) {	/* added, then replaced */
		assert_int_equal(launcher_learn(rig.launcher, "more", &profile, &why), 0);
		assert_int_equal(profile, 1);
		zygote_starts(1);
	}
	assert_int_equal(launcher_learn(rig.launcher, "basic", &profile, &why), 0);
	assert_int_equal(profile, 0);
	zygote_starts(0);
}

static void
only_what_it_knows_is_started(void **state)
{
	struct launch launch;

	(void)state;
	assert_int_equal(start(LAUNCH_ZYGOTE, (unsigned int)rig.config->n_profiles, &launch),
			 -ENOENT);
	assert_int_equal(start(LAUNCH_ZYGOTE, 255, &launch), -ENOENT);
	/* No store is configured. */
	assert_int_equal(start(LAUNCH_KEEPER, 0, &launch), -ENOENT);
	assert_int_equal(start(LAUNCH_EGRESS, 1, &launch), -ENOENT);
	assert_int_equal(launch.pid, 0);
	/* It goes on after that. */
	assert_int_equal(start(LAUNCH_ZYGOTE, 0, &launch), 0);
	end(&launch);
}

/* The usual zygote, the learned one, and a successor of each. */
static void
no_more_than_four_live(void **state)
{
	struct launch launch[5];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(start(LAUNCH_ZYGOTE, 0, &launch[i]), 0);
	assert_int_equal(start(LAUNCH_ZYGOTE, 0, &launch[4]), -EBUSY);
	end(&launch[0]);
	assert_int_equal(start(LAUNCH_ZYGOTE, 0, &launch[4]), 0);
	for (size_t i = 1; i < 5; i++)
		end(&launch[i]);
}

static void
only_children_are_adopted(void **state)
{
	siginfo_t info = { 0 };
	pid_t child, parent = getppid();
	int fd;

	(void)state;
	assert_int_equal(launcher_adopt(rig.launcher, parent), -ECHILD);
	assert_int_equal(launcher_adopt(rig.launcher, getpid()), -ECHILD);
	assert_int_equal(launcher_adopt(rig.launcher, launcher_pid(rig.launcher)), -ECHILD);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	fd = launcher_adopt(rig.launcher, child);
	assert_true(fd >= 0);
	assert_int_equal(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0), 0);
	assert_int_equal(waitid(P_PIDFD, (id_t)fd, &info, WEXITED), 0);
	assert_int_equal(info.si_pid, child);
	close(fd);
	assert_int_equal(launcher_adopt(rig.launcher, child), -ESRCH);
}

/* Whether the launcher has answered already or not, its process goes to who asks for that one, and
 * to nobody else; and only once. */
static void
one_is_started_ahead(void **state)
{
	struct launched launched;
	struct launch first, usual, second;
	struct launch_order order;
	pid_t pid = launcher_pid(rig.launcher);

	(void)state;
	launcher_ahead(rig.launcher);
	assert_int_equal(start(LAUNCH_ZYGOTE, 0, &usual), 0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(start_with(LAUNCH_ZYGOTE, 0, LEARNABLE_BARE, &first), 0);
	assert_int_not_equal(first.pid, usual.pid);
	end(&first);
	launcher_ahead(rig.launcher);
	launched = (struct launched){ &first, 1 };
	launcher_start(rig.launcher, LAUNCH_ZYGOTE, 0, LEARNABLE_BARE, &order, on_launched,
		       &launched);
	assert_int_equal(launched.error, 1);
	assert_int_equal(kill(pid, SIGCONT), 0);
	launcher_finish(&order);
	assert_int_equal(launched.error, 0);
	/* Not before: it may have stopped before it closed its own ends of these sockets. */
	end(&usual);
	assert_int_equal(start_with(LAUNCH_ZYGOTE, 0, LEARNABLE_BARE, &second), 0);
	assert_int_not_equal(first.pid, second.pid);
	end(&first);
	end(&second);
}

static bool back;

static void
on_back(void *arg)
{
	*(bool *)arg = true;
}

/* The loop watches it from now on. A new launcher cannot learn again what has left the
 * configuration: that profile has no zygotes, and all others have. One that is lost while it learns
 * is replaced like any other. */
static void
what_it_cannot_learn_again(void **state)
{
	struct why why = { .text = "" };
	unsigned int profile = 0;
	struct launch launch;

	(void)state;
	assert_int_equal(launcher_learn(rig.launcher, "more", &profile, &why), 0);
	forkers_watch(rig.base, NULL, NULL);
	launcher_watch(rig.launcher, rig.base, on_back, &back);
	*reading = READS_NO_MORE;
	assert_int_equal(kill(launcher_pid(rig.launcher), SIGKILL), 0);
	rig_turn_until(&back);
	assert_int_equal(start(LAUNCH_ZYGOTE, profile, &launch), -ENOENT);
	zygote_starts(0);
	back = false;
	*reading = IS_KILLED;
	assert_int_equal(kill(launcher_pid(rig.launcher), SIGKILL), 0);
	rig_turn_until(&back);
	assert_int_equal(*reading, READS_ALL);
	assert_int_equal(helper_state(HELPER_LAUNCHER).lost, 2);
	assert_int_equal(helper_state(HELPER_LAUNCHER).away, 0);
	zygote_starts(profile);
}

/* Last: the loop watches it. The next launcher starts what the one before it was told
 * to learn, by the same number. */
static void
it_is_made_again(void **state)
{
	struct why why = { .text = "" };
	unsigned int profile = 0;
	struct launch launch;

	(void)state;
	assert_int_equal(launcher_learn(rig.launcher, "more", &profile, &why), 0);
	back = false;
	assert_int_equal(kill(launcher_pid(rig.launcher), SIGKILL), 0);
	rig_turn_until(&back);
	assert_int_equal(helper_state(HELPER_LAUNCHER).lost, 3);
	zygote_starts(0);
	assert_int_equal(zygote_misses(profile, 0), 1);
	assert_int_equal(zygote_misses(profile, LEARNABLE_BARE), 0);
	/* One that stands still is replaced too; an order that it has fails. */
	assert_int_equal(kill(launcher_pid(rig.launcher), SIGSTOP), 0);
	assert_true(start(LAUNCH_ZYGOTE, 0, &launch) < 0);
	back = false;
	rig_turn_until(&back);
	zygote_starts(profile);
	/* A fork server that is killed is made again by the other one. */
	for (unsigned int i = 1; i <= 4; i++) {
		assert_int_equal(kill(forker_pid(i % 2), SIGKILL), 0);
		while (helper_state(HELPER_FORKER).lost < i || helper_state(HELPER_FORKER).away > 0)
			event_base_loop(rig.base, EVLOOP_ONCE);
	}
	back = false;
	assert_int_equal(kill(launcher_pid(rig.launcher), SIGKILL), 0);
	rig_turn_until(&back);
	zygote_starts(0);
	/* Clients that use up all descriptors end no fork server. */
	back = false;
	few_fds(0);
	assert_int_equal(kill(launcher_pid(rig.launcher), SIGKILL), 0);
	while (!back) {
		few_fds_again();
		event_base_loop(rig.base, EVLOOP_ONCE);
	}
	few_fds_end();
	assert_int_equal(helper_state(HELPER_FORKER).lost, 4);
	zygote_starts(0);
}

/* ---- without a supervisor in between ---- */

#define NOT_SENT (-1)

/* The wait status of a launcher that is sent some bytes, with a descriptor or none; NOT_SENT: the
 * kernel lets no process pass a descriptor. */
static int
told(const void *bytes, size_t len, const int *fd)
{
	const struct outer_namespace outer = { .user_fd = -1, .mount_fd = -1 };
	struct config *config = config_new();
	const struct launcher_options options = { .config = config, .outer = &outer,
						  .worker_fd = -1, .keeper_fd = -1,
						  .egress_fd = -1, .tools_fd = -1 };
	pid_t supervisor = getpid(), pid;
	int pair[2], status = -1;
	ssize_t sent;
	char answer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0)
		launcher_live(&options, pair[1], supervisor);
	close(pair[1]);
	sent = fdpass_send(pair[0], bytes, len, fd, fd != NULL, 0);
	/* Newer kernels say so to who passes a descriptor. */
	if (sent != -EPERM || fd == NULL)
		assert_int_equal(sent, len);
	shutdown(pair[0], SHUT_WR);
	while (read(pair[0], &answer, 1) > 0)
		;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(pair[0]);
	config_free(config);
	return sent == -EPERM ? NOT_SENT : status;
}

static void
a_breach_is_its_end(void **state)
{
	struct msg run = { .type = MSG_RUN, .run = { .id = 1, .value_max = 4096 } };
	struct msg launch = { .type = MSG_LAUNCH };
	struct codec_buffer bytes = { 0 };
	int fd = STDERR_FILENO, status;

	(void)state;
	/* The supervisor's word, but not to a launcher. */
	assert_int_equal(frame_encode(&run, 0, &bytes), 0);
	assert_int_equal(told(bytes.at, bytes.len, NULL), EXIT_FAILURE << 8);
	bytes.len = 0;
	assert_int_equal(frame_encode(&launch, 0, &bytes), 0);
	/* No program is there, which is an answer; the end of the line is its own end. */
	assert_int_equal(told(bytes.at, bytes.len, NULL), EXIT_SUCCESS << 8);
	status = told(bytes.at, bytes.len, &fd);
	assert_true(status == EXIT_FAILURE << 8 || status == NOT_SENT);
	bytes.at[0]++;
	assert_int_equal(told(bytes.at, bytes.len, NULL), EXIT_FAILURE << 8);
	codec_buffer_done(&bytes);
}

static int
run_group(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_breach_is_its_end),
		cmocka_unit_test(zygote_is_ours_and_configured),
		cmocka_unit_test(no_free_descriptor_is_no_end),
		cmocka_unit_test(only_what_it_knows_is_started),
		cmocka_unit_test(no_more_than_four_live),
		cmocka_unit_test(only_children_are_adopted),
		cmocka_unit_test(one_is_started_ahead),
		cmocka_unit_test(what_is_learned_is_configured),
		cmocka_unit_test(what_it_cannot_learn_again),
		cmocka_unit_test(it_is_made_again),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

int
main(void)
{
	return rig_main(run_group, LOG_ERR, false);
}
