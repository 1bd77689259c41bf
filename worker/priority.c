/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: every process of the worker program; replaces the C library's nice(), setpriority(),
 * sched_setaffinity(), sched_setscheduler() and sched_setparam().   Owns: nothing.
 * The unit of the system service refuses these calls (SystemCallFilter=~@resources): EPERM. A
 * script usually makes them to be considerate, and its jail has the same effect. So a call that
 * a process makes for itself, and that would take nothing from others, succeeds here without
 * effect; for every other call the kernel's error is returned. Where the kernel allows the calls
 * they take effect. Programs that a script starts see the error. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool
is_refused_to_itself(long r, pid_t pid)
{
	return r < 0 && errno == EPERM && (pid == 0 || pid == getpid() || pid == gettid());
}

static bool
is_ordinary(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE;
}

__attribute__((visibility("default"))) int
setpriority(__priority_which_t which, id_t who, int value)
{
	long r = syscall(SYS_setpriority, which, who, value);

	if (which == PRIO_PROCESS && is_refused_to_itself(r, (pid_t)who)) {
		if (value >= getpriority(which, who))
			return 0;
		errno = EACCES;		/* the error for a process that may not raise it */
	}
	return (int)r;
}

__attribute__((visibility("default"))) int
nice(int by)
{
	int now = getpriority(PRIO_PROCESS, 0);

	if (setpriority(PRIO_PROCESS, 0, now + by) < 0) {
		errno = EPERM;
		return -1;
	}
	errno = 0;			/* -1 is a valid result */
	return getpriority(PRIO_PROCESS, 0);
}

__attribute__((visibility("default"))) int
sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	long r = syscall(SYS_sched_setaffinity, pid, size, set);

	return is_refused_to_itself(r, pid) ? 0 : (int)r;
}

__attribute__((visibility("default"))) int
sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	long r = syscall(SYS_sched_setscheduler, pid, policy, param);

	return is_refused_to_itself(r, pid) && is_ordinary(policy) ? 0 : (int)r;
}

__attribute__((visibility("default"))) int
sched_setparam(pid_t pid, const struct sched_param *param)
{
	long r = syscall(SYS_sched_setparam, pid, param);

	return is_refused_to_itself(r, pid) && param->sched_priority == 0 ? 0 : (int)r;
}
