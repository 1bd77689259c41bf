/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, whenever a stream of the interpreter is written to or flushed.
 * Owns:    the stream that was written to last; which threads are of earlier cells. */
#define PY_SSIZE_T_CLEAN
#include "worker/turns.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOKS_MAX 60			/* for one turn */
#define LOOK_NS 20000			/* between two looks */
#define CLOSED_LOOKS 1000
#define CLOSED_LOOK_NS 1000000

static PyObject *file_write;		/* _io.FileIO.write */
static PyObject *buffered_write, *buffered_flush, *buffered_close;	/* _io.BufferedWriter's */
static PyObject *last;			/* the stream written to last; borrowed, compared only */
static int last_fd;
static unsigned int writing, stale;	/* threads in a stream's functions, since the last close
					 * or before */
static unsigned int closes;
static int patience = 64;		/* how often the reader may be late before the writer
					 * stops waiting for it */

/* ---- threads of earlier cells ---- */

/* An interpreter numbers its threads in the order in which they begin. */
static bool divided;
static uint64_t own_thread, newest_thread;	/* of the cell; of the earlier ones */

static struct background {
	int fd;			/* where the threads write */
	struct stat is, was;	/* the files of both descriptors of the stream, at the beginning */
} background[2];		/* by the descriptor of the stream, 1 or 2, less 1 */

void
turns_divide(void)
{
	PyThreadState *own = PyThreadState_Get(), *one;

	divided = true;
	own_thread = newest_thread = PyThreadState_GetID(own);
	for (one = PyInterpreterState_ThreadHead(PyThreadState_GetInterpreter(own)); one;
	     one = PyThreadState_Next(one))
		if (PyThreadState_GetID(one) > newest_thread)
			newest_thread = PyThreadState_GetID(one);
}

void
turns_rest(void)
{
	newest_thread = UINT64_MAX;
	own_thread = 0;
}

int
turns_background(int out, int err)
{
	background[0].fd = out;
	background[1].fd = err;
	for (int i = 0; i < 2; i++)
		if (fstat(background[i].fd, &background[i].is) < 0 ||
		    fstat(i + 1, &background[i].was) < 0)
			return -1;
	return 0;
}

static bool
turns_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The place where the calling thread's output goes instead of to this descriptor. NULL: the output
 * goes to the descriptor, as it also does if a script has put another file there. */
static const struct background *
elsewhere(long fd)
{
	const struct background *to;
	struct stat now;
	uint64_t self;

	if (!divided || fd < 1 || fd > 2)
		return NULL;
	self = PyThreadState_GetID(PyThreadState_Get());
	if (self == own_thread || self > newest_thread)
		return NULL;
	to = &background[fd - 1];
	return fstat((int)fd, &now) == 0 &&
	       (turns_is_same(&now, &to->is) || turns_is_same(&now, &to->was)) ? to : NULL;
}

/* Output that does not fit into the pipe is lost: the pipe is read only for the next answer, so no
 * writer may wait for that. */
static PyObject *
write_elsewhere(const struct background *to, PyObject *data)
{
	Py_buffer bytes;
	Py_ssize_t len;

	if (PyObject_GetBuffer(data, &bytes, PyBUF_SIMPLE) < 0)
		return NULL;
	len = bytes.len;
	/* What is not written is lost. */
	if (len > 0 && write(to->fd, bytes.buf, (size_t)len) < 0)
		errno = 0;
	PyBuffer_Release(&bytes);
	return PyLong_FromSsize_t(len);
}

/* The descriptor of a stream's layer; -1: it is closed, detached, or not a file. */
static long
descriptor_of(PyObject *layer)
{
	PyObject *fileno = PyObject_CallMethod(layer, "fileno", NULL);
	long fd = fileno ? PyLong_AsLong(fileno) : -1;

	Py_XDECREF(fileno);
	PyErr_Clear();
	return fd;
}

/* Counts the threads that are in a function of a stream. */
static unsigned int
turns_enter(void)
{
	writing++;
	return closes;
}

static void
turns_leave(unsigned int entered)
{
	if (entered == closes)
		writing--;
	else
		stale--;
}

/* ---- the raw layer ---- */

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

/* If the script has last written to the other stream, waits until that output was read, for a
 * bounded time. */
