/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the usage helper; in unit tests also in their process.   Owns: nothing.
 * Reads:   questions of the supervisor, which a client may have taken over: they hold only numbers.
 * /proc of workers: a pid may be gone or, in theory, belong to another process by the time it is
 * read, so nothing found here is ever signalled. */
#include "host/usage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "host/fence.h"
#include "host/helper.h"
#include "proto/frame.h"

#define INODE_BYTES 1024	/* roughly what a file of a tmpfs takes beside its pages */
#define SOCKET_BYTES (208 * 1024) /* the minimum: both buffers of TCP, see worker/jail.c */

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
usage_process_add_pids(struct usage_answer *answer, const char *text)
{
	char *end;

	for (;;) {
		long pid = strtol(text, &end, 10);

		if (end == text || answer->n == USAGE_MEMBERS_MAX)
			return;
		answer->process[answer->n++] = (struct usage_process){ .pid = (int32_t)pid };
		text = end;
	}
}

/* The children of every thread of a process; proc_pid_children(5). */
static void
add_children(struct usage_answer *answer, pid_t pid)
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
			usage_process_add_pids(answer, text);
	}
	closedir(tasks);
}

static int
by_pid(const void *a, const void *b)
{
	const struct usage_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void
find_members(const struct usage_asked *asked, struct usage_answer *answer)
{
	if (asked->n == 0) {
		uint32_t n = 1;

		answer->process[0] = (struct usage_process){ .pid = asked->pid };
		answer->n = 1;
		for (uint32_t i = 0; i < answer->n; i++)
			add_children(answer, answer->process[i].pid);
		/* A process that got another parent during the walk may be in the list twice. */
		qsort(answer->process, answer->n, sizeof(answer->process[0]), by_pid);
		for (uint32_t i = 1; i < answer->n; i++)
			if (answer->process[i].pid != answer->process[n - 1].pid)
				answer->process[n++] = answer->process[i];
		answer->n = n;
		return;
	}
	for (uint32_t i = 0; i < asked->n; i++)
		answer->process[i] = (struct usage_process){ .pid = asked->member[i] };
	answer->n = asked->n;
}

/* The number after key in /proc/PID/status or smaps_rollup, in its own unit. */
static uint64_t
usage_process_field(const char *text, const char *key)
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

	if (strstr(status, "\nRssAnon:") != NULL || usage_process_field(status, "\nThreads:") < 2)
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

/* The kernel counts the sockets of each network namespace; the memory of a protocol is counted in
 * pages, for all of them together. */
static void
look_at_sockets(pid_t init, struct usage_answer *answer)
{
	static const char *const protocols[] = { "\nTCP: inuse", "\nUDP: inuse" };
	char text[1024];

	if (read_proc(init, "net/sockstat", text, sizeof(text)) <= 0)
		return;
	answer->sockets = (uint32_t)usage_process_field(text, "sockets: used");
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		const char *line = strstr(text, protocols[i]);

		answer->protocol_bytes += line == NULL ? 0 : usage_process_field(line, " mem") *
					  (uint64_t)sysconf(_SC_PAGESIZE);
	}
}

/* Memory that the kernel keeps for a worker in the files of its one writable file system, which
 * also hold all shared memory that it can make. False: the file system cannot be seen. */
