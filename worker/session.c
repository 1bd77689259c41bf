/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init, pid 1, which never runs Python.
 * Owns:    the loop: which operation is under way, and what is waited for.
 * Reads:   the supervisor's messages on the control socket, which no other process in the worker
 * has; and reports of heads and cells, whose processes run scripts. */
#include "worker/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/stall.h"
#include "proto/frame.h"
#include "worker/cell.h"
#include "worker/processes.h"
#include "worker/procfs.h"
#include "worker/reaper.h"
#include "worker/slots.h"
#include "worker/snapshot.h"
#include "worker/spare.h"
#include "worker/states.h"

#define COPY_S 5		/* the time that a snapshot's process has to make a copy */
#define SPARE_S 1		/* the time that it has to make a spare: no message is read
				 * meanwhile */
#define MEASURE_MS 300		/* a spare is measured if nothing has happened for this time */

/* The operation that is under way: there is one at a time. */
struct operation {
	enum { NOTHING, PREPARING, CELL, COPY, SPARE } what;
	unsigned int slot;
	int line;		/* to the copy that is being made, or to the cell; -1: not read */
};

/* The slot that was awake when everything was stopped for a restart of the service; -1: none. A
 * process that was just being made then is stopped, too, but may not be listed yet. */
static int held = -1;

/* While the first head imports modules: the worker's serial. 0: it does not. */
static uint64_t preparing;

static struct operation
session_now(void)
{
	struct operation now;

	if (preparing != 0)
		return (struct operation){ .what = PREPARING, .line = -1 };
	if (cell_runs(&now.slot, &now.line))
		now.what = CELL;
	else if (states_is_copying(&now.slot, &now.line))
		now.what = COPY;
	else
		now.what = spare_is_made(&now.slot, &now.line) ? SPARE : NOTHING;
	return now;
}

/* ---- heads and cells ---- */

/* Ends the operation if the process that it needs is gone. */
static void
session_check(void)
{
	struct operation now = session_now();

	if (now.what == CELL)
		cell_check();
	else if (now.what == PREPARING && slot_head(now.slot).pid == 0)
		preparing = 0;
	else if (now.what == COPY && slot_head(now.slot).pid == 0)
		states_lost();
	else if (now.what == SPARE && slot_head(now.slot).pid == 0)
		spare_lost();
}

static void
session_refused(const struct operation *now, int error)
{
	if (now->what == CELL)
		cell_refused(error);
	else if (now->what == COPY)
		states_refused();
	else
		spare_refused();
}

static void
session_forked(const struct operation *now, pid_t pid)
{
	if (now->what == CELL)
		cell_forked(pid);
	else if (now->what == COPY)
		states_forked(pid);
	else
		spare_forked(pid);
}

/* Passes on what the first head, which has run code of packages, says of its imports. */
static void
session_on_prepared(unsigned int slot)
{
	char text[PREPARED_MOST];
	struct msg msg = { .type = MSG_PREPARED, .prepared.worker = preparing };
	int n = slots_read(slot_head(slot).line, text, sizeof(text));

	if (n == 0)
		return;
	preparing = 0;
	if (n < 0) {
		slot_empty(slot);
		return;
	}
	msg.prepared.trouble = (struct msg_str){ text + 1, (size_t)n - 1 };
	states_tell();
	states_send(&msg);
}

/* Reads a report of the head in whose slot the operation is. A head that breaks the protocol, or
 * has ended, is given up. */
static void
session_on_head_report(const struct operation *now)
{
	bool copying = now->what != CELL || cell_waits_for_copy();
	struct report report;
	int r = slots_receive(slot_head(now->slot).line, &report);

	if (r == 0)
		return;
	if (r > 0 && report.kind == REPORT_REFUSED && copying) {
		session_refused(now, report.value);
	} else {
		slot_empty(now->slot);
		session_check();
	}
}

/* Reads a report of the copy, or of the cell. */
static void
session_on_own_report(const struct operation *now)
{
	bool copying = now->what != CELL || cell_waits_for_copy();
	struct report report;
	int r = slots_receive(now->line, &report);

	if (r == 0)
		return;
	if (r > 0 && report.kind == REPORT_FORKED && copying && report.value > 1)
		session_forked(now, report.value);
	else if (now->what == CELL)
		cell_report(r, &report);
	else
		session_refused(now, EAGAIN);
}

/* ---- the supervisor ---- */

/* Stops the slot that is awake and ends the spare, so that nothing can grow until the next message.
 * stays: the session does not end with the supervisor, but when its socket is closed, and each of
 * its processes is stopped. No process can evade this: if the signal comes during a fork, the fork
 * makes no process, and the kernel repeats it later. */
static void
session_on_hold(const struct msg_hold *hold)
{
	struct msg msg = { .type = MSG_HELD, .held.number = hold->number };
	int was;

	if (hold->stays && prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0)
		_exit(1);
	was = slots_rest();
	if (hold->undo && spare_undo())
		states_tell();
	spare_end();
	if (hold->stays) {
		kill(-1, SIGSTOP);
		held = was;
	}
	states_send(&msg);
}

/* Called between operations: finds out what has become of the states, and reports it. */
static void
session_settle(void)
{
	reaper_reap();
	spare_use();
	states_tell();
}

