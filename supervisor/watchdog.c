/* Runs in: the supervisor.   Owns: one timer.
 * Reads:   /proc of workers; pids may be gone or, in theory, be somebody else's by the
 * time they are read, so nothing is ever signalled by what is found here. */
#include "supervisor/watchdog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "proto/own.h"
#include "supervisor/cgroup.h"

#define INTERVAL_US 20000
#define MEMBERS_MAX 2048

struct members {
	pid_t pid[MEMBERS_MAX];
	size_t n;
};

static ssize_t
read_proc(pid_t pid, const char *file, char *text_r, size_t size)
{
	char path[64];
	own_fd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text_r, size - 1);
	if (n < 0)
		return -errno;
	text_r[n] = '\0';
	return n;
}

static void
add_pids(struct members *members, const char *text)
{
	char *end;

	for (;;) {
		long pid = strtol(text, &end, 10);

		if (end == text || members->n == MEMBERS_MAX)
			return;
		members->pid[members->n++] = (pid_t)pid;
		text = end;
	}
}

/* The children of every thread of a process; proc_pid_children(5). */
static void
add_children(struct members *members, pid_t pid)
{
	char path[64], file[64], text[16384];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (tasks == NULL)
		return;
	while ((entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "task/%.20s/children", entry->d_name);
		if (read_proc(pid, file, text, sizeof(text)) > 0)
			add_pids(members, text);
	}
	closedir(tasks);
}

static void
find_members(pid_t init, const struct cgroup_leaf *leaf, struct members *members)
{
	char text[16384];

	members->n = 0;
	if (leaf != NULL) {
		if (cgroup_leaf_read(leaf, "cgroup.procs", text, sizeof(text)) > 0)
			add_pids(members, text);
		return;
	}
	members->pid[members->n++] = init;
	for (size_t i = 0; i < members->n; i++)
		add_children(members, members->pid[i]);
}

/* The number behind key in /proc/PID/status or smaps_rollup, in its own unit. */
static uint64_t
field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* The time of processes that this one waited for: cutime and cstime of
 * proc_pid_stat(5). */
static uint64_t
waited_cpu_us(pid_t pid)
{
	unsigned long long user = 0, system = 0;
	char text[1024];
	const char *at;

	if (read_proc(pid, "stat", text, sizeof(text)) <= 0)
		return 0;
	at = strrchr(text, ')');
	if (at == NULL || sscanf(at + 1,
				 " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
				 " %llu %llu",
				 &user, &system) != 2)
		return 0;
	return (user + system) * 1000000 / (unsigned long long)sysconf(_SC_CLK_TCK);
}

static uint64_t
own_cpu_us(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

void
watchdog_measure(pid_t init, const struct cgroup_leaf *leaf,
		 struct watchdog_usage *usage_r)
{
	struct watchdog_usage usage = { 0 };
	struct members members;
	char text[4096];

	find_members(init, leaf, &members);
	for (size_t i = 0; i < members.n; i++) {
		if (read_proc(members.pid[i], "status", text, sizeof(text)) <= 0)
			continue;
		usage.memory_bytes +=
			(field(text, "\nRssAnon:") + field(text, "\nRssShmem:") +
			 field(text, "\nVmPTE:")) *
			1024;
		usage.tasks += (uint32_t)field(text, "\nThreads:");
		if (leaf == NULL)
			usage.cpu_us += own_cpu_us(members.pid[i]) +
					waited_cpu_us(members.pid[i]);
	}
	*usage_r = usage;
}

uint64_t
watchdog_true_memory(pid_t init, const struct cgroup_leaf *leaf)
{
	struct members members;
	uint64_t bytes = 0;
	char text[4096];

	find_members(init, leaf, &members);
	for (size_t i = 0; i < members.n; i++) {
		if (read_proc(members.pid[i], "smaps_rollup", text, sizeof(text)) <= 0)
			continue;
		bytes += (field(text, "\nPss_Anon:") + field(text, "\nPss_Shmem:")) *
			 1024;
		/* Page tables are nobody else's. */
		if (read_proc(members.pid[i], "status", text, sizeof(text)) > 0)
			bytes += field(text, "\nVmPTE:") * 1024;
	}
	return bytes;
}

uint64_t
watchdog_data_bytes(pid_t pid)
{
	char text[4096];

	return read_proc(pid, "status", text, sizeof(text)) > 0
	       ? field(text, "\nVmData:") * 1024 : 0;
}

/* ---- the timer ---- */

struct watchdog {
	struct event tick;
	struct event_base *base;
	void (*check)(struct execution *execution);
	struct watchdog_link *first, *next;	/* next: after the one being checked */
};

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void
arm(struct watchdog *watchdog, uint64_t us)
{
	struct timeval interval = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_usec = (suseconds_t)(us % 1000000),
	};

	event_add(&watchdog->tick, &interval);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct watchdog *watchdog = arg;
	struct watchdog_link *link;
	uint64_t start = now_us(), took;

	(void)fd;
	(void)what;
	for (link = watchdog->first; link != NULL; link = watchdog->next) {
		watchdog->next = link->next;
		watchdog->check(link->execution);
	}
	took = now_us() - start;
	if (watchdog->first != NULL)
		arm(watchdog, took * 10 > INTERVAL_US ? took * 10 : INTERVAL_US);
}

struct watchdog *
watchdog_new(struct event_base *base, void (*check)(struct execution *))
{
	struct watchdog *watchdog = calloc(1, sizeof(*watchdog));

	if (watchdog == NULL)
		abort();
	watchdog->base = base;
	watchdog->check = check;
	evtimer_assign(&watchdog->tick, base, on_tick, watchdog);
	return watchdog;
}

void
watchdog_free(struct watchdog *watchdog)
{
	if (watchdog == NULL)
		return;
	while (watchdog->first != NULL)
		watchdog_forget(watchdog->first);
	event_del(&watchdog->tick);
	free(watchdog);
}

void
watchdog_watch(struct watchdog *watchdog, struct watchdog_link *link,
	       struct execution *execution)
{
	link->execution = execution;
	link->watchdog = watchdog;
	link->previous = &watchdog->first;
	link->next = watchdog->first;
	if (link->next != NULL)
		link->next->previous = &link->next;
	watchdog->first = link;
	if (!evtimer_pending(&watchdog->tick, NULL))
		arm(watchdog, INTERVAL_US);
}

void
watchdog_forget(struct watchdog_link *link)
{
	if (link->previous == NULL)
		return;
	if (link->watchdog->next == link)
		link->watchdog->next = link->next;
	*link->previous = link->next;
	if (link->next != NULL)
		link->next->previous = link->previous;
	link->previous = NULL;
}