static bool
bytes_of_files(pid_t init, uint64_t *bytes_r)
{
	char path[64];
	struct statfs fs;

	snprintf(path, sizeof(path), "/proc/%d/root/run", (int)init);
	if (statfs(path, &fs) < 0)
		return false;
	*bytes_r = (fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize +
		   (fs.f_files - fs.f_ffree) * INODE_BYTES;
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

/* Between vfork and exec a child has its parent's memory, and both show all of it. It is counted
 * for the parent only. If the kernel cannot compare the two (kcmp), it is counted twice. */
static bool
has_memory_of_parent(pid_t pid, const char *status)
{
	pid_t parent = (pid_t)usage_process_field(status, "\nPPid:");

	return parent > 0 && syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0;
}

static void
sum_up(struct usage_answer *answer)
{
	char text[4096];

	for (uint32_t i = 0; i < answer->n; i++) {
		struct usage_process *process = &answer->process[i];

		process->waited_us = waited_cpu_us(process->pid);
		if (read_proc(process->pid, "status", text, sizeof(text)) <= 0)
			continue;
		answer->tasks += (uint32_t)usage_process_field(text, "\nThreads:");
		if (has_memory_of_parent(process->pid, text))
			continue;
		living_thread(process->pid, text, sizeof(text));
		answer->memory_bytes += (usage_process_field(text, "\nRssAnon:") +
					 (answer->files ? 0 : usage_process_field(text, "\nRssShmem:")) +
					 usage_process_field(text, "\nVmPTE:")) * 1024;
	}
}

static void
look_at_one(pid_t pid, struct usage_answer *answer)
{
	char text[4096];

	if (read_proc(pid, "status", text, sizeof(text)) <= 0 || has_memory_of_parent(pid, text))
		return;
	pid = living_thread(pid, text, sizeof(text));
	/* Page tables belong to one process alone. */
	answer->table_bytes = usage_process_field(text, "\nVmPTE:") * 1024;
	if (read_proc(pid, "smaps_rollup", text, sizeof(text)) <= 0)
		return;
	answer->private_bytes = usage_process_field(text, "\nPss_Anon:") * 1024;
	answer->shared_bytes = usage_process_field(text, "\nPss_Shmem:") * 1024;
}

void
usage_look(const struct usage_asked *asked, struct usage_answer *answer_r)
{
	char text[4096];

	memset(answer_r, 0, offsetof(struct usage_answer, process));
	switch ((enum usage_question)asked->question) {
	case USAGE_MEMBERS:
	case USAGE_ALL:
		find_members(asked, answer_r);
		answer_r->files = bytes_of_files(asked->pid, &answer_r->kept_bytes);
		look_at_sockets(asked->pid, answer_r);
		answer_r->kept_bytes += answer_r->sockets * socket_bytes();
		if (asked->question == USAGE_ALL)
			sum_up(answer_r);
		break;
	case USAGE_ONE:
		look_at_one(asked->pid, answer_r);
		break;
	case USAGE_SOCKETS:
		look_at_sockets(asked->pid, answer_r);
		break;
	case USAGE_UID:
		if (read_proc(asked->pid, "status", text, sizeof(text)) > 0)
			answer_r->uid = (uint32_t)usage_process_field(text, "\nUid:");
		break;
	case USAGE_QUESTIONS:
		break;
	}
}

/* ---- the helper ---- */

static int
usage_process_take(int socket, struct usage_asked *asked)
{
	unsigned int tries = 0;
	ssize_t n;

	asked->n = 0;
	while ((n = recv(socket, asked, sizeof(*asked), 0)) < 0 && frame_wait_out(-errno, &tries))
		;
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	return n >= (ssize_t)offsetof(struct usage_asked, member) &&
	       asked->n <= USAGE_MEMBERS_MAX && (size_t)n == usage_asked_size(asked) &&
	       asked->question < USAGE_QUESTIONS ? 0 : -EBADMSG;
}

static int
usage_process_answer(int socket, const struct usage_answer *answer)
{
	unsigned int tries = 0;

	while (send(socket, answer, usage_answer_size(answer), MSG_NOSIGNAL) < 0)
		if (!frame_wait_out(-errno, &tries))
			return -errno;
	return 0;
}

_Noreturn void
usage_live(const void *, int socket, pid_t supervisor)
{
	static struct usage_asked asked;
	static struct usage_answer answer;
	int r = helper_settle("mcp-usage", supervisor);

	if (r == 0)
		r = helper_keep_only(&socket);
	if (r == 0)
		r = fence_usage();
	while (r == 0 && (r = usage_process_take(socket, &asked)) == 0) {
		usage_look(&asked, &answer);
		r = usage_process_answer(socket, &answer);
	}
	/* The supervisor closes its end when it ends. */
	_exit(r == -EPIPE || r == -ECONNRESET ? EXIT_SUCCESS : EXIT_FAILURE);
}
