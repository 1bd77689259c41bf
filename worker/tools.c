/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, in any of its threads.
 * Owns:    the number of the last call, and how many were made.
 * Reads:   TOOL_RESULT, which only the supervisor sends. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/tools.h"

#include "worker/ask.h"

static uint32_t calls_max, number, calls, lists;

void
tools_begin(uint32_t most)
{
	calls_max = most;
	number = calls = lists = 0;
}

static PyObject *
tools_refusal(const char *text)
{
	return Py_BuildValue("(is)", (int)TOOL_REFUSED, text);
}

static PyObject *
ask_once(const struct msg_tool_call *asked)
{
	struct msg msg = { .type = MSG_TOOL_CALL, .tool_call = *asked };
	struct question question = { .open = false };
	const struct msg_tool_result *result;
	struct frame frame = { 0 };
	PyObject *pair = NULL;

	msg.tool_call.id = ask_run();
	if (msg.tool_call.id == 0 || calls_max == 0)
		return tools_refusal("this process cannot call tools: only that of the script itself "
				     "can");
	if (asked->has_tool && calls == calls_max)
		return tools_refusal("this run has made all the calls that [tool-calls] calls allows");
	if (!asked->has_tool && lists == TOOL_LISTS_MAX)
		return tools_refusal("this run has asked too often what tools there are");
	if (asked->has_tool)
		calls++;
	else
		lists++;
	msg.tool_call.number = ++number;
	if (question_send(&question, &msg, msg.tool_call.number) < 0)
		return tools_refusal("the service cannot be asked any more");
	result = &frame.msg.tool_result;
	if (question_await(&question, &frame) == 0 && frame.msg.type == MSG_TOOL_RESULT)
		pair = Py_BuildValue("(Is#)", result->status, result->body.at ? result->body.at : "",
				     (Py_ssize_t)result->body.len);
	else if (!PyErr_Occurred())
		pair = tools_refusal("the service has not answered");
	frame_done(&frame);
	return pair;
}

static bool
tools_take_text(PyObject *text, struct msg_str *str_r, size_t most)
{
	Py_ssize_t len;

	str_r->at = PyUnicode_AsUTF8AndSize(text, &len);
	str_r->len = (size_t)len;
	if (!str_r->at)
		return false;
	if (str_r->len > 0 && str_r->len <= most && !memchr(str_r->at, '\0', str_r->len))
		return true;
	PyErr_SetString(PyExc_ValueError, "a name or the arguments of a tool are too long or empty");
	return false;
}

static PyObject *
ask_tool(PyObject *, PyObject *args)
{
	struct msg_tool_call call = { .has_tool = false };
	PyObject *server, *tool, *arguments;

	if (!PyArg_ParseTuple(args, "UOO", &server, &tool, &arguments) ||
	    !tools_take_text(server, &call.server, TOOL_SERVER_MAX))
		return NULL;
	call.has_tool = call.has_arguments = tool != Py_None;
	if (call.has_tool && (!tools_take_text(tool, &call.tool, TOOL_NAME_MAX) ||
			      !tools_take_text(arguments, &call.arguments, TOOL_ARGUMENTS_MAX)))
		return NULL;
	return ask_once(&call);
}

PyObject *
tools_ask(void)
{
	static PyMethodDef method = { "ask_tool", ask_tool, METH_VARARGS, NULL };

	return PyCFunction_New(&method, NULL);
}
