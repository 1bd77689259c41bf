/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the zygote (note), a worker that has no script yet (seed).
 * Owns:    nothing; the key belongs to NumPy's generator. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "worker/twister.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define WORDS 624
#define NOT_ZERO UINT32_C(0x80000000)	/* a generator whose key is zero gives zeros for ever */

static uint32_t *key;			/* NULL: none was noted */

/* The first member of NumPy's bitgen_t is the address of the generator's state, and a state of
 * MT19937 begins with its key. Both are as old as the capsule, but the comparison shows it. */
static PyObject *
note_twister(PyObject *, PyObject *args)
{
	PyObject *capsule;
	const char *known;
	Py_ssize_t len;
	uint32_t **state;

	if (!PyArg_ParseTuple(args, "Oy#", &capsule, &known, &len))
		return NULL;
	state = PyCapsule_GetPointer(capsule, "BitGenerator");
	if (!state)
		return NULL;
	if (len == WORDS * sizeof(**state) && memcmp(*state, known, (size_t)len) == 0)
		key = *state;
	return PyBool_FromLong(key != NULL);
}

static PyObject *
seed_twister(PyObject *, PyObject *)
{
	const size_t size = WORDS * sizeof(*key);

	for (size_t got = 0; key && got < size;) {
		ssize_t n = getrandom((char *)key + got, size - got, 0);

		if (n < 0 && errno != EINTR)
			return PyErr_SetFromErrno(PyExc_OSError);
		got += n > 0 ? (size_t)n : 0;
	}
	if (key)
		key[0] |= NOT_ZERO;
	Py_RETURN_NONE;
}

PyObject *
twister_noter(void)
{
	static PyMethodDef method = { "note_twister", note_twister, METH_VARARGS, NULL };

	return PyCFunction_New(&method, NULL);
}

PyObject *
twister_seeder(void)
{
	static PyMethodDef method = { "seed_twister", seed_twister, METH_NOARGS, NULL };

	return PyCFunction_New(&method, NULL);
}
