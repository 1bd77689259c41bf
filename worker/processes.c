/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init.   Owns: the highest process number that was met, and the list of
 * processes that outlived their cells.
 * Reads:   /proc of the worker's own pid namespace, where there is no better source. */
#include "worker/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/stall.h"

/* The pauses between looks at killed processes, the first and the longest: large processes take
 * long to end, and each look slows them down. A process that is about to end is looked at after
 * the least pause. */
#define PAUSE_LEAST_NS 25000
#define PAUSE_FIRST_NS 200000
#define PAUSE_MOST_NS 20000000
#define END_MS 1000
#define CHILD_LOOKS_MAX 500
#define STOP_LOOKS_MAX 1000

static pid_t seen = 1;		/* all processes up to this number were met before */

/* Waits at most this many milliseconds until the process has ended. True: it is still alive. */
static bool
outlives(pid_t pid, int ms)
{
	own_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };
	int n = -1;

	/* There may be no memory for the descriptor, because processes use it up. Any other error
	 * means that there is no such process, or that the number is that of a thread. */
	if (fd < 0 && (errno == ENOMEM || errno == ENFILE))
		return kill(pid, 0) == 0;
	if (ms > 0)
		stall_rest();
	do
		n = fd < 0 ? -1 : poll(&ended, 1, ms);
	while (n < 0 && fd >= 0 && errno == EINTR);
	if (ms > 0)
		stall_turn();
	return n == 0;
}

void
processes_pause(long ns)
{
	struct timespec left = { .tv_nsec = ns };

	stall_rest();
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	stall_turn();
}

bool
processes_is_alive(pid_t pid)
{
	return outlives(pid, 0);
}

void
processes_await_end(pid_t pid)
{
	if (pid > 0)
		outlives(pid, END_MS);
}

void
processes_weigh(pid_t pid, const char *weight)
{
	own_fd int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && write(fd, weight, strlen(weight)) < 0)
		return;
}

/* Some fields of proc_pid_stat(5). */
struct status {
	int parent;
	unsigned int flags, threads;
	unsigned long pending;		/* signals */
};

#define FLAG_EXITING 4			/* PF_EXITING of the kernel */
#define FILE_MAX 1024

/* Reads a file of /proc. text "": there is none. */
static void
read_file(pid_t pid, const char *name, char text[FILE_MAX])
{
	own_fd int fd = -1;
	ssize_t len;

	snprintf(text, FILE_MAX, "/proc/%d/%s", (int)pid, name);
	fd = open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	len = fd < 0 ? -1 : read(fd, text, FILE_MAX - 1);
	text[len > 0 ? len : 0] = '\0';
}

/* Reads the status of a process. The script chooses the name before the numbers, which may contain
 * anything. False: unknown. */
static bool
read_status(pid_t pid, struct status *status_r)
{
	char text[FILE_MAX], *at;

	read_file(pid, "stat", text);
	at = strrchr(text, ')');
	return at != NULL && sscanf(at, ") %*c %d %*s %*s %*s %*s %u "
				    "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %u "
				    "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
				    &status_r->parent, &status_r->flags, &status_r->threads,
				    &status_r->pending) == 4;
}

bool
processes_has_main_thread(pid_t pid)
{
	char text[FILE_MAX], *at;

	read_file(pid, "stat", text);
	at = strrchr(text, ')');
	return at != NULL && strncmp(at, ") Z", 3) != 0;
}

unsigned int
processes_threads(pid_t pid)
{
	struct status status;

	return read_status(pid, &status) ? status.threads : 0;
}

uint64_t
processes_memory(pid_t pid)
{
	unsigned long resident, shared;
	char text[FILE_MAX];

	read_file(pid, "statm", text);
	return sscanf(text, "%*s %lu %lu", &resident, &shared) == 2 && resident > shared
	       ? (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* The number behind a key of proc_pid_smaps(5), in bytes. */
static uint64_t
processes_bytes_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at != NULL ? strtoull(at + strlen(key), NULL, 10) << 10 : 0;
}

uint64_t
processes_alone_memory(pid_t pid)
{
	char text[FILE_MAX];

	read_file(pid, "smaps_rollup", text);
	return processes_bytes_of(text, "\nPrivate_Clean:") + processes_bytes_of(text, "\nPrivate_Dirty:");
}

bool
processes_becomes_child(pid_t pid)
{
	struct status status = { .parent = 1 };
	long pause_ns = PAUSE_LEAST_NS;

	/* As a rule its parent is about to end: a cell may wait for this. */
	for (int i = 0; i < CHILD_LOOKS_MAX && read_status(pid, &status) && status.parent != 1;
	     i++) {
		processes_pause(pause_ns);
		if (pause_ns < PAUSE_FIRST_NS)
			pause_ns *= 2;
	}
	return status.parent == 1;
}

/* Processes that outlived their cell. */
static struct left {
	pid_t pid;
	unsigned int owner;
} left[PROCESSES_LEFT_MAX];
static size_t n_left, n_met;
static int leaves_to = -1;	/* the owner that found processes get; -1: they are killed */

static bool
is_left(pid_t pid)
{
	for (size_t i = 0; i < n_left; i++)
		if (left[i].pid == pid)
			return true;
	return false;
}

uint64_t
processes_left_memory(void)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n_left; i++)
		bytes += processes_memory(left[i].pid);
	return bytes;
}

