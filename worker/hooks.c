/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote while it imports modules; each process of a worker, at forks.
 * Owns:    the list of the functions that workers do without. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/hooks.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* Modules whose functions only clean up after other threads, and may be called any number of
 * times. */
static const char *const about_threads[] = { "threading", "logging", "concurrent.futures.thread" };

static PyObject *real;		/* os.register_at_fork */
static PyObject *in_child;	/* a list of what was registered for the child */
static bool is_born;

/* Calls self, the function that a module has registered. Does nothing before hooks_born(). */
static PyObject *
at_fork(PyObject *self, PyObject *)
{
	return is_born ? PyObject_CallNoArgs(self) : Py_NewRef(Py_None);
}

static PyObject *
hooks_wrap(PyObject *function)
{
	static PyMethodDef method = { "at_fork", at_fork, METH_NOARGS, NULL };

	return PyCFunction_New(&method, function);
}

/* Does the code that is running belong to one of these modules? */
static bool
is_about_threads(void)
{
	PyObject *names = PyEval_GetGlobals();
	PyObject *name = names ? PyDict_GetItemString(names, "__name__") : NULL;

	for (size_t i = 0; i < sizeof(about_threads) / sizeof(about_threads[0]); i++)
		if (name && PyUnicode_Check(name) &&
		    PyUnicode_CompareWithASCIIString(name, about_threads[i]) == 0)
			return true;
	return false;
}

/* The arguments with wrapped functions, or NULL. */
static PyObject *
wrap_all(PyObject *kwargs)
{
	PyObject *wrapped = PyDict_New(), *key, *function;
	Py_ssize_t at = 0;

	while (wrapped && PyDict_Next(kwargs, &at, &key, &function)) {
		PyObject *wrapper = hooks_wrap(function);
		bool is_childs = PyUnicode_CompareWithASCIIString(key, "after_in_child") == 0;

		if (!wrapper || PyDict_SetItem(wrapped, key, wrapper) < 0 ||
		    (is_childs && PyList_Append(in_child, function) < 0))
			Py_CLEAR(wrapped);
		Py_XDECREF(wrapper);
	}
	return wrapped;
}

static PyObject *
hooks_register(PyObject *, PyObject *args, PyObject *kwargs)
{
	PyObject *wrapped, *result;

	if (!kwargs || !is_about_threads())
		return PyObject_Call(real, args, kwargs);
	wrapped = wrap_all(kwargs);
	result = wrapped ? PyObject_Call(real, args, wrapped) : NULL;
	Py_XDECREF(wrapped);
	return result;
}

static int
set_register(PyObject *function)
{
	PyObject *os = PyImport_ImportModule("os");
	int r = os ? PyObject_SetAttrString(os, "register_at_fork", function) : -1;

	Py_XDECREF(os);
	return r;
}

int
hooks_watch(void)
{
	static PyMethodDef method = { "register_at_fork",
				      (PyCFunction)(void (*)(void))hooks_register,
				      METH_VARARGS | METH_KEYWORDS, NULL };
	PyObject *os = PyImport_ImportModule("os");
	PyObject *register_wrapper = PyCFunction_New(&method, NULL);
	int r = -EIO;

	real = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
	in_child = PyList_New(0);
	if (real && in_child && register_wrapper && set_register(register_wrapper) == 0)
		r = 0;
	Py_XDECREF(os);
	Py_XDECREF(register_wrapper);
	return r;
}

static PyObject *
hooks_settle(PyObject *, PyObject *)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(in_child); i++) {
		PyObject *result = PyObject_CallNoArgs(PyList_GET_ITEM(in_child, i));

		/* As CPython does after a fork. */
		if (!result)
			PyErr_WriteUnraisable(PyList_GET_ITEM(in_child, i));
		Py_XDECREF(result);
	}
	Py_CLEAR(in_child);
	return set_register(real) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *
hooks_settler(void)
{
	static PyMethodDef method = { "settle_hooks", hooks_settle, METH_NOARGS, NULL };

	return PyCFunction_New(&method, NULL);
}

/* ---- audit events ---- */

static PyObject *watcher;	/* called with the name of an event; NULL: nobody is */

/* An audit hook stays for as long as the process lives. Only events of sockets, threads and
 * new audit hooks go to Python. */
static int
on_event(const char *event, PyObject *, void *)
{
	PyObject *call = watcher, *result;

	if (!call || (strncmp(event, "socket.", 7) != 0 && strncmp(event, "_thread.", 8) != 0 &&
		      strcmp(event, "sys.addaudithook") != 0))
		return 0;
	watcher = NULL;		/* not for its own events */
	result = PyObject_CallFunction(call, "s", event);
	watcher = call;
	Py_XDECREF(result);
	return result ? 0 : -1;
}

static PyObject *
watch_events(PyObject *, PyObject *call)
{
	static bool is_hooked;

	if (!is_hooked && PySys_AddAuditHook(on_event, NULL) < 0)
		return NULL;
	is_hooked = true;
	Py_CLEAR(watcher);
	if (call != Py_None)
		watcher = Py_NewRef(call);
	Py_RETURN_NONE;
}

PyObject *
hooks_event_watcher(void)
{
	static PyMethodDef method = { "watch_events", watch_events, METH_O, NULL };

	return PyCFunction_New(&method, NULL);
}

/* ---- signals ---- */

static PyObject *
signal_actions(PyObject *, PyObject *)
{
	struct { void (*handler)(int); int flags, unused; } actions[NSIG] = { 0 };
	struct sigaction action;

	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &action) == 0) {
			actions[s].handler = action.sa_handler;
			/* Those of a signal without a handler have no effect. */
			if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
				actions[s].flags = action.sa_flags;
		}
	return PyBytes_FromStringAndSize((const char *)actions, sizeof(actions));
}

PyObject *
hooks_signal_actions(void)
{
	static PyMethodDef method = { "signal_actions", signal_actions, METH_NOARGS, NULL };

	return PyCFunction_New(&method, NULL);
}

void
hooks_born(void)
{
	is_born = true;
}
