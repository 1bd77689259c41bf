/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, whenever it displays something.
 * Owns:    the number of the run that the displays belong to. */
#define PY_SSIZE_T_CLEAN
#include "worker/display.h"

#include <sys/types.h>
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

/* The interpreter's lock is kept: two threads must not write frames at once. */
static PyObject *
send_display(PyObject *self, PyObject *args)
{
	struct msg msg = { .type = MSG_DISPLAY, .display.id = display_run_id };
	unsigned int object, kind;
	Py_ssize_t len;
	int r;

	(void)self;
	if (!PyArg_ParseTuple(args, "IIy#", &object, &kind, &msg.display.data.at, &len))
		return NULL;
	msg.display.object = object;
	msg.display.kind = kind;
	msg.display.data.len = (size_t)len;
	/* A process that the script forked has the socket too, but may not use it. */
	if (display_run_id == 0 || getpid() != display_run_pid)
		Py_RETURN_FALSE;
	where_hold();
	r = frame_send(JAIL_CONTROL, &msg, NULL, 0);
	where_release();
	return PyBool_FromLong(r == 0);
}

PyObject *
display_sender(void)
{
	static PyMethodDef method = { "send_display", send_display, METH_VARARGS, NULL };

	return PyCFunction_New(&method, NULL);
}
