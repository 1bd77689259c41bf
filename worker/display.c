/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, whenever it displays something.
 * Owns:    the number of the run that the displays belong to. */
#define PY_SSIZE_T_CLEAN
#include "worker/display.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/frame.h"
#include "worker/jail.h"
#include "worker/where.h"

static uint64_t display_run_id;		/* 0: nothing runs */
static pid_t display_run_pid;

void
display_begin(uint64_t id)
{
	display_run_id = id;
	display_run_pid = getpid();
}

#define PAUSE_NS 50000
#define PAUSES 2000		/* a tenth of a second, and the time that each takes to end */

/* Waits until the other end has read what is in a pipe or, with SIOCOUTQ, in a socket. Not for
 * ever, because a script can put a pipe of its own there. */
static void
await_reader(int fd, unsigned long request)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct stat st;
	int left;

	if (fstat(fd, &st) < 0 || (request == FIONREAD && !S_ISFIFO(st.st_mode)))
		return;
	for (int i = 0; i < PAUSES && ioctl(fd, request, &left) == 0 && left > 0; i++)
		nanosleep(&pause, NULL);
}

/* The supervisor notes how much output it has read when DISPLAY comes, so that readers see the
 * object between the lines before and after it. */
static void
await_output(void)
{
	await_reader(STDOUT_FILENO, FIONREAD);
	await_reader(STDERR_FILENO, FIONREAD);
}

/* The interpreter's lock is kept: two threads must not write frames at once. */
static PyObject *
send_display(PyObject *, PyObject *args)
{
	struct msg msg = { .type = MSG_DISPLAY, .display.id = display_run_id };
	unsigned int object, kind;
	Py_ssize_t len;
	int r;

	if (!PyArg_ParseTuple(args, "IIy#", &object, &kind, &msg.display.data.at, &len))
		return NULL;
	msg.display.object = object;
	msg.display.kind = kind;
	msg.display.data.len = (size_t)len;
	/* A process that the script forked has the socket too, but may not use it. */
	if (display_run_id == 0 || getpid() != display_run_pid)
		Py_RETURN_FALSE;
	await_output();
	where_hold();
	r = frame_send(JAIL_CONTROL, &msg, NULL, 0);
	where_release();
	await_reader(JAIL_CONTROL, SIOCOUTQ);
	return PyBool_FromLong(r == 0);
}

PyObject *
display_sender(void)
{
	static PyMethodDef method = { "send_display", send_display, METH_VARARGS, NULL };

	return PyCFunction_New(&method, NULL);
}
