/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a generator is found where NumPy has it, and nowhere else; a new one comes from the
 * kernel. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/twister.h"

#define WORDS 624

/* As NumPy has them. */
static struct {
	uint32_t key[WORDS];
	int pos;
} twister;

static struct {
	void *state;
	void *functions[4];
} generator = { .state = &twister };

static PyObject *capsule, *note, *seed;

static int
start(void **state)
{
	(void)state;
	Py_InitializeEx(0);
	capsule = PyCapsule_New(&generator, "BitGenerator", NULL);
	note = twister_noter();
	seed = twister_seeder();
	for (unsigned int i = 0; i < WORDS; i++)
		twister.key[i] = i;
	twister.pos = WORDS;
	return capsule && note && seed ? 0 : -1;
}

static int
finish(void **state)
{
	(void)state;
	Py_XDECREF(capsule);
	Py_XDECREF(note);
	Py_XDECREF(seed);
	return Py_FinalizeEx();
}

/* What the note returns; NULL: it has failed. */
static PyObject *
noted(PyObject *of, size_t len, uint32_t first)
{
	uint32_t key[WORDS + 1];
	PyObject *result;

	memcpy(key, twister.key, sizeof(twister.key));
	key[0] = first;
	key[WORDS] = 0;
	result = PyObject_CallFunction(note, "Oy#", of, (const char *)key, (Py_ssize_t)len);
	Py_XDECREF(result);		/* True and False stay */
	return result;
}

static void
seed_anew(void)
{
	PyObject *result = PyObject_CallNoArgs(seed);

	assert_non_null(result);
	Py_DECREF(result);
}

/* Nothing is written before a key was noted. */
static void
another_key_is_not_noted(void **state)
{
	PyObject *other = PyCapsule_New(&generator, "another", NULL);

	(void)state;
	assert_ptr_equal(noted(capsule, sizeof(twister.key), 7), Py_False);
	assert_ptr_equal(noted(capsule, sizeof(twister.key) - 4, 0), Py_False);
	assert_ptr_equal(noted(capsule, sizeof(twister.key) + 4, 0), Py_False);
	assert_non_null(other);
	assert_null(noted(other, sizeof(twister.key), 0));
	assert_true(PyErr_ExceptionMatches(PyExc_ValueError));
	PyErr_Clear();
	Py_DECREF(other);
	seed_anew();
	for (unsigned int i = 0; i < WORDS; i++)
		assert_int_equal(twister.key[i], i);
}

static void
a_noted_key_is_new_each_time(void **state)
{
	uint32_t before[WORDS];
	unsigned int same = 0;

	(void)state;
	assert_ptr_equal(noted(capsule, sizeof(twister.key), 0), Py_True);
	for (int round = 0; round < 2; round++) {
		memcpy(before, twister.key, sizeof(before));
		seed_anew();
		for (unsigned int i = 0; i < WORDS; i++)
			same += before[i] == twister.key[i];
		assert_true(twister.key[0] & UINT32_C(0x80000000));
		assert_int_equal(twister.pos, WORDS);
	}
	assert_in_range(same, 0, 10);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_key_is_not_noted),
		cmocka_unit_test(a_noted_key_is_new_each_time),
	};

	return cmocka_run_group_tests(tests, start, finish);
}
