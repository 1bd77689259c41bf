/* Runs in: a script's process, in any of its threads.
 * Owns:    the turn to ask.
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
static uint64_t run_id;
static pid_t run_pid;
static bool is_open;		/* the last question has no answer yet */

void
ask_begin(uint64_t id, bool any)
{
	run_id = any ? id : 0;
	run_pid = getpid();
	is_open = false;
	holder = 0;
	/* A cell's process is a copy: a thread of the original may have held the lock. */
	if (any)
		turn = PyThread_allocate_lock();
	if (any && !turn)
		run_id = 0;
}

uint64_t
ask_run(void)
{
	return getpid() == run_pid ? run_id : 0;
}

bool
ask_is_open(void)
{
	return is_open;
}

/* As poll() of the control socket, but also ends for a signal that came before the call: the
 * answer may be quicker than the wait. */
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

/* Waits for bytes; signals are handled meanwhile, as in Python's own reads. */
static int
await_bytes(void)
{
	for (;;) {
		if (poll_control() >= 0)
			return 0;
		if (errno == EINTR && !PyErr_Occurred() && PyErr_CheckSignals() == 0)
			continue;
		return -1;
	}
}

/* The answer to the open question. A question whose wait was interrupted stays open, and is
 * waited for again. */
static int
await_answer(struct frame *frame_r)
{
	struct frame_reader reader;
	int r;

	if (await_bytes() < 0)
		return -1;
	is_open = false;
	frame_reader_init(&reader, FROM_SUPERVISOR);
	Py_BEGIN_ALLOW_THREADS
	r = frame_reader_read(&reader, JAIL_CONTROL, frame_r);
	Py_END_ALLOW_THREADS
	frame_reader_done(&reader);
	return r > 0 ? 0 : -1;
}

/* An answer to an abandoned question does not belong to the next one. */
static int
close_abandoned(void)
{
	while (is_open) {
		struct frame frame = { 0 };
		int r = await_answer(&frame);

		frame_done(&frame);
		if (r < 0 && is_open)
			return -1;
	}
	return 0;
}

int
ask_enter(void)
{
	unsigned long self = PyThread_get_thread_ident();
	PyLockStatus got;

	if (!ask_run() || holder == self)
		return -1;
	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		got = PyThread_acquire_lock_timed(turn, -1, 1);
		Py_END_ALLOW_THREADS
		if (got == PY_LOCK_ACQUIRED)
			break;
		if (PyErr_CheckSignals() < 0)
			return -1;
	}
	holder = self;
	if (close_abandoned() == 0)
		return 0;
	ask_leave();
	return -1;
}

void
ask_leave(void)
{
	holder = 0;
	PyThread_release_lock(turn);
}

int
ask(const struct msg *question, struct frame *frame_r)
{
	int r;

	/* The interpreter's lock is kept: two threads must not write frames at once. */
	where_hold();
	r = frame_send(JAIL_CONTROL, question, NULL, 0);
	where_release();
	if (r < 0)
		return -1;
	is_open = true;
	return await_answer(frame_r);
}
