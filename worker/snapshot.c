/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the processes of a session that hold its states.
 * Owns:    the state. A copy is made by fork, and waits. A cell runs in the process itself, not in
 * the copy, so that the threads and children of earlier cells continue. If the cell does not end by
 * itself, the copy is the state. The process runs scripts, so init does not trust it. */
#include "worker/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "proto/fdpass.h"
#include "proto/frame.h"
#include "worker/ask.h"
#include "worker/descriptors.h"
#include "worker/execution.h"
#include "worker/interpreter.h"
#include "worker/line.h"
#include "worker/parallel.h"
#include "worker/title.h"
#include "worker/trees.h"
#include "worker/warm.h"
#include "worker/workspace.h"

static uint32_t snapshot_number;			/* the number of the current order */
static bool goes_on;			/* threads run while the state waits */
static struct jail_state settled;

static void
snapshot_report(enum report_kind kind, int value)
{
	struct report r = { .kind = kind, .number = snapshot_number, .value = value };

	/* Init is gone, so this process ends, too. */
	if (fdpass_send(JAIL_LINE, &r, sizeof(r), NULL, 0, 0) != (ssize_t)sizeof(r))
		_exit(1);
}

/* Makes line the line of this process. */
static void
snapshot_take_line(int line)
{
	if (dup3(line, JAIL_LINE, O_CLOEXEC) < 0)
		_exit(1);
	close(line);
}

/* Raises the last cell's limit to its maximum. Returns the former one. */
static struct rlimit
lift_limit(__rlimit_resource_t what)
{
	struct rlimit was = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(what, &was);
	setrlimit(what, &(struct rlimit){ was.rlim_max, was.rlim_max });
	return was;
}

/* Cells may have used up all descriptors, and then the descriptors of an order would be lost. So
 * the limit is raised while an order is received. */
static rlim_t descriptors;	/* the soft limit of the state */

static void
reserve_begin(void)
{
	descriptors = lift_limit(RLIMIT_NOFILE).rlim_cur;
}

static void
reserve_end(void)
{
	struct rlimit now = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &now);
	now.rlim_cur = descriptors < now.rlim_max ? descriptors : now.rlim_max;
	setrlimit(RLIMIT_NOFILE, &now);
}

/* ---- standard output and error ---- */

/* While the state waits, the streams lead to JAIL_BACKGROUND: threads that a cell has left may run
 * then, and their output belongs to no cell. */
static void
close_streams(void)
{
	for (int i = 0; i < 2; i++)
		dup2(JAIL_BACKGROUND + i, STDOUT_FILENO + i);
	interpreter_streams_closed();
}

/* Each cell gets the streams, whatever an earlier one has done to descriptors 1 and 2. */
static void
open_streams(void)
{
	for (int i = 0; i < 2; i++)
		dup2(JAIL_STREAMS + i, STDOUT_FILENO + i);
}

/* ---- a cell ---- */

/* Replaces standard input, because an earlier cell may have left its own. */
static int
take_stdin(struct frame *frame)
{
	own_fd int in = frame->msg.run.has_stdin
		? frame_take_fd(frame, 0) : open("/dev/null", O_RDONLY | O_CLOEXEC);

	return in < 0 || dup2(in, STDIN_FILENO) < 0 ? -EBADF : 0;
}

/* Moves a received descriptor to a number above the worker's own ones. If the lower numbers are in
 * use, the descriptor may have the very number to which it will be copied. */
static int
above_ours(int fd)
{
	int above = fcntl(fd, F_DUPFD_CLOEXEC, JAIL_CONTROL + 1);

	if (above < 0)
		_exit(1);
	close(fd);
	return above;
}

/* Lists the variables of the state, and ends the process. So code that runs here, such as a
 * script's own __repr__, does not change the state. */
static _Noreturn void
look_at_state(const struct msg_run *run, struct msg *done)
{
	interpreter_inspect(run, &done->done);
	_exit(frame_send(JAIL_CONTROL, done, NULL, 0) < 0);
}

/* Sends AT_STAKE. This is done before the cell runs: if the cell does not end by itself, only the
 * copy is left, which knows nothing of this process's threads and children. */
static void
tell_stake(const struct msg_run *run)
{
	struct msg msg = { .type = MSG_AT_STAKE };

	interpreter_at_stake(run, &msg.at_stake);
	if (frame_send(JAIL_CONTROL, &msg, NULL, 0) < 0)
		_exit(1);
}

/* Runs a cell. look: this process is a copy that looks at the state; then the function does not
 * return. */
