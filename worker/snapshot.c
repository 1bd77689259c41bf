/* Runs in: the processes of a session that hold its states, and the cells forked from them.
 * Owns:    the state. Each order makes a copy by fork: another snapshot, or a cell. A cell
 * becomes a snapshot once it reports that it has ended by itself. It is a script: its process is
 * trusted no more afterwards than before. */
#include "worker/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "proto/fdpass.h"
#include "proto/frame.h"
#include "worker/ask.h"
#include "worker/execution.h"
#include "worker/interpreter.h"
#include "worker/line.h"
#include "worker/parallel.h"
#include "worker/title.h"
#include "worker/warm.h"
#include "worker/workspace.h"

static void
report(enum report_kind kind, int value)
{
	struct report r = { .kind = kind, .value = value };

	/* Nobody listens: init is gone, and so are we. */
	if (fdpass_send(JAIL_LINE, &r, sizeof(r), NULL, 0, 0) != (ssize_t)sizeof(r))
		_exit(1);
}

/* From here on the line belongs to this process. */
static void
take_line(int line)
{
	if (dup3(line, JAIL_LINE, O_CLOEXEC) < 0)
		_exit(1);
	close(line);
	report(REPORT_FORKED, getpid());
}

/* ---- offsets ---- */

/* A fork shares the offsets of open files. When a cell has left no process, the offsets from
 * before it are restored. */
#define OFFSETS_MAX 1024		/* RLIMIT_NOFILE */

static struct offset {
	int fd;
	off_t at;
} offset[OFFSETS_MAX];
static size_t n_offsets;

static void
remember_offsets(void)
{
	struct entry {
		uint64_t ino, off;
		unsigned short len;
		unsigned char type;
		char name[];
	};
	own_fd int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_Alignas(struct entry) char list[4096];
	struct stat st;
	long n;

	n_offsets = 0;
	while (dir >= 0 && (n = syscall(SYS_getdents64, dir, list, sizeof(list))) > 0)
		for (char *at = list; at < list + n;
		     at += ((struct entry *)(void *)at)->len) {
			int fd = atoi(((struct entry *)(void *)at)->name);
			off_t where;

			if (fd == dir || n_offsets == OFFSETS_MAX || fstat(fd, &st) < 0 ||
			    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
				continue;
			where = lseek(fd, 0, SEEK_CUR);
			if (where >= 0)
				offset[n_offsets++] = (struct offset){ fd, where };
		}
}

static void
restore_offsets(void)
{
	for (size_t i = 0; i < n_offsets; i++)
		lseek(offset[i].fd, offset[i].at, SEEK_SET);
}

/* ---- standard output and error ---- */

/* Where the streams go while the state waits. A thread that a cell has left runs whenever the
 * main thread gives way; its output belongs to no later cell. */
static struct stream {
	int fd, kept;		/* kept: a copy of fd; -1: none */
} stream[] = { { STDOUT_FILENO, -1 }, { STDERR_FILENO, -1 } };

static void
close_streams(void)
{
	own_fd int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (size_t i = 0; null >= 0 && i < sizeof(stream) / sizeof(stream[0]); i++) {
		stream[i].kept = fcntl(stream[i].fd, F_DUPFD_CLOEXEC, JAIL_CONTROL + 1);
		if (stream[i].kept >= 0)
			dup2(null, stream[i].fd);
	}
	interpreter_streams_closed();
}

static void
open_streams(void)
{
	for (size_t i = 0; i < sizeof(stream) / sizeof(stream[0]); i++) {
		if (stream[i].kept < 0)
			continue;
		dup2(stream[i].kept, stream[i].fd);
		close(stream[i].kept);
		stream[i].kept = -1;
	}
}

/* ---- a cell ---- */

/* An earlier cell may have left its own input there. */
static int
take_stdin(struct frame *frame)
{
	own_fd int in = frame->msg.run.has_stdin
		? frame_take_fd(frame, 0) : open("/dev/null", O_RDONLY | O_CLOEXEC);

	return in < 0 || dup2(in, STDIN_FILENO) < 0 ? -EBADF : 0;
}

/* A descriptor that has just arrived may have the number of its own target, in a state whose
 * lower numbers are in use. */
static int
above_ours(int fd)
{
	int above = fcntl(fd, F_DUPFD_CLOEXEC, JAIL_CONTROL + 1);

	if (above < 0)
		_exit(1);
	close(fd);
	return above;
}

/* Init is ending all processes that the cell has started. It cannot fork while our zombies use
 * up the limit, so they are reaped here. */
static void
reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* What runs here, such as a repr of the script's own, changes only this process, which ends. */
static _Noreturn void
look_at_state(const struct msg_run *run, struct msg *done)
{
	interpreter_inspect(run, &done->done);
	_exit(frame_send(JAIL_CONTROL, done, NULL, 0) < 0);
}

/* Returns only in the cell's process, which is a snapshot from then on. */
static void
run_cell(int line, int control, uint32_t port)
{
	struct msg done = { .type = MSG_DONE };
	struct frame frame = { 0 };
	struct timespec since;
	pid_t self = getpid();
	int error = 0;

	clock_gettime(CLOCK_REALTIME_COARSE, &since);
	control = above_ours(control);
	line = above_ours(line);
	if (dup3(control, JAIL_CONTROL, O_CLOEXEC) < 0)
		_exit(1);
	close(control);
	take_line(line);
	if (execution_receive(&frame, true, &error) < 0 || frame.msg.type != MSG_RUN ||
	    take_stdin(&frame) < 0 || jail_limit_cell(&frame.msg.run) < 0)
		_exit(1);
	if (port != 0 && interpreter_use_proxy(port) < 0)
		_exit(1);
	if (frame.msg.run.inspect)
		look_at_state(&frame.msg.run, &done);
	if (error != 0)
		execution_refuse_input(&frame.msg.run, error, &done.done);
	else
		interpreter_cell(&frame.msg.run, &done.done);
	parallel_pause();
	/* A child that the cell forked comes here too, if it runs to the end. */
	if (getpid() != self)
		_exit((int)done.done.exit_code);
	if (workspace_tell(WORKSPACE, JAIL_CONTROL, &since, NULL, !ask_is_open()) < 0 ||
	    frame_send(JAIL_CONTROL, &done, NULL, 0) < 0)
		_exit(1);
	frame_done(&frame);
	close(JAIL_CONTROL);
	close_streams();
	report(REPORT_COMMITTED, self);
	reap_all();
}

/* ---- signals ---- */

/* The signals that the state has blocked. While the process waits as a snapshot all are blocked:
 * a signal for a cell, such as a group's or a timer's, must not end the earlier state. */
static sigset_t state_mask;

static void
block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &state_mask);
}

