/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, in any of its threads.
 * Owns:    the turn to ask, and the questions that wait for an answer.
 * Reads:   answers, which only the supervisor sends. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "worker/jail.h"
#include "worker/where.h"

static PyThread_type_lock turn;
static unsigned long holder;	/* the thread that has it; 0: none */
static unsigned int runs;	/* that have begun here */
static __thread struct {
	PyThread_type_lock turn;	/* that this thread has */
	unsigned int run;
} mine;
static uint64_t ask_run_id;
static pid_t ask_run_pid;
static struct question plain;	/* that of the turn, perhaps an abandoned one */
static LIST_HEAD(, question) waiting = LIST_HEAD_INITIALIZER(waiting);
static unsigned long reader;	/* the waiting thread that reads the control socket; 0: none */

static void
ask_wake(struct question *q)
{
	if (!q->waits)
		return;
	q->waits = false;
	PyThread_release_lock(q->wake);
}

void
ask_begin(uint64_t id, bool any)
{
	struct question *q;

	/* A thread of an earlier cell may have the lock, wait, or read; it gives up. In a copy of
	 * the process it does not even exist. */
	if (ask_run_pid == getpid())
		LIST_FOREACH(q, &waiting, link)
			ask_wake(q);
	runs++;
	ask_run_id = any ? id : 0;
	ask_run_pid = getpid();
	LIST_INIT(&waiting);
	plain = (struct question){ .open = false };
	reader = 0;
	holder = 0;
	if (any)
		turn = PyThread_allocate_lock();
	if (any && !turn)
		ask_run_id = 0;
}

uint64_t
ask_run(void)
{
	return getpid() == ask_run_pid ? ask_run_id : 0;
}

bool
ask_is_open(void)
{
	return !LIST_EMPTY(&waiting);
}

/* ---- waiting ---- */

/* Waits for bytes on the control socket. A signal that came before this call is handled, too; it
 * could not interrupt a poll(). Returns as poll(); EINTR: also if a signal's handler has raised an
 * exception. */
