/* Runs in: a session's init.   Owns: nothing.
 * Reads:   /proc of the worker's own pid namespace. */
#include "worker/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/own.h"

#define PAUSE_NS 200000		/* for what was killed to die */

/* One whose first thread has ended shows as a zombie while others go on: it has ended when
 * that is the only one left. The fields are those of proc_pid_stat(5). */
bool
processes_is_alive(pid_t pid)
{
	char path[32], text[512], state = 'X';
	own_fd int fd = -1;
	long threads = 0;
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	at = strrchr(text, ')');
	if (at == NULL || sscanf(at + 1,
				 " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u"
				 " %*d %*d %*d %*d %ld", &state, &threads) != 2)
		return false;
	return (state != 'Z' && state != 'X') || threads > 1;
}

static bool
is_kept(pid_t pid, const pid_t *keep, size_t n)
{
	if (pid <= 1)
		return true;
	for (size_t i = 0; i < n; i++)
		if (keep[i] == pid)
			return true;
	return false;
}

/* In the order of their numbers: what one that is met later makes before it is killed comes
 * after it. */
static unsigned int
look_once(const pid_t *keep, size_t n_kept)
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

			if (is_kept(pid, keep, n_kept) || !processes_is_alive(pid))
				continue;
			kill(pid, SIGKILL);
			found++;
		}
	return found;
}

unsigned int
processes_end_others(const pid_t *keep, size_t n)
{
	static const struct timespec pause = { .tv_nsec = PAUSE_NS };
	unsigned int first = look_once(keep, n);

	for (unsigned int found = first; found > 0; found = look_once(keep, n))
		nanosleep(&pause, NULL);
	return first;
}
