/* SPDX-License-Identifier: Apache-2.0 */
/* The two standard streams taking turns. The C library's nanosleep() is replaced by one
 * that lets a reader read, so that what depends on time in a worker depends on nothing
 * here. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/turns.h"

static struct {
	unsigned int looks;	/* times that a writer waited */
	unsigned int read_at;	/* the look at which the reader reads; 0: never */
	bool other_was_empty;	/* nothing of the other stream was there by then */
} reader;

static int out[2], err[2];
static PyObject *names;

static bool
is_empty(int fd)
{
	char c;

	/* Read and lost: only asked where a byte would fail the test. */
	return read(fd, &c, 1) < 0;
}

static void
drain(int fd)
{
	char bytes[4096];

	while (read(fd, bytes, sizeof(bytes)) > 0)
		;
}

int
nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	if (++reader.looks == reader.read_at) {
		reader.other_was_empty = is_empty(err[0]);
		drain(out[0]);
	}
	return 0;
}

/* Runs Python; false when it raised. */
static bool
python(const char *code)
{
	PyObject *result = PyRun_String(code, Py_file_input, names, names);

	if (!result)
		PyErr_Clear();
	Py_XDECREF(result);
	return result != NULL;
}

static int
start(void **state)
{
	PyObject *type, *buffer;
	char code[256];

	(void)state;
	Py_InitializeEx(0);
	type = turns_type();
	buffer = turns_buffer_type();
	names = PyDict_New();
	if (!type || !buffer || pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 ||
	    pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins());
	PyDict_SetItemString(names, "Turn", type);
	PyDict_SetItemString(names, "Buffer", buffer);
	Py_DECREF(type);
	Py_DECREF(buffer);
	snprintf(code, sizeof(code),
		 "import io\nout = Turn(%d, 'wb', closefd=False)\n"
		 "err = Turn(%d, 'wb', closefd=False)\n", out[1], err[1]);
	return python(code) ? 0 : -1;
}

static int
stop(void **state)
{
	(void)state;
	Py_CLEAR(names);
	return Py_FinalizeEx();
}

/* Both pipes empty, and out written to last. */
static int
fresh(void **state)
{
	(void)state;
	reader.read_at = 0;
	python("out.write(b'x')");
	drain(out[0]);
	drain(err[0]);
	memset(&reader, 0, sizeof(reader));
	return 0;
}

static void
it_is_a_file(void **state)
{
	(void)state;
	assert_true(python("assert issubclass(Turn, io.FileIO)\n"
			   "assert Turn.__name__ == 'FileIO' and Turn.__module__ == '_io'\n"
			   "assert out.write(b'abc') == 3 and out.write(b'') == 0\n"
			   "assert out.write(memoryview(b'de')) == 2\n"
			   "assert io.BufferedWriter(out).detach() is out\n"));
	assert_true(python("try: out.write('text')\nexcept TypeError: pass\nelse: 1/0\n"));
}

static void
a_full_pipe_is_told(void **state)
{
	(void)state;
	assert_true(python("while out.write(b'x' * 4096) is not None: pass\n"));
	assert_int_equal(reader.looks, 0);
}

static void
one_stream_never_waits(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(python("out.write(b'line')"));
	assert_int_equal(reader.looks, 0);
}

static void
the_other_waits_until_it_was_read(void **state)
{
	(void)state;
	reader.read_at = 3;
	assert_true(python("out.write(b'first'); err.write(b'second')"));
	assert_int_equal(reader.looks, 3);
	assert_true(reader.other_was_empty);
	assert_false(is_empty(err[0]));
}

static void
what_was_read_already_needs_no_wait(void **state)
{
	(void)state;
	assert_true(python("out.write(b'first')"));
	drain(out[0]);
	assert_true(python("err.write(b'second')"));
	assert_int_equal(reader.looks, 0);
}

/* In a process of its own, whose standard output is the pipe. */
static void
threads_of_earlier_cells_write_elsewhere(void **state)
{
	int background[2], status;
	char text[64] = "";
	pid_t pid;

	(void)state;
	assert_return_code(pipe2(background, O_CLOEXEC | O_NONBLOCK), errno);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dup2(out[1], 1) < 0 || turns_background(background[1], background[1]) < 0 ||
		    !python("import threading\n"
			    "text = io.TextIOWrapper(Buffer(Turn(1, 'wb', closefd=False)), 'utf-8',\n"
			    "                        line_buffering=True, write_through=True)\n"
			    "go, done = threading.Event(), threading.Event()\n"
			    "def later():\n"
			    "    go.wait()\n"
			    "    text.write('half of ')\n    text.write('a line')\n"
			    "    text.buffer.raw.write(b'!')\n    text.buffer.flush()\n"
			    "    done.set()\n"
			    "threading.Thread(target=later).start()\n"))
			_exit(1);
		turns_divide();
		_exit(python("text.write('own ')\ngo.set()\ndone.wait()\n"
			     "t = threading.Thread(target=text.write, args=('new ',))\n"
			     "t.start()\nt.join()\ntext.write('line\\n')\n") ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(read(out[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "own new line\n");
	memset(text, 0, sizeof(text));
	assert_true(read(background[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "half of a line!");
	close(background[0]);
	close(background[1]);
}

/* In a process of its own, because it changes the patience of writers permanently. */
static void
a_descriptor_that_is_gone_ends_the_waiting(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		close(out[1]);
		if (!python("err.write(b'a')") || reader.looks != 0)
			_exit(1);
		/* Closed streams say so, as files do. */
		if (!python("out.close()\ntry: out.write(b'b')\n"
			    "except ValueError: pass\nelse: 1/0\n"))
			_exit(2);
		_exit(python("err.write(b'c')") && reader.looks == 0 ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Last, for the same reason. */
static void
nobody_waits_for_ever(void **state)
{
	unsigned int before = 1, turns = 0;

	(void)state;
	while (reader.looks != before) {
		before = reader.looks;
		assert_true(python("out.write(b'o')\nerr.write(b'e')\n"));
		assert_in_range(reader.looks - before, 0, 2 * 60);
		assert_true(++turns < 1000);
	}
	assert_true(reader.looks > 0);
	/* All that was written is there all the same. */
	assert_false(is_empty(out[0]));
	assert_false(is_empty(err[0]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_is_a_file, fresh),
		cmocka_unit_test_setup(a_full_pipe_is_told, fresh),
		cmocka_unit_test_setup(one_stream_never_waits, fresh),
		cmocka_unit_test_setup(the_other_waits_until_it_was_read, fresh),
		cmocka_unit_test_setup(what_was_read_already_needs_no_wait, fresh),
		cmocka_unit_test_setup(threads_of_earlier_cells_write_elsewhere, fresh),
		cmocka_unit_test_setup(a_descriptor_that_is_gone_ends_the_waiting, fresh),
		cmocka_unit_test_setup(nobody_waits_for_ever, fresh),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
