# SPDX-License-Identifier: Apache-2.0
# Tests of the worker. run-script is for people: it runs a script in a real worker
# without a supervisor.
WORKER_TESTS = \
	tests/unit/worker/test-heap \
	tests/unit/worker/test-modes \
	tests/unit/worker/test-priority \
	tests/unit/worker/test-jail \
	tests/unit/worker/test-networks \
	tests/unit/worker/test-run \
	tests/unit/worker/test-seccomp \
	tests/unit/worker/test-turns \
	tests/unit/worker/test-twister \
	tests/unit/worker/test-workspace \
	tests/unit/worker/test-zygote
check_PROGRAMS += $(WORKER_TESTS) tests/unit/worker/run-script
TESTS += $(WORKER_TESTS)

WORKER_HUGE = tests/unit/worker/huge.c tests/unit/worker/huge.h
WORKER_HOST = tests/unit/worker/host.c tests/unit/worker/host.h
WORKER_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(MSGPACK_CFLAGS) $(TEST_CFLAGS)
WORKER_TEST_LDADD = libproto.a libbase.a $(MSGPACK_LIBS) $(TEST_LIBS)
tests_unit_worker_run_script_SOURCES = tests/unit/worker/run-script.c $(WORKER_HOST)
tests_unit_worker_run_script_CPPFLAGS = $(WORKER_TEST_CPPFLAGS)
tests_unit_worker_run_script_LDADD = $(WORKER_TEST_LDADD)
tests_unit_worker_test_jail_SOURCES = tests/unit/worker/test-jail.c $(WORKER_HOST)
tests_unit_worker_test_jail_CPPFLAGS = $(WORKER_TEST_CPPFLAGS)
tests_unit_worker_test_jail_LDADD = libworker.a $(SECCOMP_LIBS) $(WORKER_TEST_LDADD)
tests_unit_worker_test_networks_SOURCES = tests/unit/worker/test-networks.c $(WORKER_HOST)
tests_unit_worker_test_networks_CPPFLAGS = $(WORKER_TEST_CPPFLAGS)
tests_unit_worker_test_networks_LDADD = $(WORKER_TEST_LDADD)
tests_unit_worker_test_run_SOURCES = tests/unit/worker/test-run.c $(WORKER_HOST)
tests_unit_worker_test_run_CPPFLAGS = $(WORKER_TEST_CPPFLAGS)
tests_unit_worker_test_run_LDADD = $(WORKER_TEST_LDADD)
tests_unit_worker_test_seccomp_SOURCES = tests/unit/worker/test-seccomp.c
tests_unit_worker_test_seccomp_CPPFLAGS = $(WORKER_TEST_CPPFLAGS) $(SECCOMP_CFLAGS)
tests_unit_worker_test_seccomp_LDADD = libworker.a $(SECCOMP_LIBS) $(WORKER_TEST_LDADD)
tests_unit_worker_test_turns_SOURCES = tests/unit/worker/test-turns.c \
	tests/unit/worker/python_leaks.c
tests_unit_worker_test_turns_CPPFLAGS = $(WORKER_TEST_CPPFLAGS) $(PYTHON_CFLAGS:-I%=-isystem%)
tests_unit_worker_test_turns_LDADD = libworker.a $(PYTHON_LIBS) $(WORKER_TEST_LDADD)
tests_unit_worker_test_twister_SOURCES = tests/unit/worker/test-twister.c \
	tests/unit/worker/python_leaks.c
tests_unit_worker_test_twister_CPPFLAGS = $(WORKER_TEST_CPPFLAGS) $(PYTHON_CFLAGS:-I%=-isystem%)
tests_unit_worker_test_twister_LDADD = libworker.a $(PYTHON_LIBS) $(WORKER_TEST_LDADD)
tests_unit_worker_test_zygote_SOURCES = tests/unit/worker/test-zygote.c $(WORKER_HOST) \
	$(WORKER_HUGE)
tests_unit_worker_test_zygote_CPPFLAGS = $(WORKER_TEST_CPPFLAGS)
tests_unit_worker_test_zygote_LDADD = $(WORKER_TEST_LDADD)
tests_unit_worker_test_workspace_SOURCES = tests/unit/worker/test-workspace.c
tests_unit_worker_test_workspace_CPPFLAGS = $(WORKER_TEST_CPPFLAGS)
tests_unit_worker_test_workspace_LDADD = libworker.a $(WORKER_MD) $(WORKER_TEST_LDADD)
# The objects themselves: nothing in the tests would pull them out of the library.
tests_unit_worker_test_priority_SOURCES = tests/unit/worker/test-priority.c worker/priority.c
tests_unit_worker_test_priority_CPPFLAGS = $(WORKER_TEST_CPPFLAGS) $(SECCOMP_CFLAGS)
tests_unit_worker_test_priority_LDADD = $(SECCOMP_LIBS) $(TEST_LIBS)
tests_unit_worker_test_modes_SOURCES = tests/unit/worker/test-modes.c worker/modes.c
tests_unit_worker_test_modes_CPPFLAGS = $(WORKER_TEST_CPPFLAGS) $(SECCOMP_CFLAGS)
tests_unit_worker_test_modes_LDADD = $(SECCOMP_LIBS) $(TEST_LIBS)
tests_unit_worker_test_heap_SOURCES = tests/unit/worker/test-heap.c $(WORKER_HUGE) \
	tests/unit/worker/python_leaks.c
tests_unit_worker_test_heap_CPPFLAGS = $(WORKER_TEST_CPPFLAGS) $(PYTHON_CFLAGS:-I%=-isystem%)
tests_unit_worker_test_heap_LDADD = libworker.a $(PYTHON_LIBS) $(WORKER_TEST_LDADD)
