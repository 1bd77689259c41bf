/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, in an import.
 * Owns:    the number of the last question.
 * Reads:   MODULE_ANSWER, which only the supervisor sends. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/modules.h"

#include "worker/ask.h"

static uint32_t modules_left, modules_number;

void
modules_begin(uint32_t modules)
{
	modules_left = modules;
	modules_number = 0;
}

static PyObject *
may_ask(PyObject *, PyObject *)
{
	return PyBool_FromLong(modules_left > 0 && ask_run() != 0);
}

/* Asks for a module. True: a set of packages that has it is mounted. The caller has the turn to
 * ask. */
static bool
modules_exchange(const char *name, size_t len)
{
	struct msg msg = { .type = MSG_MODULE, .module = { .id = ask_run(),
							   .name = { name, len } } };
	struct frame frame = { 0 };
	bool mounted = false;

	if (modules_left == 0 || msg.module.id == 0)
		return false;
	modules_left--;
	msg.module.number = ++modules_number;
	if (ask(&msg, &frame) == 0)
		mounted = frame.msg.type == MSG_MODULE_ANSWER &&
			  frame.msg.module_answer.number == msg.module.number &&
			  frame.msg.module_answer.mounted;
	frame_done(&frame);
	return mounted;
}

static PyObject *
ask_module(PyObject *, PyObject *name)
{
	const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
	bool mounted = false;

	if (!text && !PyErr_Occurred())
		return PyErr_Format(PyExc_TypeError, "a module's name has to be a string");
	if (text && strlen(text) > 0 && strlen(text) <= MODULE_NAME_MAX && ask_enter() == 0) {
		mounted = modules_exchange(text, strlen(text));
		ask_leave();
	}
	return PyErr_Occurred() ? NULL : PyBool_FromLong(mounted);
}

PyObject *
modules_may_ask(void)
{
	static PyMethodDef method = { "may_ask_module", may_ask, METH_NOARGS, NULL };

	return PyCFunction_New(&method, NULL);
}

PyObject *
modules_ask(void)
{
	static PyMethodDef method = { "ask_module", ask_module, METH_O, NULL };

	return PyCFunction_New(&method, NULL);
}
