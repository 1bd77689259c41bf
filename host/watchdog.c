/* Runs in: the supervisor.   Owns: one timer.
 * Reads:   /proc of workers. A pid may be gone or, in theory, belong to another process by the
 * time it is read, so nothing found here is ever signalled. */
#include "host/watchdog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/own.h"
#include "host/cgroup.h"

#define INTERVAL_US 20000
#define PIECE_US 5000		/* of one turn of the loop, for each of the two timers */
#define MEMBERS_MAX 2048
#define INODE_BYTES 1024	/* roughly what a file of a tmpfs takes beside its pages */
#define SOCKET_BYTES (208 * 1024) /* the minimum: both buffers of TCP, see worker/jail.c */

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

static int
by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void
find_members(pid_t init, const struct cgroup_leaf *leaf, struct members *members)
{
	char text[16384];
	size_t n = 1;

	members->n = 0;
	if (leaf != NULL) {
		if (cgroup_leaf_read(leaf, "cgroup.procs", text, sizeof(text)) > 0)
			add_pids(members, text);
		return;
	}
	members->pid[members->n++] = init;
	for (size_t i = 0; i < members->n; i++)
		add_children(members, members->pid[i]);
	/* A process that was given another parent meanwhile was counted twice. */
	qsort(members->pid, members->n, sizeof(members->pid[0]), by_pid);
	for (size_t i = 1; i < members->n; i++)
		if (members->pid[i] != members->pid[n - 1])
			members->pid[n++] = members->pid[i];
	members->n = n;
}

/* The number after key in /proc/PID/status or smaps_rollup, in its own unit. */
static uint64_t
field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* After the first thread of a process has ended, only the /proc files of another thread show its
 * memory. Finds such a thread, and reads its status instead. */
static pid_t
living_thread(pid_t pid, char *status, size_t size)
{
	char path[64];
	struct dirent *entry;
	pid_t tid, found = 0;
	DIR *tasks;

	if (strstr(status, "\nRssAnon:") != NULL || field(status, "\nThreads:") < 2)
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks != NULL && found == 0 && (entry = readdir(tasks)) != NULL) {
		tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid > 0 && tid != pid && read_proc(tid, "status", status, size) > 0 &&
		    strstr(status, "\nRssAnon:") != NULL)
			found = tid;
	}
	if (tasks != NULL)
		closedir(tasks);
	return found > 0 ? found : pid;
}

/* The bytes that may wait in a socket with default buffers. */
static uint64_t
socket_bytes(void)
{
	static const char *const files[] = {
		"/proc/sys/net/core/wmem_default", "/proc/sys/net/core/rmem_default",
	};
	static uint64_t most;

	if (most > 0)
		return most;
	most = SOCKET_BYTES;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		own_fd int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		char text[32] = "";

		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
		    strtoull(text, NULL, 10) > most)
			most = strtoull(text, NULL, 10);
	}
	return most;
}

/* Memory that the kernel keeps for a worker beside its processes: the files of its one writable
 * file system, which also hold all shared memory that it can make, and the bytes that may wait
 * in its sockets. False: the file system cannot be seen. */
