/* SPDX-License-Identifier: Apache-2.0 */
/* A heap that was gathered and put on huge pages is a heap like any other: with what was in
 * it, with room for more than it has, and freed where Python frees. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker/huge.h"
#include "worker/heap.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25		/* since Linux 6.1 */
#endif

#define PAGES 32			/* of 2 MiB: what the heap gathers */

/* Calls that put memory on huge pages, those that did, and those refused though there may be
 * memory. */
static unsigned int asked, got, wrong;
static size_t advised;		/* bytes for which huge pages are wanted from the beginning */
static bool late;		/* nothing is on huge pages from the beginning */

/* In place of the C library's: it notes what the heap asks for. */
int
madvise(void *at, size_t len, int advice)
{
	int r = advice == MADV_HUGEPAGE && late ? 0 : (int)syscall(SYS_madvise, at, len, advice);

	if (advice == MADV_COLLAPSE) {
		asked++;
		got += r == 0;
		wrong += r < 0 && errno != ENOMEM && errno != EAGAIN && errno != EBUSY;
	}
	if (advice == MADV_HUGEPAGE)
		advised += len;
	return r;
}

static const char fill[] =
	"few = [str(i) for i in range(100000)]\n"
	/* more than the heap gathers, so that it goes on elsewhere */
	"many = [b'x' * 300 + str(i).encode() for i in range(250000)]\n";

static long
kib(const char *key)
{
	long kib = huge_kib(getpid(), key);

	assert_true(kib >= 0);
	return kib;
}

static bool
is_true(const char *expression)
{
	PyObject *names = PyModule_GetDict(PyImport_AddModule("__main__"));
	PyObject *value = PyRun_String(expression, Py_eval_input, names, names);
	bool yes = value && PyObject_IsTrue(value) == 1;

	if (!value)
		PyErr_Print();
	Py_XDECREF(value);
	return yes;
}

/* Python takes and frees a part of its stack, again and again. */
static bool
uses_freed_memory_again(void)
{
	PyObjectArenaAllocator arenas;
	void *first, *second, *third;

	PyObject_GetArenaAllocator(&arenas);
	first = arenas.alloc(arenas.ctx, 16384);
	second = arenas.alloc(arenas.ctx, 16384);
	arenas.free(arenas.ctx, second, 16384);
	third = arenas.alloc(arenas.ctx, 16384);
	arenas.free(arenas.ctx, third, 16384);
	arenas.free(arenas.ctx, first, 16384);
	return third == second && arenas.alloc(arenas.ctx, 16384) == first;
}

/* Objects of all sizes, one of which changes its size while it is made. */
static const char side_by_side[] =
	"make = lambda: ([str(i) * (i % 90 + 1) for i in range(1000)],\n"
	"                open('/proc/self/status', 'rb').read())\n"
	"dense, status = call_dense(make)\n"
	"places = sorted(map(id, dense))\n"
	"later = [str(i) * 50 for i in range(1000)]\n"
	"too_much = call_dense(lambda: [bytes([i % 256]) * 400 for i in range(5000)])\n";

static bool is_reused;

static int
settle(void **state)
{
	PyObject *caller, *finder;

	(void)state;
	heap_gather();
	is_reused = uses_freed_memory_again();
	Py_InitializeEx(0);
	caller = heap_dense_caller();
	finder = heap_type_finder();
	if (!caller || !finder ||
	    PyModule_AddObject(PyImport_AddModule("__main__"), "of_types", finder) < 0 ||
	    PyModule_AddObject(PyImport_AddModule("__main__"), "call_dense", caller) < 0 ||
	    PyRun_SimpleString(side_by_side) < 0 || PyRun_SimpleString(fill) < 0)
		return -1;
	heap_settle(false);
	return 0;
}

static int
finish(void **state)
{
	(void)state;
	return Py_FinalizeEx();
}

static void
it_lies_on_huge_pages(void **state)
{
	(void)state;
	assert_int_equal(advised, PAGES * 2 << 20);
	advised = 0;
	if (!huge_kernel_can(2 << 20))
		skip();
	/* What libc has; and what was gathered, if it is not there from the beginning. */
	assert_in_range(asked, late ? 2 : 1, 2);
	assert_int_equal(wrong, 0);
	/* A machine may be short of them. */
	if (got == asked)
		assert_true(kib("AnonHugePages:") >= PAGES * 2048);
}

static void
what_was_freed_last_is_used_again(void **state)
{
	(void)state;
	assert_true(is_reused);
}

static void
what_was_in_it_is_there(void **state)
{
	(void)state;
	assert_true(is_true("few == [str(i) for i in range(100000)]"));
	assert_true(is_true("all(b == b'x' * 300 + str(i).encode() for i, b in enumerate(many))"));
}

