/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a script's process, in input().
 * Owns:    the number of the last prompt.
 * Reads:   ANSWER, which only the supervisor sends. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/prompt.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "worker/ask.h"

static PyObject *native_input;		/* Python's own */
static PyObject *asking_input;		/* its replacement */
static uint32_t prompts_left;
static uint32_t prompt_number;

static bool
prompt_may_ask(void)
{
	return prompts_left > 0 && ask_run() != 0;
}

/* ---- the exchange ---- */

/* Encodes the prompt for a message: UTF-8 without NUL, cut at the bound. */
static int
fill_text(PyObject *prompt, char text[PROMPT_MAX], struct msg_str *text_r)
{
	PyObject *bytes = NULL;
	size_t len = 0;

	if (prompt)
		bytes = PyUnicode_AsEncodedString(prompt, "utf-8", "replace");
	if (prompt && !bytes)
		return -1;
	if (bytes) {
		len = (size_t)PyBytes_GET_SIZE(bytes);
		memcpy(text, PyBytes_AS_STRING(bytes), len < PROMPT_MAX ? len : PROMPT_MAX);
		Py_DECREF(bytes);
	}
	if (len > PROMPT_MAX)
		len = PROMPT_MAX - utf8_begun(text, PROMPT_MAX);
	for (size_t i = 0; i < len; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	*text_r = (struct msg_str){ .at = text, .len = len };
	return 0;
}

/* The answer: a line (new), or NULL, without an exception if the user gave no line. The caller has
 * the turn. */
static PyObject *
prompt_exchange(PyObject *prompt)
{
	struct msg msg = { .type = MSG_PROMPT, .prompt.id = ask_run() };
	const struct msg_answer *answer;
	struct frame frame = { 0 };
	char text[PROMPT_MAX];
	PyObject *line = NULL;

	if (!prompt_may_ask() || fill_text(prompt, text, &msg.prompt.text) < 0)
		return NULL;
	prompts_left--;
	msg.prompt.number = ++prompt_number;
	answer = &frame.msg.answer;
	if (ask(&msg, &frame) == 0 && frame.msg.type == MSG_ANSWER &&
	    answer->number == msg.prompt.number && answer->has_line)
		line = PyUnicode_DecodeUTF8(answer->line.at, (Py_ssize_t)answer->line.len, NULL);
	frame_done(&frame);
	return line;
}

static PyObject *
ask_user(PyObject *prompt)
{
	PyObject *line = NULL;

	if (ask_enter() == 0) {
		line = prompt_exchange(prompt);
		ask_leave();
	}
	/* A cell that is cancelled gets one: then no further prompt is sent. */
	if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
		prompts_left = 0;
	return line;
}

/* ---- input() ---- */

/* Is standard input still the run's own? A script that has replaced it wants its replacement. */
static bool
reads_given_input(void)
{
	PyObject *in = PySys_GetObject("stdin");

	return in && in != Py_None && in == PySys_GetObject("__stdin__");
}

static PyObject *
prompt_input(PyObject *, PyObject *const *args, Py_ssize_t n)
{
	PyObject *prompt = NULL, *line;

	if (n != 1 && n != 0)
		return PyObject_Vectorcall(native_input, args, (size_t)n, NULL);
	if (n == 1 && !(prompt = PyObject_Str(args[0])))
		return NULL;
	line = PyObject_Vectorcall(native_input, &prompt, (size_t)n, NULL);
	if (!line && PyErr_ExceptionMatches(PyExc_EOFError) && prompt_may_ask() &&
	    reads_given_input()) {
		PyErr_Clear();
		line = ask_user(prompt);
		if (!line && !PyErr_Occurred())
			PyErr_SetString(PyExc_EOFError, "EOF when reading a line");
	}
	Py_XDECREF(prompt);
	return line;
}

int
prompt_prepare(void)
{
	static PyMethodDef method = {
		"input", (PyCFunction)(void (*)(void))prompt_input, METH_FASTCALL,
		"input(prompt='', /)\n--\n\n"
		"Read a line from standard input, or, when there is none, from the user.\n\n"
		"The trailing newline is stripped. Raises EOFError when the user gives no line."
	};
	PyObject *module = PyUnicode_FromString("builtins");

	native_input = PyDict_GetItemString(PyEval_GetBuiltins(), "input");
	asking_input = module ? PyCFunction_NewEx(&method, NULL, module) : NULL;
	Py_XDECREF(module);
	if (!native_input || !asking_input)
		return -EIO;
	Py_INCREF(native_input);
	return 0;
}

void
prompt_begin(uint32_t prompts)
{
	PyObject *builtins = PyEval_GetBuiltins(), *wanted, *now;

	prompts_left = prompts;
	prompt_number = 0;
	wanted = prompts > 0 ? asking_input : native_input;
	now = PyDict_GetItemString(builtins, "input");
	if (now != wanted && (now == native_input || now == asking_input) &&
	    PyDict_SetItemString(builtins, "input", wanted) < 0)
		PyErr_Clear();
}
