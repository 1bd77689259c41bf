/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a worker. init is pid 1, a copy of the zygote that never runs Python again; the
 * script's process is pid 2.
 * Reads:   RUN, or OPEN, from the supervisor.
 * The script may do anything to its process. So init reports how the process ended. */
#include "worker/execution.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "proto/frame.h"
#include "worker/ask.h"
#include "worker/interpreter.h"
#include "worker/listener.h"
#include "worker/procfs.h"
#include "worker/session.h"
#include "worker/sharedmap.h"
#include "worker/title.h"
#include "worker/warm.h"
#include "worker/where.h"
#include "worker/workspace.h"

/* Shared between the two. A script that writes to it only obscures its own end. */
static volatile struct shared {
	bool told;		/* the script's process has reported its own end */
	bool is_session;	/* OPEN came: the process does not become a script's */
	struct msg_open open;
	struct stat script;	/* its own file, as it was before it ran */
} *shared;

/* ---- the script's process ---- */

int
execution_await(int gate)
{
	unsigned char error = 0;
	ssize_t n = -1;

	if (gate >= 0) {
		n = read(gate, &error, 1);
		close(gate);
	}
	return n != 1 ? -EPIPE : -(int)error;
}

static int
put_link(struct frame *frame, bool replace)
{
	int r = frame->fds.n > 0 ? execution_await(frame_take_fd(frame, 0)) : 0;

	return r < 0 ? r : workspace_link(&frame->msg.link, replace);
}

/* Where a volume or a folder could not be mounted; NULL: there is no such place. */
static const char *without;

static int
await_volume(struct frame *frame)
{
	const struct msg_str *asked = &frame->msg.await_volume.place;
	const char *place = asked->len == strlen(FOLDER_PLACE) &&
			    memcmp(asked->at, FOLDER_PLACE, asked->len) == 0
		? FOLDER_PLACE : VOLUME_PLACE;
	int r = frame->fds.n > 0 ? execution_await(frame_take_fd(frame, 0)) : 0;

	if (r == 0)
		r = workspace_has_mount(place);
	if (r < 0)
		without = place;
	return r;
}

/* INPUT, LINK or AWAIT_VOLUME. 0 or -errno. */
static int
execution_put(struct frame *frame, bool replace)
{
	switch ((unsigned int)frame->msg.type) {
	case MSG_INPUT:
		return workspace_put(&frame->msg.input, replace);
	case MSG_LINK:
		return put_link(frame, replace);
	default:
		return await_volume(frame);
	}
}

int
execution_receive(struct frame *frame, bool replace, int *error_r)
{
	struct frame_reader reader;
	int r;

	workspace_forget_inputs();
	without = NULL;
	frame_reader_init(&reader, FROM_SUPERVISOR);
	for (;;) {
		r = frame_reader_read(&reader, JAIL_CONTROL, frame);
		if (r < 0 || (r > 0 && frame->msg.type != MSG_INPUT &&
			      frame->msg.type != MSG_LINK &&
			      frame->msg.type != MSG_AWAIT_VOLUME))
			break;
		if (r == 0)
			continue;
		r = execution_put(frame, replace);
		if (r < 0)
			*error_r = -r;
		frame_done(frame);
	}
	frame_reader_done(&reader);
	return r < 0 ? r : 0;
}

void
execution_refuse_input(const struct msg_run *run, int error, struct msg_done *done_r)
{
	static char message[160];

	snprintf(message, sizeof(message), "[Errno %d] %s%s: %s", error,
		 without ? "this could not be mounted: "
			 : "an input file could not be put into ",
		 without ? without : WORKSPACE, strerrordesc_np(error));
	*done_r = (struct msg_done){
		.id = run->id, .exit_code = 1, .raised = true,
		.has_error_type = true, .error_type = msg_str("OSError"),
		.has_error_message = true, .error_message = msg_str(message),
	};
}

static bool is_ready;		/* PREPARE came, and it was done */

/* Writes the memory limit of RUN, PREPARE or OPEN, and the uptime, to /proc, once. Other messages
 * run nothing. */
static void
tell_machine(const struct msg *msg)
{
	int r = 0;

	if (msg->type == MSG_RUN && !is_ready)
		r = procfs_tell(msg->run.memory_bytes);
	else if (msg->type == MSG_PREPARE)
		r = procfs_tell(msg->prepare.memory_bytes);
	else if (msg->type == MSG_OPEN)
		r = procfs_tell(msg->open.memory_bytes);
	if (r < 0)
		jail_die(JAIL_CONTROL, "/proc", -r);
}