static bool
end_one(pid_t pid, const pid_t *keep, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (keep[i] == pid)
			return false;
	if (!processes_is_alive(pid) || is_left(pid))
		return false;
	if (leaves_to >= 0 && n_left < PROCESSES_LEFT_MAX) {
		left[n_left++] = (struct left){ pid, (unsigned int)leaves_to };
		n_met++;
		return false;
	}
	return kill(pid, SIGKILL) == 0;
}

void
processes_signal_left(unsigned int owner, int signal)
{
	size_t n = 0;

	for (size_t i = 0; i < n_left; i++)
		if (processes_is_alive(left[i].pid))
			left[n++] = left[i];
	n_left = n;
	for (size_t i = 0; i < n_left; i++)
		if (left[i].owner == owner)
			kill(left[i].pid, signal);
}

/* A process that has ended counts, too. Of a child all threads have stopped, of others the first
 * one. */
static bool
has_stopped(pid_t pid)
{
	siginfo_t stopped = { .si_pid = 0 };
	char text[FILE_MAX], *at;

	if (waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WNOHANG | WNOWAIT) == 0)
		return stopped.si_pid == pid || !processes_has_main_thread(pid);
	read_file(pid, "stat", text);
	at = strrchr(text, ')');
	return at == NULL || strchr("TtZX", at[2]) != NULL;
}

void
processes_await_stop(pid_t head, unsigned int owner)
{
	long pause_ns = PAUSE_LEAST_NS;
	size_t i = 0;

	for (int looks = 0; looks < STOP_LOOKS_MAX; looks++) {
		while (i < n_left && (left[i].owner != owner || has_stopped(left[i].pid)))
			i++;
		if (i == n_left && (head == 0 || has_stopped(head)))
			return;
		processes_pause(pause_ns);
		if (pause_ns < PAUSE_FIRST_NS)
			pause_ns *= 2;
	}
}

unsigned int
processes_left_gone(unsigned int owner)
{
	unsigned int gone = 0;

	for (size_t i = 0; i < n_left; i++)
		gone += left[i].owner == owner && !processes_is_alive(left[i].pid);
	return gone;
}

unsigned int
processes_end_left(unsigned int owner)
{
	unsigned int found = 0;
	uint64_t until_ms;
	size_t n = 0;

	for (size_t i = 0; i < n_left; i++)
		if (left[i].owner == owner) {
			kill(left[i].pid, SIGKILL);
			found++;
		}
	until_ms = clock_ms() + END_MS;
	for (size_t i = 0; i < n_left; i++) {
		uint64_t now_ms = clock_ms();

		if (left[i].owner != owner)
			left[n++] = left[i];
		else
			outlives(left[i].pid, now_ms < until_ms ? (int)(until_ms - now_ms) : 0);
	}
	n_left = n;
	return found;
}

/* Was the process killed, but has not ended yet? */
bool
processes_is_ending(pid_t pid)
{
	struct status status;

	return read_status(pid, &status) &&
	       ((status.flags & FLAG_EXITING) || (status.pending & 1UL << (SIGKILL - 1)));
}

bool
processes_go_on(unsigned int owner)
{
	for (size_t i = 0; i < n_left; i++)
		if (left[i].owner == owner && processes_is_alive(left[i].pid) &&
		    !processes_is_ending(left[i].pid))
			return true;
	return false;
}

/* Kills or lists the processes of a range, in the order of their numbers. A process that is made
 * meanwhile by one that is not killed yet has a higher number, so it is met later. */
static unsigned int
end_range(pid_t first, pid_t last, const pid_t *keep, size_t n)
{
	unsigned int found = 0;

	for (pid_t pid = first; pid <= last; pid++)
		found += end_one(pid, keep, n);
	return found;
}

static unsigned int
end_visible(const pid_t *keep, size_t n_kept)
{
	struct entry {
		uint64_t ino, off;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	own_fd int dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct entry) char list[4096];
	unsigned int found = 0;
	long n;

	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (char *at = list; at < list + n;
		     at += ((struct entry *)(void *)at)->len) {
			pid_t pid = (pid_t)strtol(((struct entry *)(void *)at)->name,
						  NULL, 10);

			if (pid > 1)
				found += end_one(pid, keep, n_kept);
		}
	return found;
}

/* The number that the kernel gives to a process that is made now: a child is made to learn it. -1:
 * unknown. */
static pid_t
next_number(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid;
}

static unsigned int
end_since(pid_t next, const pid_t *keep, size_t n)
{
	if (next > seen)
		return end_range(seen + 1, next - 1, keep, n);
	/* The numbers have started again from the beginning. */
	return end_visible(keep, n) + end_range(2, next - 1, keep, n);
}

int
processes_end_others(const pid_t *keep, size_t n, unsigned int *found_r)
{
	long pause_ns = PAUSE_FIRST_NS;
	unsigned int found;
	bool first = true;
	pid_t next;

	do {
		if (!first) {
			processes_pause(pause_ns);
			if (pause_ns < PAUSE_MOST_NS)
				pause_ns *= 2;
		}
		next = next_number();
		found = next > 0 ? end_since(next, keep, n) : end_visible(keep, n);
		if (first)
			*found_r = found;
		first = false;
	} while (found > 0);
	if (next < 0)
		return -EAGAIN;
	seen = next;
	return 0;
}

size_t
processes_met(void)
{
	return n_met;
}

unsigned int
processes_leave(const pid_t *keep, size_t n, unsigned int owner)
{
	unsigned int ended;
	pid_t next = next_number();

	leaves_to = (int)owner;
	ended = next > 0 ? end_since(next, keep, n) : end_visible(keep, n);
	leaves_to = -1;
	if (next > 0)
		seen = next;
	return ended;
}