/* Nothing else lies between them, and what has no room there lies elsewhere. */
static void
some_objects_lie_side_by_side(void **state)
{
	(void)state;
	assert_true(is_true("dense == [str(i) * (i % 90 + 1) for i in range(1000)]"));
	assert_true(is_true("places[-1] - places[0] < 2 * sum(x.__sizeof__() for x in dense)"));
	assert_true(is_true("not any(places[0] < id(x) < places[-1] for x in later)"));
	assert_true(is_true("too_much == [bytes([i % 256]) * 400 for i in range(5000)]"));
	assert_true(is_true("max(map(id, too_much)) - min(map(id, too_much)) > 1 << 20"));
	assert_true(is_true("status.startswith(b'Name:') and status.endswith(b'\\n')"));
}

/* Their places are not used again, and their neighbours stay as they are. */
static void
objects_side_by_side_can_be_freed(void **state)
{
	(void)state;
	assert_int_equal(PyRun_SimpleString(
		"del dense[::2], too_much[::3], status\n"
		"new = [str(i) * (i % 90 + 1) for i in range(5000)]\n"), 0);
	assert_true(is_true("dense == [str(i) * (i % 90 + 1) for i in range(1, 1000, 2)]"));
	assert_true(is_true("not any(places[0] < id(x) < places[-1] for x in new)"));
}

/* A copy that writes keeps to itself what it wrote. */
static void
a_fork_has_its_own(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		PyRun_SimpleString("few[::7] = ['changed' + s for s in few[::7]]; del many");
		_exit(is_true("few[7] == 'changed7' and few[8] == '8'") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_true("few[7] == '7' and len(many) == 250000"));
}

static void
it_grows_and_goes_back(void **state)
{
	long before = kib("Rss:"), full;

	(void)state;
	assert_int_equal(PyRun_SimpleString("more = [b'y' * 300 + str(i).encode() "
					    "for i in range(250000)]"), 0);
	full = kib("Rss:");
	assert_true(full > before + (60 << 10));
	assert_int_equal(PyRun_SimpleString("del more"), 0);
	assert_true(kib("Rss:") < full - (60 << 10));
	/* Also the arenas that were gathered. */
	assert_int_equal(PyRun_SimpleString("del many"), 0);
	assert_true(kib("Rss:") < before - (40 << 10));
}

/* Large blocks, and many small ones, but nothing of a session that has little. */
static void
what_a_session_adds_does(void **state)
{
	long before;

	(void)state;
	heap_session();
	assert_int_equal(PyRun_SimpleString("little = bytearray(1 << 20), list(range(10000))"), 0);
	assert_int_equal(advised, 0);
	before = kib("Rss:");
	assert_int_equal(PyRun_SimpleString("large = bytearray(b'x' * (64 << 20))"), 0);
	assert_true(advised >= 62 << 20);
	advised = 0;
	assert_int_equal(PyRun_SimpleString("large += b'y' * (64 << 20)"), 0);
	assert_true(advised >= 62 << 20);
	advised = 0;
	assert_int_equal(PyRun_SimpleString("more = [b'z' * 300 + str(i).encode() "
					    "for i in range(250000)]"), 0);
	assert_true(advised >= 60 << 20);
	assert_true(is_true("large[-1] == 121 and len(large) == 128 << 20"));
	assert_true(is_true("all(b == b'z' * 300 + str(i).encode() for i, b in enumerate(more))"));
	assert_int_equal(PyRun_SimpleString("del large, more"), 0);
#ifdef WITH_SANITIZERS
	(void)before;			/* they keep freed blocks for a while */
#else
	assert_true(kib("Rss:") < before + (20 << 10));
#endif
}

/* Types by identity, in the order of the list. */
static void
objects_are_found_by_their_types(void **state)
{
	(void)state;
	assert_true(is_true("of_types([1, 'x', True, 2.5, 'y'], int, float) == [1, 2.5]"));
	assert_true(is_true("of_types([1, 'x'], 3, None) == of_types([1]) == of_types([], int) == []"));
	assert_int_equal(PyRun_SimpleString("try:\n    of_types((1, 2), int)\n"
					    "except TypeError:\n    refused = True\n"), 0);
	assert_true(is_true("refused"));
}

int
main(void)
{
	pid_t pid = fork();
	int status, failed;
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_lies_on_huge_pages),
		cmocka_unit_test(what_was_freed_last_is_used_again),
		cmocka_unit_test(what_was_in_it_is_there),
		cmocka_unit_test(some_objects_lie_side_by_side),
		cmocka_unit_test(objects_side_by_side_can_be_freed),
		cmocka_unit_test(a_fork_has_its_own),
		cmocka_unit_test(it_grows_and_goes_back),
		cmocka_unit_test(objects_are_found_by_their_types),
		cmocka_unit_test(what_a_session_adds_does),
	};

	/* The child first: as on a kernel that does not give huge pages to programs. */
	late = pid == 0;
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0))
		return EXIT_FAILURE;
	failed = cmocka_run_group_tests(tests, settle, finish);
	return pid < 0 ? EXIT_FAILURE : failed;
}