/* Does what PREPARE says, under the limits of the script that follows. */
static void
get_ready(const struct jail_state *state, uint64_t serial, struct frame *frame)
{
	const struct msg_prepare *prepare = &frame->msg.prepare;
	const struct msg_run limits = { .data_bytes = prepare->data_bytes,
					.processes = prepare->processes };
	struct msg msg = { .type = MSG_PREPARED, .prepared.worker = serial };
	int r = execution_await(frame_take_fd(frame, 0));

	tell_machine(&frame->msg);
	if (r == 0)
		r = jail_limit(state, &limits);
	if (r < 0)
		msg.prepared.trouble = msg_str(strerrordesc_np(-r));
	else
		interpreter_make_ready(prepare, &msg.prepared.trouble);
	is_ready = true;
	if (frame_send(JAIL_CONTROL, &msg, NULL, 0) < 0)
		_exit(0);
}

/* 0, or the errno of an input file that could not be put in place. */
static int
receive_run(const struct jail_state *state, uint64_t serial, struct frame *frame)
{
	int error = 0, r = execution_receive(frame, false, &error);

	while (r == 0 && frame->msg.type == MSG_PREPARE && !is_ready) {
		get_ready(state, serial, frame);
		frame_done(frame);
		r = execution_receive(frame, false, &error);
	}
	if (r == 0)
		tell_machine(&frame->msg);
	if (r == 0 && frame->msg.type == MSG_OPEN) {
		shared->open = frame->msg.open;
		shared->is_session = true;
		workspace_script_remove();
	}
	/* The worker is not needed, or the supervisor has ended: nothing was run, so nothing is
	 * reported. */
	if (r < 0 || frame->msg.type != MSG_RUN)
		_exit(0);
	if (frame->msg.run.has_stdin) {
		own_fd int in = frame_take_fd(frame, 0);

		if (in < 0 || dup2(in, STDIN_FILENO) < 0)
			jail_die(JAIL_CONTROL, "standard input",
				 in < 0 ? EBADF : errno);
	}
	return error;
}

/* For a run with a network: makes the listening socket for the proxy, and names the proxy in the
 * environment. */
static void
offer_listener(uint64_t id)
{
	uint16_t port;
	int fd = listener_offer(id, &port);

	if (fd == -EPIPE)
		_exit(0);
	if (fd < 0)
		jail_die(JAIL_CONTROL, "the proxy's socket", -fd);
	close(fd);
	if (interpreter_use_proxy(port) < 0)
		jail_die(JAIL_CONTROL, "the proxy's name", EIO);
}

/* 1: the packages are mounted; 2: they were before, and modules are imported; 0: none were
 * requested, though they may be mounted for an import that finds them; else -errno. */
static int
environment_wait(struct frame *frame)
{
	int r;

	if (!frame->msg.run.environment || is_ready)
		return frame->msg.run.environment ? 2 : 0;
	r = execution_await(frame->fds.n > 0 ? frame_take_fd(frame, frame->fds.n - 1) : -1);
	return r < 0 ? r : 1;
}

/* Waits for the supervisor's permission to end. Taking an interpreter down occupies a processor
 * for longer than a small script runs, at the moment when the answer is on its way. */
static void
await_end(void)
{
	char byte;
	ssize_t n;

	do
		n = read(JAIL_CONTROL, &byte, sizeof(byte));
	while (n > 0 || (n < 0 && errno == EINTR));
}

static _Noreturn void
live_as_script(const struct jail *jail, uint64_t serial)
{
	struct msg ready = { .type = MSG_READY, .ready.worker = serial,
			     .ready.host_name = jail_has_host_name() };
	struct msg done = { .type = MSG_DONE };
	struct frame frame = { 0 };
	struct jail_state state;
	struct stat written;
	pid_t self = getpid();
	int r, script, refused;

	title_set("python3", "script");
	shared->told = false;	/* maps the page here too: a run does not wait for it */
	r = jail_confine(jail);
	if (r < 0)
		jail_die(JAIL_CONTROL, "landlock", -r);
	/* As on a host, a program may look into itself; only init is protected. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	warm_up();
	interpreter_after_fork();
	jail_prove(jail);
	if (interpreter_fresh() < 0)
		jail_die(JAIL_CONTROL, "a fresh interpreter", EIO);
	r = jail_settle(jail, &state);
	if (r < 0)
		jail_die(JAIL_CONTROL, "the script's place", -r);
	/* multiprocessing's spawn and inspect look for the file of __main__. */
	script = workspace_script_new();
	if (script < 0)
		jail_die(JAIL_CONTROL, "the script's file", -script);
	workspace_note(WORKSPACE);
	if (frame_send(JAIL_CONTROL, &ready, NULL, 0) < 0)
		_exit(0);
	refused = receive_run(&state, serial, &frame);
	if (frame.msg.run.network)
		offer_listener(frame.msg.run.id);
	r = workspace_script_write(script, &frame.msg.run.script, &written);
	if (r < 0)
		jail_die(JAIL_CONTROL, "the script's file", -r);
	shared->script = written;
	r = jail_limit(&state, &frame.msg.run);
	if (r < 0)
		jail_die(JAIL_CONTROL, "the run's limits", -r);
	if (refused)
		execution_refuse_input(&frame.msg.run, refused, &done.done);
	else
		interpreter_run(&frame.msg.run, environment_wait(&frame), &done.done);
	fflush(stdout);	/* what C code of the script has printed */
	/* A child that the script forked comes here too, if it runs to the end. */
	if (getpid() == self &&
	    workspace_tell(WORKSPACE, JAIL_CONTROL, NULL, &written, !ask_is_open()) == 0 &&
	    frame_send(JAIL_CONTROL, &done, NULL, 0) == 0) {
		shared->told = true;
		await_end();
	}
	_exit((int)done.done.exit_code);
}