static bool
kept_bytes(pid_t init, uint64_t *bytes_r)
{
	char path[64], text[1024];
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%d/root/run", (int)init);
	if (statfs(path, &fs) < 0)
		return false;
	*bytes_r = (fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize +
		   (fs.f_files - fs.f_ffree) * INODE_BYTES;
	if (read_proc(init, "net/sockstat", text, sizeof(text)) > 0 &&
	    strncmp(text, "sockets:", 8) == 0)
		*bytes_r += field(text, " used") * socket_bytes();
	return true;
}

/* The time of the processes that this one waited for: cutime and cstime of proc_pid_stat(5). */
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

/* Handles a process that was seen before and is missing now. The tree of processes changes
 * during the walk: a process counts as gone only when it is missing twice. */
static void
miss(struct watchdog_seen *seen, const struct watchdog_process *process,
     struct watchdog_process *kept, size_t *n_io)
{
	if (process->missed || *n_io >= MEMBERS_MAX) {
		seen->gone_us += process->cpu_us;
	} else {
		kept[*n_io] = *process;
		kept[(*n_io)++].missed = true;
	}
}

/* The time of all processes. A process that its parent does not wait for (SIGCHLD ignored) takes
 * its time with it, so the last value seen still counts. A value that exceeds what the parent
 * has waited for counts only by the difference, so nothing is counted twice. */
static uint64_t
all_cpu_us(const struct members *members, struct watchdog_seen *seen)
{
	struct watchdog_process now[2 * MEMBERS_MAX], *process;
	uint64_t own = 0, waited = 0, gone;
	size_t old = 0, n = 0;

	for (size_t i = 0; i < members->n; i++) {
		pid_t pid = members->pid[i];
		uint64_t us = own_cpu_us(pid);

		own += us;
		waited += waited_cpu_us(pid);
		while (old < seen->n && seen->process[old].pid < pid)
			miss(seen, &seen->process[old++], now, &n);
		if (old < seen->n && seen->process[old].pid == pid) {
			/* A smaller value than before: another process with the same number. */
			if (seen->process[old].cpu_us > us)
				seen->gone_us += seen->process[old].cpu_us;
			old++;
		}
		now[n++] = (struct watchdog_process){ .pid = pid, .cpu_us = us };
	}
	while (old < seen->n)
		miss(seen, &seen->process[old++], now, &n);
	gone = seen->gone_us;
	for (size_t i = 0; i < n; i++)
		gone += now[i].missed ? now[i].cpu_us : 0;
	process = malloc(n * sizeof(*process) + 1);
	if (process == NULL)
		abort();
	memcpy(process, now, n * sizeof(*process));
	free(seen->process);
	seen->process = process;
	seen->n = n;
	return own + (waited > gone ? waited : gone);
}

void
watchdog_seen_done(struct watchdog_seen *seen)
{
	free(seen->process);
	*seen = (struct watchdog_seen){ 0 };
}

void
watchdog_measure(pid_t init, const struct cgroup_leaf *leaf, struct watchdog_seen *seen,
		 struct watchdog_usage *usage_r)
{
	struct watchdog_usage usage = { 0 };
	struct members members;
	char text[4096];
	bool files;

	find_members(init, leaf, &members);
	files = kept_bytes(init, &usage.kept_bytes);
	usage.memory_bytes = usage.kept_bytes;
	for (size_t i = 0; i < members.n; i++) {
		if (read_proc(members.pid[i], "status", text, sizeof(text)) <= 0)
			continue;
		usage.tasks += (uint32_t)field(text, "\nThreads:");
		living_thread(members.pid[i], text, sizeof(text));
		usage.memory_bytes += (field(text, "\nRssAnon:") +
				       (files ? 0 : field(text, "\nRssShmem:")) +
				       field(text, "\nVmPTE:")) * 1024;
	}
	if (leaf == NULL)
		usage.cpu_us = all_cpu_us(&members, seen);
	*usage_r = usage;
}

uint64_t
watchdog_private_memory(pid_t init, const struct cgroup_leaf *leaf)
{
	struct members members;
	uint64_t bytes = 0;
	char text[4096];

	find_members(init, leaf, &members);
	for (size_t i = 0; i < members.n; i++) {
		pid_t pid;

		if (read_proc(members.pid[i], "status", text, sizeof(text)) <= 0)
			continue;
		pid = living_thread(members.pid[i], text, sizeof(text));
		if (read_proc(pid, "smaps_rollup", text, sizeof(text)) > 0)
			bytes += field(text, "\nPss_Anon:") * 1024;
	}
	return bytes;
}

uint64_t
watchdog_memory_since(const struct watchdog_usage *before, const struct watchdog_usage *usage)
{
	return usage->memory_bytes > before->memory_bytes
	       ? usage->memory_bytes - before->memory_bytes : 0;
}

/* ---- the timer ---- */

/* What work has cost. On a busy machine it takes longer than it costs, and a pause by that alone
 * would grow until nothing is noticed any more. */
static struct effort
effort_now(void)
{
	struct timespec cpu = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (struct effort){ clock_us(),
				(uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000 };
}

static void
effort_add(struct effort *sum, const struct effort *start)
{
	struct effort now = effort_now();

	sum->wall_us += now.wall_us - start->wall_us;
	sum->cpu_us += now.cpu_us - start->cpu_us;
}

/* The pause after which it was a tenth of the processor time, and half of all time at most. */
static uint64_t
effort_pause_us(const struct effort *effort)
{
	uint64_t us = effort->cpu_us * 10;

	return us > effort->wall_us ? us : effort->wall_us;
}

struct watchdog {
	struct event tick, reading;
	void (*check)(struct execution *execution);
	TAILQ_HEAD(, watchdog_link) links;	/* ordered by their last check, oldest first */
	TAILQ_HEAD(, watchdog_look) looks;	/* ordered by the last process that was read */
	unsigned int round;
	struct effort effort;			/* of this round so far */
};

static void
arm(struct event *event, uint64_t us)
{
	struct timeval interval = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_usec = (suseconds_t)(us % 1000000),
	};

	/* Otherwise the pause would begin with this turn of the loop, and include the work. */
	event_base_update_cache_time(event_get_base(event));
	event_add(event, &interval);
}

static void
watchdog_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct watchdog *watchdog = arg;
	const struct effort start = effort_now();
	uint64_t took = 0, pause;
	struct watchdog_link *link;

	(void)fd;
	(void)what;
	while ((link = TAILQ_FIRST(&watchdog->links)) != NULL && link->round != watchdog->round &&
	       took < PIECE_US) {
		TAILQ_REMOVE(&watchdog->links, link, link);
		TAILQ_INSERT_TAIL(&watchdog->links, link, link);
		link->round = watchdog->round;
		watchdog->check(link->execution);
		took = clock_us() - start.wall_us;
	}
	effort_add(&watchdog->effort, &start);
	link = TAILQ_FIRST(&watchdog->links);
	if (link == NULL)
		return;
	if (link->round != watchdog->round) {
		arm(&watchdog->tick, took);
		return;
	}
	pause = effort_pause_us(&watchdog->effort);
	watchdog->round++;
	watchdog->effort = (struct effort){ 0 };
	arm(&watchdog->tick, pause > INTERVAL_US ? pause : INTERVAL_US);
}

