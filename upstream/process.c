/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: mcp-python-tools; run_program() in the forked child, before it becomes the program.
 * Owns:    the process of a server, its pipes, and the beginning of a line.
 * Reads:   bytes of that server, hostile. */
#include "upstream/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/own.h"
#include "base/xalloc.h"

#define READ_BYTES 65536	/* at once, so that servers take turns */

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Everything of the process but its exit status. */
static void
process_release(struct process *p)
{
	event_del(&p->readable);
	event_del(&p->writable);
	event_del(&p->says);
	event_del(&p->ended);
	close_fd(&p->in);
	close_fd(&p->out);
	close_fd(&p->err);
	close_fd(&p->pidfd);
	free(p->line);
	p->line = NULL;
	p->len = p->size = 0;
	if (p->waiting != NULL)
		evbuffer_free(p->waiting);
	p->waiting = NULL;
	p->pid = 0;
}

/* ---- the end ---- */

/* Keeps the last line of what it says to people. */
static bool
process_hear(struct process *p)
{
	char bytes[4096];
	ssize_t n = read(p->err, bytes, sizeof(bytes));
	size_t len = p->said_more ? strlen(p->said) : 0;

	for (ssize_t i = 0; i < n; i++) {
		bool printable = bytes[i] >= ' ' && bytes[i] <= '~';

		p->said_more = bytes[i] != '\n';
		if (!p->said_more) {
			len = 0;
			continue;
		}
		if (len < sizeof(p->said) - 1)
			p->said[len++] = printable ? bytes[i] : '?';
		p->said[len] = '\0';
	}
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void
on_says(evutil_socket_t, short, void *arg)
{
	struct process *p = arg;

	if (!process_hear(p))
		event_del(&p->says);
}

/* Kills and reaps it, with its group. The wait status. */
static int
process_reap(struct process *p)
{
	int status = 0;

	kill(-p->pid, SIGKILL);
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void
process_end(struct process *p)
{
	if (p->pid == 0)
		return;
	process_reap(p);
	process_release(p);
}

/* why: NULL: it has ended by itself, or is about to. */
static void
process_end_because(struct process *p, const char *why)
{
	char text[PROCESS_SAID_MAX + 128];
	int status = process_reap(p);

	process_hear(p);
	if (why == NULL && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		why = "it has closed its standard output or was killed";
	if (why != NULL)
		snprintf(text, sizeof(text), "%s", why);
	else
		snprintf(text, sizeof(text), "it has ended (%s %d)%s%s",
			 WIFEXITED(status) ? "exit code" : "signal",
			 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
			 *p->said ? ", and said: " : "", p->said);
	process_release(p);
	p->on_end(p->arg, text);
}

static void
on_ended(evutil_socket_t, short, void *arg)
{
	process_end_because(arg, NULL);
}

/* ---- output of the process ---- */

/* Gives out the whole lines among bytes. False: there is no process any more. */
static bool
process_take(struct process *p, const char *bytes, size_t len)
{
	while (len > 0) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end != NULL ? (size_t)(end - bytes) : len;
		pid_t pid = p->pid;

		if (p->len + n > PROCESS_LINE_MAX) {
			process_end_because(p, "it wrote a line of more than 16 MiB, and was ended");
			return false;
		}
		if (p->len + n + 1 > p->size) {
			p->size = 2 * (p->len + n + 1);
			p->line = realloc(p->line, p->size);
			if (p->line == NULL)
				xalloc_fail(0);
		}
		memcpy(p->line + p->len, bytes, n);
		p->len += n;
		if (end == NULL)
			return true;
		p->line[p->len] = '\0';
		n++;
		bytes += n;
		len -= n;
		p->on_line(p->arg, p->line, p->len);
		if (p->pid != pid)
			return false;
		p->len = 0;
		/* The memory of a long line is freed. */
		if (p->size > READ_BYTES) {
			free(p->line);
			p->line = NULL;
			p->size = 0;
		}
	}
	return true;
}

static void
on_readable(evutil_socket_t fd, short, void *arg)
{
	static char bytes[READ_BYTES];
	struct process *p = arg;
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n > 0)
		process_take(p, bytes, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		process_end_because(p, NULL);
}

/* ---- input of the process ---- */

static void
process_flush(struct process *p)
{
	while (evbuffer_get_length(p->waiting) > 0) {
		int n = evbuffer_write(p->waiting, p->in);

		if (n < 0 && errno == EINTR)
			continue;
		/* A pipe without a reader: its end is seen elsewhere. After other errors, such as
		 * ENOMEM, the write is tried again. */
		if (n < 0 && errno == EPIPE)
			evbuffer_drain(p->waiting, evbuffer_get_length(p->waiting));
		else if (n <= 0)
			break;
	}
	if (evbuffer_get_length(p->waiting) > 0)
		event_add(&p->writable, NULL);
}

static void
on_writable(evutil_socket_t, short, void *arg)
{
	process_flush(arg);
}

int
process_write(struct process *p, const char *line, size_t len)
{
	if (p->pid == 0)
		return -EPIPE;
	if (evbuffer_get_length(p->waiting) + len >= PROCESS_WAITING_MAX)
		return -ENOBUFS;
	xassert(evbuffer_add(p->waiting, line, len) == 0 && evbuffer_add(p->waiting, "\n", 1) == 0);
	process_flush(p);
	return 0;
}

/* ---- the beginning ---- */

void
process_init(struct process *p)
{
	p->pid = 0;
	p->pidfd = p->in = p->out = p->err = -1;
	p->line = NULL;
	p->len = p->size = 0;
	p->waiting = NULL;
	/* Assigned at once, so that event_del() is always allowed. */
	event_assign(&p->readable, p->base, -1, 0, on_readable, p);
	event_assign(&p->writable, p->base, -1, 0, on_writable, p);
	event_assign(&p->says, p->base, -1, 0, on_says, p);
	event_assign(&p->ended, p->base, -1, 0, on_ended, p);
}

/* In the child: async-signal-safe calls only. */
static _Noreturn void
run_program(char *const *argv, int in, int out, int err, pid_t parent)
{
	static char *const envp[] = {
		(char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LANG=C.UTF-8",
		(char *)"HOME=/", NULL,
	};
	struct sigaction standard = { .sa_handler = SIG_DFL };
	struct rlimit data;

	if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(127);
	sigaction(SIGPIPE, &standard, NULL);
	/* The bound on memory is this program's own (main.c). */
	if (getrlimit(RLIMIT_DATA, &data) == 0) {
		data.rlim_cur = data.rlim_max;
		setrlimit(RLIMIT_DATA, &data);
	}
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	if (syscall(SYS_close_range, 3, ~0u, 0) < 0)
		_exit(127);
	execve(argv[0], argv, envp);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Makes a pipe. nonblocking: the end that does not block, 0 for reading, 1 for writing. */
static int
make_pipe(int *read_r, int *write_r, int nonblocking)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*read_r = pair[0];
	*write_r = pair[1];
	return fcntl(pair[nonblocking], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int
process_start(struct process *p)
{
	own_fd int in = -1, out = -1, err = -1, in_w = -1, out_r = -1, err_r = -1;
	pid_t parent = getpid(), pid;
	int r = make_pipe(&in, &in_w, 1);

	if (r == 0)
		r = make_pipe(&out_r, &out, 0);
	if (r == 0)
		r = make_pipe(&err_r, &err, 0);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run_program(p->argv, in, out, err, parent);
	p->pid = pid;
	p->in = give_fd(in_w);
	p->out = give_fd(out_r);
	p->err = give_fd(err_r);
	p->said[0] = '\0';
	p->said_more = false;
	p->waiting = evbuffer_new();
	p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (p->pidfd < 0 || p->waiting == NULL) {
		r = p->pidfd < 0 ? -errno : -ENOMEM;
		process_end(p);
		return r;
	}
	event_assign(&p->readable, p->base, p->out, EV_READ | EV_PERSIST, on_readable, p);
	event_assign(&p->writable, p->base, p->in, EV_WRITE, on_writable, p);
	event_assign(&p->says, p->base, p->err, EV_READ | EV_PERSIST, on_says, p);
	event_assign(&p->ended, p->base, p->pidfd, EV_READ | EV_PERSIST, on_ended, p);
	event_add(&p->readable, NULL);
	event_add(&p->says, NULL);
	event_add(&p->ended, NULL);
	return 0;
}