static void
snapshot_run_cell(int control, uint32_t port, bool look)
{
	struct msg done = { .type = MSG_DONE };
	struct frame frame = { 0 };
	struct timespec since;
	pid_t self = getpid();
	int error = 0;

	workspace_begin(&since);
	control = above_ours(control);
	if (dup3(control, JAIL_CONTROL, O_CLOEXEC) < 0)
		_exit(1);
	close(control);
	if (execution_receive(&frame, true, &error) < 0 || frame.msg.type != MSG_RUN ||
	    take_stdin(&frame) < 0 || jail_limit_cell(&settled, &frame.msg.run) < 0)
		_exit(1);
	if (port != 0 && interpreter_use_proxy(port) < 0)
		_exit(1);
	if (frame.msg.run.inspect != look)
		_exit(1);
	if (look)
		look_at_state(&frame.msg.run, &done);
	tell_stake(&frame.msg.run);
	reserve_end();
	if (error != 0)
		execution_refuse_input(&frame.msg.run, error, &done.done);
	else
		interpreter_cell(&frame.msg.run, &done.done);
	fflush(stdout);	/* what C code of the cell has printed */
	parallel_pause();
	/* A child that the cell has forked comes here, too, if it runs to the end of the cell. */
	if (getpid() != self)
		_exit((int)done.done.exit_code);
	reserve_begin();
	if (workspace_tell(WORKSPACE, JAIL_CONTROL, &since, NULL, !ask_is_open()) < 0 ||
	    frame_send(JAIL_CONTROL, &done, NULL, 0) < 0)
		_exit(1);
	frame_done(&frame);
	close(JAIL_CONTROL);
	close_streams();
	/* Between cells the supervisor counts the processor time. */
	lift_limit(RLIMIT_CPU);
	snapshot_report(REPORT_COMMITTED, interpreter_has_tasks());
}

/* ---- signals ---- */

/* The signals that the state has blocked. While a process waits as a snapshot, it blocks all
 * signals: a signal that is meant for a cell, such as one to its process group or one of a timer,
 * must not end the earlier state. */
static sigset_t state_mask;

static void
block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &state_mask);
}

/* Drops pending SIGCONT and SIGCHLD that do not concern the script. The kernel has sent them
 * because processes were stopped and continued between cells, or because the intermediate process
 * of a copy has ended. If a child of the script has ended, SIGCHLD is sent again. */
static void
drop_child_signal(void)
{
	static const struct timespec now;
	siginfo_t child = { .si_pid = 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGCONT);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid != 0)
		kill(getpid(), SIGCHLD);
}

/* ---- orders ---- */

static int
snapshot_wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
}

/* In the intermediate process: reports the copy to init, and ends. So the copy becomes a child of
 * init, and a script that waits for all its children does not find it. */
static _Noreturn void
tell_of_copy(int line, pid_t pid)
{
	struct report r = { .kind = REPORT_FORKED, .number = snapshot_number, .value = pid };

	if (pid < 0)
		_exit(errno);
	_exit(fdpass_send(line, &r, sizeof(r), NULL, 0, 0) == (ssize_t)sizeof(r) ? 0 : EPIPE);
}

enum forked { IS_COPY, HAS_COPY, HAS_NONE };

/* The worker's own descriptors, which a copy shares with its process. */
struct own {
	int fd[13];
};

#define N_OWN (sizeof(((struct own *)NULL)->fd) / sizeof(int))

/* more: another descriptor that came with the order, or -1. done: the pipe that tells when the copy
 * is ready, or NULL. */
static struct own
own_descriptors(int line, int more, const int *done)
{
	return (struct own){ { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, JAIL_STREAMS,
			       JAIL_STREAMS + 1, JAIL_BACKGROUND, JAIL_BACKGROUND + 1, JAIL_LINE,
			       JAIL_CONTROL, line, more, done ? done[0] : -1,
			       done ? done[1] : -1 } };
}

/* Does the process have connections that a copy would share? */
static bool
has_connections(int line, int more)
{
	const struct own own = own_descriptors(line, more, NULL);

	return descriptors_look(own.fd, N_OWN);
}

/* How a copy is made. */
struct copying {
	int line, more;
	uint32_t slot;		/* as in the order */
	bool gives_up;		/* the copy gives up its connections */
	bool connected;		/* it has connections, as far as was seen before the fork: init is
				 * told of the copy only when it has given them up */
};

/* In the intermediate process: forks, and returns only in the copy. If the copy has connections to
 * give up, or files of its own, init is told of it when it is ready, or has ended. */
static void
make_copy(const struct copying *how)
{
	int done[2] = { -1, -1 }, line = how->line;
	char none;
	pid_t pid;

	/* If there is no free descriptor for the pipe, init is told at once. */
	if (how->gives_up && (how->connected || how->slot > 0) && pipe2(done, O_CLOEXEC) < 0)
		done[0] = done[1] = -1;
	pid = fork();
	if (pid < 0)
		tell_of_copy(line, pid);
	if (pid == 0 && how->gives_up) {
		const struct own own = own_descriptors(line, how->more, done);

		descriptors_disconnect(own.fd, N_OWN);
	}
	if (pid == 0 && how->slot > 0)
		trees_follow(how->slot - 1);
	if (done[1] >= 0)
		close(done[1]);
	while (pid > 0 && done[0] >= 0 && read(done[0], &none, 1) < 0 && errno == EINTR)
		;
	if (pid > 0)
		tell_of_copy(line, pid);
	if (done[0] >= 0)
		close(done[0]);
}