static void watchdog_on_reading(evutil_socket_t fd, short what, void *arg);

struct watchdog *
watchdog_new(struct event_base *base, void (*check)(struct execution *))
{
	struct watchdog *watchdog = calloc(1, sizeof(*watchdog));

	if (watchdog == NULL)
		abort();
	watchdog->check = check;
	watchdog->round = 1;
	TAILQ_INIT(&watchdog->links);
	TAILQ_INIT(&watchdog->looks);
	evtimer_assign(&watchdog->tick, base, watchdog_on_tick, watchdog);
	evtimer_assign(&watchdog->reading, base, watchdog_on_reading, watchdog);
	return watchdog;
}

void
watchdog_free(struct watchdog *watchdog)
{
	if (watchdog == NULL)
		return;
	while (!TAILQ_EMPTY(&watchdog->links))
		watchdog_forget(TAILQ_FIRST(&watchdog->links));
	while (!TAILQ_EMPTY(&watchdog->looks))
		watchdog_look_end(TAILQ_FIRST(&watchdog->looks));
	event_del(&watchdog->tick);
	event_del(&watchdog->reading);
	free(watchdog);
}

void
watchdog_watch(struct watchdog *watchdog, struct watchdog_link *link,
	       struct execution *execution)
{
	*link = (struct watchdog_link){
		.watchdog = watchdog, .execution = execution, .round = watchdog->round - 1,
	};
	TAILQ_INSERT_HEAD(&watchdog->links, link, link);
	if (!evtimer_pending(&watchdog->tick, NULL))
		arm(&watchdog->tick, INTERVAL_US);
}

void
watchdog_forget(struct watchdog_link *link)
{
	if (link->watchdog == NULL)
		return;
	TAILQ_REMOVE(&link->watchdog->links, link, link);
	link->watchdog = NULL;
}

/* ---- memory with shared pages counted once ---- */

