/* A heap that was gathered and put on huge pages is a heap like any other: with what was in
 * it, with room for more than it has, and freed where Python frees. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/heap.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE_PAGE (2UL << 20)

#ifdef WITH_SANITIZERS
const char *__asan_default_options(void);

/* The interpreter does not give back all that it has when it ends. */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static const char fill[] =
	"few = [str(i) for i in range(100000)]\n"
	/* more than the heap gathers, so that it goes on elsewhere */
	"many = [b'x' * 300 + str(i).encode() for i in range(250000)]\n";

/* Of this process, in KiB: a line of /proc/self/smaps_rollup. */
static long
kib(const char *key)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long found = -1;

	assert_non_null(f);
	while (found < 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			found = atol(line + strlen(key));
	fclose(f);
	assert_true(found >= 0);
	return found;
}

static bool
kernel_can(void)
{
	char *at = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *huge = (char *)(((uintptr_t)at + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
	bool can;

	assert_ptr_not_equal(at, MAP_FAILED);
	*huge = 1;
	can = madvise(huge, HUGE_PAGE, MADV_COLLAPSE) == 0;
	munmap(at, 2 * HUGE_PAGE);
	return can;
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

static int
settle(void **state)
{
	(void)state;
	heap_gather();
	Py_InitializeEx(0);
	if (PyRun_SimpleString(fill) < 0)
		return -1;
	heap_settle();
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
	if (!kernel_can())
		skip();
	/* 64 MiB of it, less what no huge page is found for on a machine that is short of them. */
	assert_true(kib("AnonHugePages:") >= 32 << 10);
}

static void
what_was_in_it_is_there(void **state)
{
	(void)state;
	assert_true(is_true("few == [str(i) for i in range(100000)]"));
	assert_true(is_true("all(b == b'x' * 300 + str(i).encode() for i, b in enumerate(many))"));
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

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_lies_on_huge_pages),
		cmocka_unit_test(what_was_in_it_is_there),
		cmocka_unit_test(a_fork_has_its_own),
		cmocka_unit_test(it_grows_and_goes_back),
	};

	return cmocka_run_group_tests(tests, settle, finish);
}