/* Raises the limit of processes, to leave room for the copy and for other states. It is raised only
 * a little, because processes that threads start meanwhile keep the raised limit. Returns the
 * former limit. */
static struct rlimit
snapshot_make_room(rlim_t more)
{
	struct rlimit was = { RLIM_INFINITY, RLIM_INFINITY }, now;

	getrlimit(RLIMIT_NPROC, &was);
	now = was;
	now.rlim_cur = was.rlim_max - was.rlim_cur > more ? was.rlim_cur + more : was.rlim_max;
	setrlimit(RLIMIT_NPROC, &now);
	return was;
}

/* Makes a copy. Returns in the copy, and in the process itself when init has been told of the copy.
 * An intermediate process makes the copy. The intermediate process is made by vfork(2): it shares
 * the memory of this process, which waits for its end. So the state is copied only once. The
 * intermediate process never returns from here. The handlers of pthread_atfork(3) run around the
 * one real fork. */
static enum forked
fork_state(const struct copying *how)
{
	struct rlimit processes = snapshot_make_room(REPL_SNAPSHOTS_MAX + REPL_COPYING_MAX);
	pid_t between;
	int error;

	interpreter_before_copy();
	between = vfork();
	error = errno;
	if (between == 0) {
		make_copy(how);
		setrlimit(RLIMIT_NPROC, &processes);
		goes_on = false;
		interpreter_after_copy(true);
		snapshot_take_line(how->line);
		return IS_COPY;
	}
	interpreter_after_copy(false);
	if (between > 0)
		error = snapshot_wait_for(between);
	/* Threads of earlier cells may run from here on, with the former limit. */
	setrlimit(RLIMIT_NPROC, &processes);
	if (error == 0 || between < 0)
		drop_child_signal();
	if (error == 0)
		return HAS_COPY;
	snapshot_report(REPORT_REFUSED, error);
	return HAS_NONE;
}

static void
snapshot_on_copy(struct fdpass_set *fds, const struct order *order)
{
	const struct copying how = { fds->fd[0], -1, order->slot, true,
				     has_connections(fds->fd[0], -1) };

	if (fork_state(&how) == IS_COPY)
		fds->n = 0;
	else
		descriptors_keep();
}

/* Waits for an order, even if a cell has set O_NONBLOCK on the line. */
static void
await_order(void)
{
	struct pollfd order = { .fd = JAIL_LINE, .events = POLLIN };

	while (poll(&order, 1, -1) < 0 && errno == EINTR)
		;
}

/* Takes the order that await_order() has seen. A shortage of memory leaves it in the socket. */
static ssize_t
take_order(struct order *order_r, struct fdpass_set *fds)
{
	ssize_t n;

	while ((n = fdpass_recv(JAIL_LINE, order_r, sizeof(*order_r), fds)) == -ENOMEM ||
	       n == -ENOBUFS || n == -EAGAIN)
		await_order();
	return n;
}

/* Waits for ORDER_BEGIN, which comes when init has set the weight of this process. Before that, if
 * memory gets short, the kernel might end the copy first. */
static void
wait_to_begin(void)
{
	struct fdpass_set fds = { 0 };
	struct order order = { 0 };

	await_order();
	if (take_order(&order, &fds) != (ssize_t)sizeof(order) || order.kind != ORDER_BEGIN)
		_exit(0);
}

static void
begin_cell(int control, uint32_t port, bool look)
{
	wait_to_begin();
	open_streams();
	trees_settle();
	sigprocmask(SIG_SETMASK, &state_mask, NULL);
	snapshot_run_cell(control, port, look);
	block_signals();
}

static void
snapshot_on_cell(struct fdpass_set *fds, const struct order *order)
{
	bool look = order->kind == ORDER_LOOK;
	struct copying how = { fds->fd[0], fds->fd[1], 0, !look, false };
	enum forked forked;

	descriptors_listen();
	how.connected = has_connections(how.line, how.more);
	forked = fork_state(&how);
	if (forked == HAS_NONE)
		return;
	if (forked == HAS_COPY)
		close(fds->fd[0]);
	fds->n = 0;
	if ((forked == IS_COPY) == look) {
		if (!look)
			descriptors_keep();
		begin_cell(fds->fd[1], order->port, look);
		goes_on = order->goes_on;
	} else {
		close(fds->fd[1]);
	}
}