static int
poll_control(void)
{
	struct pollfd control = { .fd = JAIL_CONTROL, .events = POLLIN };
	sigset_t all, before;
	int n = -1, error = EINTR;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	if (PyErr_CheckSignals() == 0) {
		Py_BEGIN_ALLOW_THREADS
		n = ppoll(&control, 1, NULL, &before);
		error = errno;
		Py_END_ALLOW_THREADS
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}

/* Waits for bytes; signals are handled meanwhile, as in Python's own reads. -1: an error, or the
 * run is over and the control socket belongs to another one. */
static int
await_bytes(unsigned int run)
{
	for (;;) {
		int n = poll_control(), error = errno;

		if (run != runs)
			return -1;
		if (n >= 0)
			return 0;
		if (error == EINTR && !PyErr_Occurred() && PyErr_CheckSignals() == 0)
			continue;
		return -1;
	}
}

/* Passes the reading of the control socket to another thread, if one waits. */
static void
pass_reading(void)
{
	struct question *q;

	LIST_FOREACH(q, &waiting, link) {
		if (q->waits) {
			ask_wake(q);
			return;
		}
	}
}

/* An answer to a question for which no thread waits any more is dropped. */
static void
ask_deliver(struct frame *frame)
{
	uint32_t number = frame->msg.type == MSG_TOOL_RESULT ? frame->msg.tool_result.number : 0;
	struct question *q;

	LIST_FOREACH(q, &waiting, link)
		if (q->number == number && q->open)
			break;
	if (!q) {
		frame_done(frame);
		return;
	}
	q->answer = *frame;
	q->open = false;
	LIST_REMOVE(q, link);
	ask_wake(q);
}

/* Reads one answer, and gives it to the question that waits for it. 0 or -1. */
static int
read_answer(unsigned int run)
{
	struct frame_reader frames;
	struct frame frame = { 0 };
	int r;

	if (await_bytes(run) < 0)
		return -1;
	frame_reader_init(&frames, FROM_SUPERVISOR);
	Py_BEGIN_ALLOW_THREADS
	r = frame_reader_read(&frames, JAIL_CONTROL, &frame);
	Py_END_ALLOW_THREADS
	frame_reader_done(&frames);
	if (r > 0 && run != runs)
		frame_done(&frame);
	if (r <= 0 || run != runs)
		return -1;
	ask_deliver(&frame);
	return 0;
}

/* Sleeps until the reading thread has the answer, or leaves the reading to this one. */
static int
sleep_until_woken(struct question *q, unsigned int run)
{
	PyLockStatus got;

	if (!q->wake) {
		q->wake = PyThread_allocate_lock();
		if (!q->wake)
			return -1;
		PyThread_acquire_lock(q->wake, WAIT_LOCK);
	}
	q->waits = true;
	Py_BEGIN_ALLOW_THREADS
	got = PyThread_acquire_lock_timed(q->wake, -1, 1);
	Py_END_ALLOW_THREADS
	if (run != runs)
		return -1;
	q->waits = false;
	return got != PY_LOCK_ACQUIRED && PyErr_CheckSignals() < 0 ? -1 : 0;
}

/* Waits for the answer. -1: there are no more answers, the run is over, or the wait was
 * interrupted; then the question stays open. */
static int
await_answer(struct question *q, unsigned int run)
{
	unsigned long self = PyThread_get_thread_ident(), before;
	int r = 0;

	while (r == 0 && run == runs && q->open) {
		if (reader && reader != self) {
			r = sleep_until_woken(q, run);
			continue;
		}
		/* A signal's handler may ask while its thread waits for bytes. */
		before = reader;
		reader = self;
		r = read_answer(run);
		if (run == runs)
			reader = before;
	}
	if (run != runs)
		return -1;
	if (!reader)
		pass_reading();
	return q->open ? -1 : 0;
}

static void
forget_lock(struct question *q)
{
	if (q->wake)
		PyThread_free_lock(q->wake);
	q->wake = NULL;
}

/* ---- questions ---- */

int
question_send(struct question *q, const struct msg *msg, uint32_t number)
{
	int r;

	/* The interpreter's lock is kept: two threads must not write frames at once. */
	where_hold();
	r = frame_send(JAIL_CONTROL, msg, NULL, 0);
	where_release();
	if (r < 0)
		return -1;
	q->run = runs;
	q->number = number;
	q->open = true;
	LIST_INSERT_HEAD(&waiting, q, link);
	return 0;
}

int
question_await(struct question *q, struct frame *frame_r)
{
	int r = await_answer(q, q->run);

	if (r == 0)
		*frame_r = q->answer;
	else if (q->run == runs)
		LIST_REMOVE(q, link);
	else if (!q->open)
		frame_done(&q->answer);
	q->open = false;
	forget_lock(q);
	return r;
}

/* ---- turns ---- */

/* An answer to an abandoned question does not belong to the next one. */
static int
close_abandoned(void)
{
	if (plain.open && await_answer(&plain, mine.run) < 0)
		return -1;
	frame_done(&plain.answer);
	plain.answer = (struct frame){ 0 };
	return 0;
}

int
ask_enter(void)
{
	unsigned long self = PyThread_get_thread_ident();
	PyThread_type_lock own = turn;
	unsigned int run = runs;
	PyLockStatus got;

	if (!ask_run() || holder == self)
		return -1;
	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		got = PyThread_acquire_lock_timed(own, -1, 1);
		Py_END_ALLOW_THREADS
		if (got == PY_LOCK_ACQUIRED)
			break;
		if (PyErr_CheckSignals() < 0)
			return -1;
	}
	mine.turn = own;
	mine.run = run;
	if (run == runs) {
		holder = self;
		if (close_abandoned() == 0)
			return 0;
	}
	ask_leave();
	return -1;
}

void
ask_leave(void)
{
	if (mine.run == runs)
		holder = 0;
	PyThread_release_lock(mine.turn);
}

int
ask(const struct msg *question, struct frame *frame_r)
{
	if (mine.run != runs || question_send(&plain, question, 0) < 0 ||
	    await_answer(&plain, mine.run) < 0)
		return -1;
	*frame_r = plain.answer;
	plain.answer = (struct frame){ 0 };
	return 0;
}
