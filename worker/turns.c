/* Runs in: a script's process, whenever a stream of the interpreter is flushed.
 * Owns:    the stream that was written to last. */
#define PY_SSIZE_T_CLEAN
#include "worker/turns.h"

#include <sys/ioctl.h>
#include <time.h>

#define LOOKS_MAX 60			/* for one turn */
#define LOOK_NS 20000			/* between two looks */
#define CLOSED_LOOKS 1000
#define CLOSED_LOOK_NS 1000000

static PyObject *file_write;		/* _io.FileIO.write */
static PyObject *last;			/* the stream written to last; borrowed, compared only */
static int last_fd;
static unsigned int writing, stale;	/* threads in turns_write(), since the last close or
					 * before */
static unsigned int closes;
static int patience = 64;		/* how often the reader may be late before the writer
					 * stops waiting for it */

static void
wait_until_read(int fd)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int waiting;

	for (int i = 0; i < LOOKS_MAX; i++) {
		/* The script has closed it, or replaced it by another file. */
		if (ioctl(fd, FIONREAD, &waiting) < 0) {
			patience = 0;
			return;
		}
		if (waiting == 0)
			return;
		nanosleep(&pause, NULL);
	}
	patience--;
}

static PyObject *
turns_write(PyObject *self, PyObject *data)
{
	unsigned int seen = closes;
	PyObject *written;

	writing++;
	if (self != last) {
		PyObject *fileno = PyObject_CallMethod(self, "fileno", NULL);
		long fd = fileno ? PyLong_AsLong(fileno) : -1;

		Py_XDECREF(fileno);
		/* For a closed stream the code below raises the error. */
		PyErr_Clear();
		if (last && patience > 0) {
			int other = last_fd;

			Py_BEGIN_ALLOW_THREADS
			wait_until_read(other);
			Py_END_ALLOW_THREADS
		}
		last = self;
		last_fd = (int)fd;
	}
	written = PyObject_CallFunctionObjArgs(file_write, self, data, NULL);
	if (seen == closes)
		writing--;
	else
		stale--;
	return written;
}

void
turns_closed(void)
{
	const struct timespec pause = { .tv_nsec = CLOSED_LOOK_NS };

	closes++;
	stale += writing;
	writing = 0;
	for (int i = 0; stale > 0 && i < CLOSED_LOOKS; i++) {
		Py_BEGIN_ALLOW_THREADS
		nanosleep(&pause, NULL);
		Py_END_ALLOW_THREADS
	}
}

bool
turns_forked(void)
{
	bool some = writing + stale > 0;

	writing = stale = 0;
	return some;
}

PyObject *
turns_type(void)
{
	static PyMethodDef methods[] = {
		{ "write", turns_write, METH_O, NULL },
		{ NULL, NULL, 0, NULL },
	};
	static PyType_Slot slots[] = {
		{ Py_tp_methods, methods },
		{ 0, NULL },
	};
	static PyType_Spec spec = {
		.name = "_io.FileIO",
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
		.slots = slots,
	};
	PyObject *io = PyImport_ImportModule("_io"), *base = NULL, *type = NULL;

	if (io)
		base = PyObject_GetAttrString(io, "FileIO");
	if (base)
		file_write = PyObject_GetAttrString(base, "write");
	if (file_write)
		type = PyType_FromSpecWithBases(&spec, base);
	Py_XDECREF(io);
	Py_XDECREF(base);
	return type;
}