static void
on_run(struct fdpass_set *fds, const struct order *order)
{
	fds->n = 0;
	begin_cell(fds->fd[0], order->port, false);
	goes_on = order->goes_on;
}

/* Drops pending signals: a signal to the process group of a cell has reached the copy, too, which
 * is the state now. */
static void
drop_signals(void)
{
	static const struct timespec now;
	sigset_t all;

	sigfillset(&all);
	while (sigtimedwait(&all, NULL, &now) > 0)
		;
}

/* This process is the state again: the cell has not ended by itself, or has only looked at it. */
static void
snapshot_on_answer(const struct order *order)
{
	drop_signals();
	descriptors_rewind();
	descriptors_listen();
	if (order->kind == ORDER_RETURN)
		interpreter_rolled_back(order->end,
					order->ended < ENDS_MAX ? order->ended : ENDS_MAX);
	snapshot_report(REPORT_HERE, 0);
}

/* Runs tasks with the signal mask of a cell, which their children inherit. */
static void
run_tasks(void)
{
	if (!interpreter_has_tasks())
		return;
	sigprocmask(SIG_SETMASK, &state_mask, NULL);
	interpreter_go_on(JAIL_LINE);
	block_signals();
}

static _Noreturn void
wait_for_orders(void)
{
	block_signals();
	for (;;) {
		struct fdpass_set fds = { 0 };
		struct order order = { 0 };
		ssize_t n;

		if (goes_on)
			run_tasks();
		if (goes_on)
			interpreter_give_way();
		await_order();
		/* Threads of cells run during the wait. The limit is raised only after they have
		 * stopped, or they would open what is reserved for the order. */
		if (goes_on)
			interpreter_take_back();
		reserve_begin();
		n = take_order(&order, &fds);
		/* Init is gone, or has given this process up. */
		if (n != (ssize_t)sizeof(order))
			_exit(0);
		snapshot_number = order.number;
		drop_child_signal();
		interpreter_drop_signals();
		if (order.kind == ORDER_COPY && fds.n == 1)
			snapshot_on_copy(&fds, &order);
		else if ((order.kind == ORDER_CELL || order.kind == ORDER_LOOK) && fds.n == 2)
			snapshot_on_cell(&fds, &order);
		else if (order.kind == ORDER_RUN && fds.n == 1)
			on_run(&fds, &order);
		else if ((order.kind == ORDER_ANSWER || order.kind == ORDER_RETURN) && fds.n == 0)
			snapshot_on_answer(&order);
		fdpass_close(&fds);
		reserve_end();
	}
}

static int
snapshot_take_streams(const int background[2])
{
	for (int i = 0; i < 2; i++)
		if (dup3(background[i], JAIL_BACKGROUND + i, O_CLOEXEC) < 0 ||
		    close(background[i]) < 0 ||
		    dup3(STDOUT_FILENO + i, JAIL_STREAMS + i, O_CLOEXEC) < 0)
			return -errno;
	return 0;
}

/* Does what PREPARE says, before the first cell, and reports to init. */
static void
snapshot_prepare(struct frame *frame)
{
	char text[PREPARED_MOST] = { 0 };
	struct msg_str trouble = { 0 };
	pid_t self = getpid();
	int r = execution_await(frame_take_fd(frame, 0));

	if (r < 0)
		trouble = msg_str(strerrordesc_np(-r));
	else
		interpreter_make_ready(&frame->msg.prepare, &trouble);
	/* A child that an import has forked comes here, too, if it returns from the import. */
	if (getpid() != self)
		_exit(0);
	if (trouble.len > PREPARED_TROUBLE_MAX)
		trouble.len = PREPARED_TROUBLE_MAX;
	memcpy(text + 1, trouble.at, trouble.len);
	if (fdpass_send(JAIL_LINE, text, 1 + trouble.len, NULL, 0, 0) < 0)
		_exit(1);
	frame_done(frame);
}

void
snapshot_live(const struct jail *jail, int line, const int background[2],
	      const struct msg_open *open, struct frame *prepare)
{
	sigset_t none;

	/* The state has the signal mask of a script, not that of init, which blocks the signals
	 * that it waits for. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	title_set("python3", "session");
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	close(JAIL_CONTROL);
	if (jail_confine(jail) < 0)
		_exit(1);
	warm_up();
	interpreter_after_fork();
	if (dup3(line, JAIL_LINE, O_CLOEXEC) < 0 || snapshot_take_streams(background) < 0 ||
	    interpreter_fresh() < 0 ||
	    jail_settle(jail, &settled) < 0)
		_exit(1);
	close(line);
	if (jail_limit_data(&settled, open->data_bytes, open->data_most) < 0 ||
	    jail_limit_processes(open->processes) < 0 || interpreter_session() < 0)
		_exit(1);
	if (open->prepare)
		snapshot_prepare(prepare);
	wait_for_orders();
}