/* ---- orders ---- */

static int
wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* True in the copy. */
static bool
fork_state(pid_t *pid_r)
{
	int error;

	interpreter_before_copy();
	*pid_r = fork();
	error = errno;
	if (*pid_r == 0) {
		interpreter_after_copy(true);
		return true;
	}
	interpreter_after_copy(false);
	if (*pid_r < 0)
		report(REPORT_REFUSED, error);
	return false;
}

static void
on_copy(struct fdpass_set *fds)
{
	pid_t pid;

	if (fork_state(&pid)) {
		take_line(fds->fd[0]);
		fds->n = 0;
	}
}

static void
on_cell(struct fdpass_set *fds, uint32_t port)
{
	int status;
	pid_t pid;

	remember_offsets();
	if (fork_state(&pid)) {
		open_streams();
		sigprocmask(SIG_SETMASK, &state_mask, NULL);
		run_cell(fds->fd[0], fds->fd[1], port);
		block_signals();
		fds->n = 0;
		return;
	}
	fdpass_close(fds);
	if (pid < 0)
		return;
	/* A cell that has taken our place reports to init, which then ends us. */
	status = wait_for(pid);
	restore_offsets();
	report(REPORT_ENDED, status);
}

static _Noreturn void
wait_for_orders(void)
{
	block_signals();
	for (;;) {
		struct fdpass_set fds = { 0 };
		struct order order = { 0 };
		ssize_t n = fdpass_recv(JAIL_LINE, &order, sizeof(order), &fds);

		/* Init is gone, or has given us up. */
		if (n != (ssize_t)sizeof(order))
			_exit(0);
		/* Processes of a cell that is over; no other process waits for them. */
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		interpreter_drop_signals();
		if (order.kind == ORDER_COPY && fds.n == 1)
			on_copy(&fds);
		else if (order.kind == ORDER_CELL && fds.n == 2)
			on_cell(&fds, order.port);
		fdpass_close(&fds);
	}
}

void
snapshot_live(const struct jail *jail, int line, uint64_t data_bytes)
{
	struct jail_state state;
	sigset_t none;

	/* Init blocks its signals to wait for them; the state's are those of a script. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	title_set("python3", "session");
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	close(JAIL_CONTROL);
	if (jail_confine(jail) < 0)
		_exit(1);
	warm_up();
	interpreter_after_fork();
	if (dup3(line, JAIL_LINE, O_CLOEXEC) < 0 || interpreter_fresh() < 0 ||
	    jail_settle(jail, &state) < 0)
		_exit(1);
	close(line);
	if (jail_limit_data(&state, data_bytes) < 0 || interpreter_session() < 0)
		_exit(1);
	wait_for_orders();
}