static void
take_turn(PyObject *self, long fd)
{
	if (self == last)
		return;
	if (last && patience > 0) {
		int other = last_fd;

		Py_BEGIN_ALLOW_THREADS
		wait_until_read(other);
		Py_END_ALLOW_THREADS
	}
	last = self;
	last_fd = (int)fd;
}

static PyObject *
turns_write(PyObject *self, PyObject *data)
{
	/* For a closed stream the code below raises the error. */
	long fd = divided || self != last ? descriptor_of(self) : last_fd;
	const struct background *to = elsewhere(fd);
	unsigned int entered;
	PyObject *written;

	if (to)
		return write_elsewhere(to, data);
	entered = turns_enter();
	take_turn(self, fd);
	written = PyObject_CallFunctionObjArgs(file_write, self, data, NULL);
	turns_leave(entered);
	return written;
}

/* ---- the buffer above it ---- */

/* A thread of an earlier cell never takes the lock of the buffer, and leaves nothing in it. */
static PyObject *
buffer_write(PyObject *self, PyObject *data)
{
	const struct background *to = divided ? elsewhere(descriptor_of(self)) : NULL;
	unsigned int entered;
	PyObject *written;

	if (to)
		return write_elsewhere(to, data);
	entered = turns_enter();
	written = PyObject_CallFunctionObjArgs(buffered_write, self, data, NULL);
	turns_leave(entered);
	return written;
}

static PyObject *
buffer_flush(PyObject *self, PyObject *)
{
	unsigned int entered;
	PyObject *flushed;

	if (divided && elsewhere(descriptor_of(self)))
		Py_RETURN_NONE;
	entered = turns_enter();
	flushed = PyObject_CallFunctionObjArgs(buffered_flush, self, NULL);
	turns_leave(entered);
	return flushed;
}

/* In a session the stream stays, for the cells to come: what is closed is only flushed. */
static PyObject *
buffer_close(PyObject *self, PyObject *none)
{
	if (background[0].fd > 0)
		return buffer_flush(self, none);
	return PyObject_CallFunctionObjArgs(buffered_close, self, NULL);
}

/* ---- between cells ---- */

bool
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
	return stale == 0;
}

bool
turns_forked(void)
{
	bool some = writing + stale > 0;

	writing = stale = 0;
	return some;
}

/* ---- the types ---- */

/* A type of this name in the module _io, with methods in place of its own. */
static PyObject *
turns_subtype(PyObject *base, const char *name, PyMethodDef *methods)
{
	PyType_Slot slots[] = {
		{ Py_tp_methods, methods },
		{ 0, NULL },
	};
	PyType_Spec spec = {
		.name = name,
		.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
		.slots = slots,
	};

	return PyType_FromSpecWithBases(&spec, base);
}

PyObject *
turns_type(void)
{
	static PyMethodDef methods[] = {
		{ "write", turns_write, METH_O, NULL },
		{ NULL, NULL, 0, NULL },
	};
	PyObject *io = PyImport_ImportModule("_io"), *base = NULL, *type = NULL;

	if (io)
		base = PyObject_GetAttrString(io, "FileIO");
	if (base)
		file_write = PyObject_GetAttrString(base, "write");
	if (file_write)
		type = turns_subtype(base, "_io.FileIO", methods);
	Py_XDECREF(io);
	Py_XDECREF(base);
	return type;
}

PyObject *
turns_buffer_type(void)
{
	static PyMethodDef methods[] = {
		{ "write", buffer_write, METH_O, NULL },
		{ "flush", buffer_flush, METH_NOARGS, NULL },
		{ "close", buffer_close, METH_NOARGS, NULL },
		{ NULL, NULL, 0, NULL },
	};
	PyObject *io = PyImport_ImportModule("_io"), *base = NULL, *type = NULL;

	if (io)
		base = PyObject_GetAttrString(io, "BufferedWriter");
	if (base)
		buffered_write = PyObject_GetAttrString(base, "write");
	if (buffered_write)
		buffered_flush = PyObject_GetAttrString(base, "flush");
	if (buffered_flush)
		buffered_close = PyObject_GetAttrString(base, "close");
	if (buffered_close)
		type = turns_subtype(base, "_io.BufferedWriter", methods);
	Py_XDECREF(io);
	Py_XDECREF(base);
	return type;
}