/* ---- init ---- */

/* The signals that init waits for. Because they are blocked, they are kept even without a
 * handler. */
static void
init_signals(sigset_t *set_r)
{
	sigemptyset(set_r);
	sigaddset(set_r, SIGCHLD);
	sigaddset(set_r, SIGTERM);
	sigaddset(set_r, SIGUSR1);
	sigaddset(set_r, SIGINT);
}

static int
left_ms(uint64_t until_ms)
{
	uint64_t now = clock_ms();

	return until_ms > now ? (int)(until_ms - now) : 0;
}

/* Waits for one of init's signals, at most ms milliseconds (-1: any time). Returns its number; 0:
 * there was none. */
static int
await_signal(int signals, int ms)
{
	struct pollfd events[] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = procfs_tick(), .events = POLLIN },
	};
	struct signalfd_siginfo info;

	if (poll(events, 2, ms) <= 0)
		return 0;
	if (events[1].revents != 0)
		procfs_on_tick();
	if (events[0].revents == 0 || read(signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	return (int)info.ssi_signo;
}

/* Reaps until the script's process has ended. At SIGINT from the supervisor it is interrupted. At
 * SIGTERM it is killed, with all other processes. At SIGUSR1 it is first asked where it is, and has
 * WHERE_WAIT_MS to answer. A script that sends init one of these signals ends itself. False: the
 * process is not init's child any more. */
static bool
wait_for_script(int signals, pid_t script, int *status_r)
{
	uint64_t until_ms = 0;		/* not 0: it was asked where it is */
	pid_t pid;

	while ((pid = waitpid(-1, status_r, WNOHANG)) != script) {
		int signal;

		if (pid < 0 && errno != EINTR)
			return false;
		if (pid != 0)
			continue;
		signal = await_signal(signals, until_ms ? left_ms(until_ms) : -1);
		if (signal == SIGINT) {
			kill(script, SIGINT);
		} else if (signal == SIGUSR1 && until_ms == 0) {
			until_ms = clock_ms() + WHERE_WAIT_MS;
			where_ask(script);
		} else if (signal == SIGTERM || (until_ms && clock_ms() >= until_ms)) {
			kill(-1, SIGKILL);
		}
	}
	return true;
}

/* All other processes end with init. */
static _Noreturn void
live_as_init(const struct jail *jail, const sigset_t *set, pid_t script, uint64_t serial)
{
	int signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	struct msg restart = { .type = MSG_LEFT_RESTART, .left_restart.worker = serial };
	struct msg exited = { .type = MSG_EXITED };
	int status;

	if (signals < 0)
		jail_die(JAIL_CONTROL, "init's signals", errno);
	title_set("python-init", "init");
	if (!wait_for_script(signals, script, &status))
		_exit(0);
	close(signals);
	if (shared->is_session) {
		struct msg_open open = shared->open;

		/* Otherwise a session's processes would show the page to scripts as shared
		 * memory. */
		munmap((void *)(uintptr_t)shared, sizeof(*shared));
		session_live(jail, serial, &open);
	}
	if (!shared->told) {
		struct stat script_file = shared->script;

		kill(-1, SIGKILL);
		exited.exited.status = (uint32_t)status & 0xffff;
		if (frame_send(JAIL_CONTROL, &restart, NULL, 0) == 0 &&
		    workspace_tell(WORKSPACE, JAIL_CONTROL, NULL, &script_file, false) == 0)
			frame_send(JAIL_CONTROL, &exited, NULL, 0);
	}
	_exit(0);
}

void
execution_live(const struct jail *jail, uint64_t serial)
{
	sigset_t set;
	pid_t script;

	if (!jail->memory_counted)
		sharedmap_use_files();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		jail_die(JAIL_CONTROL, "shared page", errno);
	/* The page may lie in the worker's own file system, which a script can fill. The first
	 * write to it would then end by SIGBUS, so it is made now. */
	shared->told = false;
	init_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	script = fork();
	if (script < 0)
		jail_die(JAIL_CONTROL, "the script's process", errno);
	if (script == 0) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		live_as_script(jail, serial);
	}
	live_as_init(jail, &set, script, serial);
}
