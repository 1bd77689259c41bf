/* Runs in: a script's process, in input().
 * Owns:    the number of the last prompt.
 * Reads:   ANSWER, which only the supervisor sends. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/prompt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "proto/frame.h"
#include "worker/jail.h"
#include "worker/where.h"

static PyObject *native_input;		/* Python's own */
static PyObject *asking_input;		/* its replacement */
static PyThread_type_lock turn;		/* for threads: one prompt at a time */
static uint64_t run_id;
static pid_t run_pid;
static uint32_t prompts_left;
static uint32_t number;
static bool is_open;			/* the last prompt has no answer yet */

/* A process that the script forked has the socket too, but may not ask. */
static bool
may_ask(void)
{
	return prompts_left > 0 && getpid() == run_pid;
}

/* ---- the exchange ---- */

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

/* Waits for bytes; signals are handled meanwhile, as in Python's own reads. After a
 * KeyboardInterrupt no further prompt is sent: a cell that is cancelled gets one. */
static int
await_bytes(void)
{
	for (;;) {
		if (poll_control() >= 0)
			return 0;
		if (errno == EINTR && !PyErr_Occurred() && PyErr_CheckSignals() == 0)
			continue;
		if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
			prompts_left = 0;
		return -1;
	}
}

/* The answer to the open prompt: a line (new), or NULL, without an exception if the user gave no
 * line. A prompt whose wait was interrupted stays open, and is waited for again. */
static PyObject *
await_answer(void)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	PyObject *line = NULL;
	int r;

	if (await_bytes() < 0)
		return NULL;
	is_open = false;
	frame_reader_init(&reader, FROM_SUPERVISOR);
	Py_BEGIN_ALLOW_THREADS
	r = frame_reader_read(&reader, JAIL_CONTROL, &frame);
	Py_END_ALLOW_THREADS
	frame_reader_done(&reader);
	if (r > 0 && frame.msg.type == MSG_ANSWER && frame.msg.answer.number == number &&
	    frame.msg.answer.has_line)
		line = PyUnicode_DecodeUTF8(frame.msg.answer.line.at,
					    (Py_ssize_t)frame.msg.answer.line.len, NULL);
	frame_done(&frame);
	return line;
}

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

static PyObject *
exchange(PyObject *prompt)
{
	struct msg msg = { .type = MSG_PROMPT, .prompt.id = run_id };
	char text[PROMPT_MAX];
	int r;

	/* An answer to an abandoned prompt does not belong to this one. */
	while (is_open && may_ask()) {
		Py_XDECREF(await_answer());
		if (PyErr_Occurred())
			return NULL;
	}
	if (!may_ask() || fill_text(prompt, text, &msg.prompt.text) < 0)
		return NULL;
	prompts_left--;
	msg.prompt.number = ++number;
	/* The interpreter's lock is kept: two threads must not write frames at once. */
	where_hold();
	r = frame_send(JAIL_CONTROL, &msg, NULL, 0);
	where_release();
	if (r < 0)
		return NULL;
	is_open = true;
	return await_answer();
}

/* One thread after the other. */
static PyObject *
ask(PyObject *prompt)
{
	PyLockStatus got;
	PyObject *line;

	for (;;) {
		Py_BEGIN_ALLOW_THREADS
		got = PyThread_acquire_lock_timed(turn, -1, 1);
		Py_END_ALLOW_THREADS
		if (got == PY_LOCK_ACQUIRED)
			break;
		if (PyErr_CheckSignals() < 0)
			return NULL;
	}
	line = exchange(prompt);
	PyThread_release_lock(turn);
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
input(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
	PyObject *prompt = NULL, *line;

	(void)self;
	if (n != 1 && n != 0)
		return PyObject_Vectorcall(native_input, args, (size_t)n, NULL);
	if (n == 1 && !(prompt = PyObject_Str(args[0])))
		return NULL;
	line = PyObject_Vectorcall(native_input, &prompt, (size_t)n, NULL);
	if (!line && PyErr_ExceptionMatches(PyExc_EOFError) && may_ask() &&
	    reads_given_input()) {
		PyErr_Clear();
		line = ask(prompt);
		if (!line && !PyErr_Occurred())
			PyErr_SetString(PyExc_EOFError, "EOF when reading a line");
	}
	Py_XDECREF(prompt);
	return line;
}

bool
prompt_is_open(void)
{
	return is_open;
}

int
prompt_prepare(void)
{
	static PyMethodDef method = {
		"input", (PyCFunction)(void (*)(void))input, METH_FASTCALL,
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
prompt_begin(uint64_t id, uint32_t prompts)
{
	PyObject *builtins = PyEval_GetBuiltins(), *wanted, *now;

	run_id = id;
	run_pid = getpid();
	prompts_left = prompts;
	number = 0;
	is_open = false;
	wanted = prompts > 0 ? asking_input : native_input;
	now = PyDict_GetItemString(builtins, "input");
	/* A cell's process is a copy: a thread of the original may have held the lock. */
	if (prompts > 0)
		turn = PyThread_allocate_lock();
	if (prompts > 0 && !turn)
		prompts_left = 0;
	if (now != wanted && (now == native_input || now == asking_input) &&
	    PyDict_SetItemString(builtins, "input", wanted) < 0)
		PyErr_Clear();
}
