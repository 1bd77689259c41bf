/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start.   Owns: nothing. */
#include "host/tasks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/own.h"

#define OF_SERVICE 256		/* supervisor, helpers, zygotes, keeper, volumes, proxy */
#define LEAST 256		/* of all workers, however small the machine is */
#define PER_TASK (128u << 10)	/* the kernel's default for threads-max (kernel/fork.c) */

struct tasks_bounds
tasks_bounds(uint64_t machine, uint64_t cgroup_max)
{
	/* A quarter is the host's. */
	uint64_t most = machine / 4 * 3;

	if (most > cgroup_max)
		most = cgroup_max;
	if (most > UINT32_MAX)
		most = UINT32_MAX;
	most = most > OF_SERVICE + LEAST ? most - OF_SERVICE : LEAST;
	return (struct tasks_bounds){ .workers = (uint32_t)most, .tenant = (uint32_t)(most / 2) };
}

static uint64_t
tasks_read(const char *path, uint64_t otherwise)
{
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtoull(text, NULL, 10)
							       : otherwise;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A unit with ProcSubset=pid hides the files. */
uint64_t
tasks_machine(void)
{
	struct sysinfo info = { 0 };
	struct rlimit limit;
	uint64_t tasks;

	sysinfo(&info);
	tasks = tasks_read("/proc/sys/kernel/threads-max",
			   (uint64_t)info.totalram * info.mem_unit / PER_TASK);
	tasks = least(tasks, tasks_read("/proc/sys/kernel/pid_max", 32768));
	/* Counted for the user that owns the workers' namespaces. */
	return getrlimit(RLIMIT_NPROC, &limit) == 0 ? least(tasks, limit.rlim_cur) : tasks;
}