static void
session_on_message(const struct operation *now, struct frame *frame)
{
	const struct msg *msg = &frame->msg;

	/* The supervisor sends no further order before the answer to the last one. */
	if (now->what != NOTHING && msg->type != MSG_STOP && msg->type != MSG_COMMIT)
		_exit(1);
	if (held >= 0)
		slot_list_new((unsigned int)held, 0);
	held = -1;
	if (now->what == NOTHING)
		session_settle();
	if (msg->type == MSG_CELL)
		cell_begin(frame);
	else if (msg->type == MSG_STOP)
		cell_stop(&msg->stop);
	else if (msg->type == MSG_COMMIT)
		cell_commit(&msg->commit);
	else if (msg->type == MSG_COPY)
		states_copy(&msg->copy);
	else if (msg->type == MSG_DROP)
		states_drop(msg->drop.snapshot);
	else if (msg->type == MSG_HOLD)
		session_on_hold(&msg->hold);
	else
		_exit(1);
}

/* ---- the loop ---- */

static void
on_child(int)
{
}

/* The time to wait for events. When it has passed without an event, session_on_quiet is to be
 * called. NULL: any time. */
static const struct timespec *
session_wait(const struct operation *now)
{
	static const struct timespec copy = { .tv_sec = COPY_S };
	static const struct timespec spare = { .tv_sec = SPARE_S };
	static const struct timespec measure = { .tv_nsec = MEASURE_MS * 1000000 };
	static const struct timespec at_once;

	if (now->what == PREPARING)
		return NULL;
	if (now->what != NOTHING)
		return now->what == CELL ? cell_wait() : now->what == COPY ? &copy : &spare;
	return spare_is_wanted() ? &at_once : spare_is_unmeasured() ? &measure : NULL;
}

static void
session_on_quiet(const struct operation *now)
{
	if (now->what == CELL)
		cell_late();
	else if (now->what != NOTHING)
		session_refused(now, EAGAIN);
	else if (spare_is_wanted())
		spare_make();
	else
		spare_measure();
}

static void
session_on_interrupted(const struct operation *now)
{
	/* The head may have ended just after its copy was reported: the copy is the state. */
	if (cell_waits_for_copy() && now->line >= 0)
		session_on_own_report(now);
	reaper_reap();
	session_check();
}

static _Noreturn void
session_serve(void)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	sigset_t none;

	sigemptyset(&none);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	for (;;) {
		struct operation now = session_now();
		bool busy = now.what != NOTHING;
		struct pollfd poll[3] = {
			{ .fd = now.what == SPARE ? -1 : JAIL_CONTROL, .events = POLLIN },
			{ .fd = busy && slot_head(now.slot).pid > 0
				? slot_head(now.slot).line : -1, .events = POLLIN },
			{ .fd = busy ? now.line : -1, .events = POLLIN },
		};
		int n;

		if (!busy)
			session_settle();
		if (now.what == CELL)
			procfs_tell_uptime();
		stall_rest();
		n = ppoll(poll, 3, session_wait(&now), &none);
		stall_turn();
		if (n < 0) {
			session_on_interrupted(&now);
		} else if (n == 0) {
			session_on_quiet(&now);
		} else if (poll[2].revents != 0) {
			session_on_own_report(&now);
		} else if (poll[1].revents != 0) {
			if (now.what == PREPARING)
				session_on_prepared(now.slot);
			else
				session_on_head_report(&now);
		} else {
			if (frame_reader_read(&reader, JAIL_CONTROL, &frame) != 1)
				_exit(0);
			session_on_message(&now, &frame);
			frame_done(&frame);
		}
	}
}

/* Sets the weight of init, which every snapshot inherits. Init is dumpable for a moment; at this
 * time there is no process that could look into it. */
static void
session_weigh(void)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	slots_weigh(getpid(), WEIGHT_STATE);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Reads PREPARE, which the first head obeys. */
static void
session_take_prepare(struct frame *frame)
{
	struct frame_reader reader;

	frame_reader_init(&reader, FROM_SUPERVISOR);
	if (frame_reader_read(&reader, JAIL_CONTROL, frame) != 1)
		_exit(0);
	if (frame->msg.type != MSG_PREPARE)
		_exit(1);
	frame_reader_done(&reader);
}

void
session_live(const struct jail *jail, uint64_t serial, const struct msg_open *open)
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };
	int line = -1, theirs = -1, out[2], err[2];
	struct frame prepare = { 0 };
	sigset_t child;
	pid_t pid = -1;

	if (open->prepare)
		session_take_prepare(&prepare);
	slots_init(jail->memory_counted, open->alone);
	spare_raise_limit(open->memory_bytes);
	procfs_end_tick();
	session_weigh();
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(err, O_CLOEXEC | O_NONBLOCK) == 0 &&
	    slots_make_line(&line, &theirs) == 0)
		pid = fork();
	if (pid < 0)
		jail_die(JAIL_CONTROL, "a session's first process", errno);
	if (pid == 0) {
		procfs_leave();
		close(line);
		close(out[0]);
		close(err[0]);
		snapshot_live(jail, theirs, (int[2]){ out[1], err[1] }, open, &prepare);
	}
	cell_init((int[2]){ out[0], err[0] });
	close(theirs);
	close(out[1]);
	close(err[1]);
	close_range(STDIN_FILENO, STDERR_FILENO, 0);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &action, NULL);
	slot_exchange(0, (struct head){ .pid = pid, .line = line });
	if (stall_guard(NULL) < 0)
		_exit(1);
	frame_done(&prepare);
	preparing = open->prepare ? serial : 0;
	states_tell_first();
	session_serve();
}
