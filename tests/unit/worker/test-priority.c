/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities and affinity where the calls are refused, as the system service's unit does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

#define TRY(what) do { if (!(what)) { fprintf(stderr, "%s\n", #what); _exit(1); } } while (0)

static void
refuse(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	static const int calls[] = {
		SCMP_SYS(setpriority), SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler),
		SCMP_SYS(sched_setparam),
	};

	TRY(ctx != NULL && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		TRY(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), calls[i], 0) == 0);
	TRY(seccomp_load(ctx) == 0);
	seccomp_release(ctx);
}

static void
ask(bool refused)
{
	struct sched_param none = { 0 }, one = { .sched_priority = 1 };
	int now = getpriority(PRIO_PROCESS, 0);
	cpu_set_t set;

	TRY(sched_getaffinity(0, sizeof(set), &set) == 0);
	if (refused)
		refuse();
	TRY(setpriority(PRIO_PROCESS, 0, now + 1) == 0);
	TRY(getpriority(PRIO_PROCESS, 0) == now + !refused);
	errno = 0;
	TRY(nice(1) == now + 2 * !refused && errno == 0);
	TRY(sched_setaffinity(0, sizeof(set), &set) == 0);
	TRY(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
	TRY(sched_setparam(getpid(), &none) == 0);
	if (refused) {
		/* What takes from others is refused as before, and what is not for itself. */
		TRY(setpriority(PRIO_PROCESS, 0, now - 1) < 0 && errno == EACCES);
		TRY(nice(-1) < 0 && errno == EPERM);
		TRY(setpriority(PRIO_PROCESS, (id_t)getppid(), now + 1) < 0 && errno == EPERM);
		TRY(sched_setscheduler(0, SCHED_FIFO, &one) < 0 && errno == EPERM);
		TRY(sched_setparam(0, &one) < 0 && errno == EPERM);
		TRY(sched_setaffinity(getppid(), sizeof(set), &set) < 0 && errno == EPERM);
	}
	_exit(0);
}

static int
in_child(bool refused)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		ask(refused);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
lower_priorities_are_answered_where_refused(void **state)
{
	(void)state;
	assert_int_equal(in_child(true), 0);
}

static void
they_take_effect_where_allowed(void **state)
{
	(void)state;
	if (getpriority(PRIO_PROCESS, 0) > 17)	/* of 19, and two steps are taken */
		skip();
	assert_int_equal(in_child(false), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lower_priorities_are_answered_where_refused),
		cmocka_unit_test(they_take_effect_where_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