static void
look_find_members(struct watchdog_look *look)
{
	struct members members;
	uint64_t kept;

	find_members(look->init, look->leaf, &members);
	look->files_seen = kept_bytes(look->init, &kept);
	free(look->member);
	look->member = malloc((members.n + 1) * sizeof(*look->member));
	if (look->member == NULL)
		abort();
	memcpy(look->member, members.pid, members.n * sizeof(*look->member));
	look->n = members.n;
	look->at = 0;
	look->sum_bytes = 0;
}

/* Reads the next process. False: all processes are read and summed up. */
static bool
look_read_next(struct watchdog_look *look)
{
	char text[4096];
	pid_t pid;

	if (look->at == look->n) {
		look->bytes = look->sum_bytes;
		return false;
	}
	pid = look->member[look->at++];
	if (read_proc(pid, "status", text, sizeof(text)) <= 0)
		return true;
	pid = living_thread(pid, text, sizeof(text));
	/* Page tables belong to one process alone. */
	look->sum_bytes += field(text, "\nVmPTE:") * 1024;
	if (read_proc(pid, "smaps_rollup", text, sizeof(text)) > 0)
		look->sum_bytes += (field(text, "\nPss_Anon:") +
				    (look->files_seen ? 0 : field(text, "\nPss_Shmem:"))) * 1024;
	return true;
}

/* Runs in the turn after the freezing, which is not complete when the write returns. */
static bool
look_go_on(struct watchdog_look *look)
{
	const struct effort start = effort_now();
	bool more;

	if (look->member == NULL)
		look_find_members(look);
	more = look_read_next(look);
	effort_add(&look->effort, &start);
	return more;
}

static void
watchdog_on_reading(evutil_socket_t fd, short what, void *arg)
{
	struct watchdog *watchdog = arg;
	uint64_t start = clock_us(), took = 0;
	struct watchdog_look *look;

	(void)fd;
	(void)what;
	while ((look = TAILQ_FIRST(&watchdog->looks)) != NULL && took < PIECE_US) {
		TAILQ_REMOVE(&watchdog->looks, look, link);
		TAILQ_INSERT_TAIL(&watchdog->looks, look, link);
		if (!look_go_on(look)) {
			watchdog_look_end(look);
			look->done(look->arg);
		}
		took = clock_us() - start;
	}
	if (!TAILQ_EMPTY(&watchdog->looks))
		arm(&watchdog->reading, took);
}

bool
watchdog_look(struct watchdog *watchdog, struct watchdog_look *look, pid_t init,
	      const struct cgroup_leaf *leaf, bool freezes, void (*done)(void *arg), void *arg)
{
	watchdog_look_end(look);
	*look = (struct watchdog_look){
		.init = init, .leaf = leaf, .bytes = look->bytes, .done = done, .arg = arg,
	};
	while (look->effort.wall_us < PIECE_US)
		if (!look_go_on(look)) {
			watchdog_look_end(look);
			return true;
		}
	/* The look takes longer, so it begins again, with a frozen process tree. */
	free(look->member);
	look->member = NULL;
	look->frozen = freezes && leaf != NULL && cgroup_leaf_freeze(leaf, true) == 0;
	look->watchdog = watchdog;
	TAILQ_INSERT_TAIL(&watchdog->looks, look, link);
	if (!evtimer_pending(&watchdog->reading, NULL))
		arm(&watchdog->reading, PIECE_US);
	return false;
}

bool
watchdog_look_rests(const struct watchdog_look *look)
{
	return look->watchdog != NULL || clock_us() < look->next_us;
}

void
watchdog_look_end(struct watchdog_look *look)
{
	if (look->frozen)
		cgroup_leaf_freeze(look->leaf, false);
	if (look->watchdog != NULL)
		TAILQ_REMOVE(&look->watchdog->looks, look, link);
	free(look->member);
	look->next_us = clock_us() + effort_pause_us(&look->effort);
	look->member = NULL;
	look->watchdog = NULL;
	look->frozen = false;
}

uint64_t
watchdog_looked_memory(const struct watchdog_look *look, const struct watchdog_usage *before,
		       const struct watchdog_usage *usage)
{
	uint64_t most = watchdog_memory_since(before, usage);
	uint64_t looked = look->bytes + usage->kept_bytes;

	return look->bytes > 0 && looked < most ? looked : most;
}
