/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init, pid 1, which never runs Python.
 * Owns:    the snapshots: for each the process that holds a state, and the line to it.
 * Reads:   the supervisor's messages on the control socket, which no other process in the worker
 * has; and reports of snapshots and cells. Those are scripts: one that breaks the protocol loses
 * its state. */
#include "worker/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/stall.h"
#include "proto/fdpass.h"
#include "proto/frame.h"
#include "worker/interpreter.h"
#include "worker/line.h"
#include "worker/listener.h"
#include "worker/procfs.h"
#include "worker/snapshot.h"
#include "worker/processes.h"
#include "worker/where.h"
#include "worker/workspace.h"

#define LOOK_AGAIN_MS 10	/* after a forced stop, for processes that were just being forked */
#define LOOKS_MAX 300	/* when none of its processes is left */
#define TRY_NS 1000000
#define TRIES_MAX 500
#define DEATHS_MAX 20
#define DROP_MS 1000
#define ANSWER_MS 5000		/* for a copy that is to be the state */
#define COPY_S 5		/* for a snapshot to fork */
#define SPARE_S 1		/* likewise, while no message is read */
#define SPARE_ROOM (16 << 20)	/* below the memory limit */
#define MEASURE_MS 300		/* after a copy was made, and nothing has happened since */
#define MEASURE_PAUSE 20	/* so many times what the last measurement has taken */
#define UNHEARD_MAX 3		/* cells in a row that a process keeps from beginning */
#define STALE_MAX 256		/* reports about earlier orders, during one operation */

static bool memory_counted;	/* by a controller: sampling is not needed */
static uint64_t memory_limit;	/* of the session; 0: none */
static bool alone;		/* no copy is made of the state: what ends its process ends it */

static struct snapshot {
	pid_t pid;		/* 0: it holds no state */
	int line;
} snapshot[REPL_SNAPSHOTS_MAX];

/* Init's ends of the pipes for what threads of earlier cells write to standard output and error. */
static int background[2];

/* Slots hold states. A cell runs in the process that held the state of its slot, the head; the
 * slot has its copy, unless the session is alone, until the cell has ended by itself. What cells
 * have started belongs to their slot (processes.h), and is stopped unless a cell of that slot runs,
 * or it goes on after one. What only looks at the state is a copy that is nothing's state, and the
 * head rests.
 *
 * The current operation; one at a time. */
static struct {
	enum { NOTHING, CELL, COPY, SPARE } what;
	unsigned int snapshot, to;	/* to: of a copy */
	uint64_t id;		/* of a cell */
	bool look;		/* the cell only looks */
	enum background_mode background;	/* what becomes of what the cell leaves */
	int awake;		/* the slot that goes on when this is over; -1: none */
	unsigned int stale;	/* reports about earlier orders */
	int line;		/* of the copy, until it is reported; then of the cell */
	int listener;		/* the socket on which a cell reaches its proxy; -1: none */
	pid_t pid;		/* of the cell; 0: its copy is not reported yet */
	bool deaf;		/* it has closed its line */
	bool gone;		/* reaped */
	int status;		/* if gone */
	bool interrupt;		/* as soon as the pid is known */
	bool kill;		/* likewise */
	bool begun;		/* its code may have run: what is new may be its own */
	bool fell;		/* it has not begun, and what went on before it is gone */
	bool ready;		/* it has ended by itself, and waits for COMMIT */
	bool tasks;		/* then: its event loop has something to do */
	unsigned int ended;	/* processes of earlier cells that were ended */
	unsigned int looks;	/* after a forced stop; 0: none */
	bool asked;		/* it may still tell where it is; then it is stopped */
	struct timespec since;
} now;

/* The slot whose processes run while there is no operation, as its last cell has left them; -1:
 * none. Those that they have started since then are not listed yet. */
static int awake = -1;

/* A copy from the end of the last cell. It is the state if the process of its slot ends by itself,
 * and the copy of the next cell if nothing has run since then. */
static struct spare {
	struct snapshot copy;	/* pid 0: there is none */
	unsigned int slot;	/* of the last cell */
	bool tried;		/* there is one, or cannot be */
	bool current;		/* nothing goes on in the slot */
	bool measured;
	int status;		/* of the slot's process, as wait(2) gives it */
} spare = { .tried = true };

/* A spare that has become the state, until a cell of the slot tells it. */
static struct {
	bool told;		/* there is none to tell of */
	unsigned int slot;
	int status;
} fallen = { .told = true };

/* The slot that went on when everything was stopped for a restart of the service; -1: none. A
 * process that was just being made then is stopped too, and may not be listed yet. */
static int held = -1;

static uint32_t orders;		/* the number of the last one */

/* How many cells in a row have not begun because the process did not answer. */
static unsigned int unheard;

/* Children of a process that is gone which had ended before it: init reaps them. A state that is
 * used again has objects for them. The last of them. */
static struct child_end child_end[ENDS_MAX];
static size_t n_ends;

static void
tell(const struct msg *msg)
{
	/* Without a supervisor the session ends. */
	if (frame_send(JAIL_CONTROL, msg, NULL, 0) < 0)
		_exit(0);
}

/* ---- snapshots ---- */

static bool
has_spare(unsigned int slot)
{
	return spare.copy.pid > 0 && spare.slot == slot;
}

/* The spare shares its memory with the state. */
static uint64_t
resting_memory(void)
{
	uint64_t bytes = processes_memory(getpid()) + processes_left_memory();

	for (size_t i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (snapshot[i].pid > 0)
			bytes += processes_memory(snapshot[i].pid);
	return bytes;
}

/* What a copy has cost, when last measured, and when the next measurement may be. */
static struct {
	uint64_t bytes, next_ms;
} cost;

/* Sent before any other report. A state whose process has ended is there while its spare is. */
static void
tell_states(void)
{
	static struct msg_states told;
	struct msg msg = { .type = MSG_STATES };

	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (snapshot[i].pid > 0 || has_spare(i))
			msg.states.snapshots |= 1U << i;
	if (!memory_counted && awake < 0)
		msg.states.bytes = resting_memory();
	msg.states.spare_bytes = cost.bytes;
	if (msg.states.snapshots == told.snapshots && msg.states.bytes == told.bytes &&
	    msg.states.spare_bytes == told.spare_bytes)
		return;
	told = msg.states;
	tell(&msg);
}

static void
empty(struct snapshot *p)
{
	if (p->pid == 0)
		return;
	kill(p->pid, SIGKILL);
	close(p->line);
	p->pid = 0;
}

/* The states, the spare, and one more. */
#define KEPT_MAX (REPL_SNAPSHOTS_MAX + 2)

static size_t
list_states(pid_t *keep_r, pid_t one)
{
	size_t n = 0;

	for (size_t i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (snapshot[i].pid > 0)
			keep_r[n++] = snapshot[i].pid;
	if (spare.copy.pid > 0)
		keep_r[n++] = spare.copy.pid;
	keep_r[n++] = one;
	return n;
}

/* What was made since the last time is the slot's, except for states and one more process. How many
 * were ended because they are too many. */
static unsigned int
list_new(unsigned int slot, pid_t one)
{
	pid_t keep[KEPT_MAX];

	return processes_leave(keep, list_states(keep, one), slot);
}

/* What is in a slot, stopped between its cells. A stopped process may be continued by a timer of
 * its own; the supervisor looks at what a session uses while it is idle. */
static void
signal_slot(unsigned int slot, int signal)
{
	if (snapshot[slot].pid > 0)
		kill(snapshot[slot].pid, signal);
	processes_signal_left(slot, signal);
}

/* Stops what is in a slot, with all that is new but one. A process that another one made before it
 * was stopped is met in the next turn. Never while a process is between a state and its copy: while
 * that one is stopped, the copy's end is not seen. */
static void
halt(unsigned int slot, pid_t one)
{
	size_t met;

	do {
		met = processes_met();
		signal_slot(slot, SIGSTOP);
		list_new(slot, one);
	} while (processes_met() != met);
}

/* The same after a copy of the slot's process was made. */
static void
halt_copied(unsigned int slot, pid_t copy)
{
	if (processes_becomes_ours(copy))
		halt(slot, copy);
	else
		signal_slot(slot, SIGSTOP);
}

/* Nothing goes on any more until an operation needs it. The slot that did; -1: none. */
static int
rest(void)
{
	int was = awake;

	awake = -1;
	if (was >= 0)
		halt((unsigned int)was, 0);
	return was;
}

/* Only where memory can run short in the worker's own cgroup. Where it can run short on the
 * whole machine only, all our processes must end before any of the host's. */
static void
weigh(pid_t pid, const char *weight)
{
	if (memory_counted)
		processes_weigh(pid, weight);
}

/* Its memory, and what it has open, are free afterwards. */
static void
end_spare(void)
{
	pid_t pid = spare.copy.pid;

	if (pid == 0)
		return;
	empty(&spare.copy);
	if (snapshot[spare.slot].pid > 0)
		weigh(snapshot[spare.slot].pid, WEIGHT_STATE);
	processes_outlives(pid, DROP_MS);
}

/* The slot gets another state, or none. */
static void
forget(unsigned int slot)
{
	if (awake == (int)slot)
		rest();
	if (spare.slot == slot)
		end_spare();
	if (fallen.slot == slot)
		fallen.told = true;
}

/* Its memory is free when the next cell begins and memory is measured. */
static void
drop(struct snapshot *p)
{
	pid_t pid = p->pid;

	forget((unsigned int)(p - snapshot));
	empty(p);
	processes_end_left((unsigned int)(p - snapshot));
	if (pid > 0)
		processes_outlives(pid, DROP_MS);
}

static void
put(struct snapshot *p, pid_t pid, int line)
{
	empty(p);
	*p = (struct snapshot){ .pid = pid, .line = line };
}

/* Makes a new line; *theirs_r is the other end. 0 or -errno. */
static int
make_line(int *ours_r, int *theirs_r)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ours_r = pair[0];
	*theirs_r = pair[1];
	return 0;
}

/* 0; -ENOENT: the snapshot holds no state, or does not listen and is given up; or another
 * -errno. */
static int
send_order(struct snapshot *p, enum order_kind kind, uint16_t port, const int *fd, size_t n_fds)
{
	struct order order = { .kind = kind, .number = ++orders, .port = port,
			       .goes_on = now.background == BACKGROUND_RUN };
	ssize_t n;

	if (p->pid == 0)
		return -ENOENT;
	n = fdpass_send_patiently(p->line, &order, sizeof(order), fd, n_fds, MSG_DONTWAIT);
	if (n == (ssize_t)sizeof(order))
		return 0;
	if (n != -EPIPE && n != -ECONNRESET && n != -EAGAIN)
		return n < 0 ? (int)n : -EIO;
	empty(p);
	return -ENOENT;
}

/* Sends the order with the other end of a new line, now.line, and with one more descriptor if
 * that is not -1. As send_order. */
static int
give_order(struct snapshot *p, enum order_kind kind, uint16_t port, int more)
{
	int fd[2] = { -1, more }, r = make_line(&now.line, &fd[0]);

	if (r < 0)
		return r;
	r = send_order(p, kind, port, fd, more < 0 ? 1 : 2);
	close(fd[0]);
	if (r < 0)
		close(now.line);
	return r;
}

/* The copy that the last cell did not need, until it is reaped. Files that the cell closed are open
 * in it until then. */
static pid_t spent;

/* What a cell has started since its copy was made is not remembered: it may be a fork bomb. */
static void
note_end(pid_t pid, int status)
{
	bool older = pid < spare.copy.pid ||
		     (now.what == CELL && pid < snapshot[now.snapshot].pid);

	/* SIGKILL is what all that goes on is ended by, and what is assumed. */
	if (older && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
		child_end[n_ends++ % ENDS_MAX] = (struct child_end){ pid, status };
}

static void
reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (now.what == CELL &&
		    pid == (now.pid > 0 ? now.pid : snapshot[now.snapshot].pid)) {
			now.gone = true;
			now.status = status;
		}
		note_end(pid, status);
		if (pid == spent)
			spent = 0;
		if (pid == spare.copy.pid) {
			close(spare.copy.line);
			spare.copy.pid = 0;
		}
		for (size_t i = 0; i < REPL_SNAPSHOTS_MAX; i++)
			if (snapshot[i].pid == pid) {
				if (i == spare.slot)
					spare.status = status;
				close(snapshot[i].line);
				snapshot[i].pid = 0;
			}
	}
}

/* ---- copies ---- */

/* After an operation: what was going on before it does so again. */
static void
wake(int slot)
{
	awake = slot >= 0 && snapshot[slot].pid > 0 ? slot : -1;
	if (awake >= 0)
		signal_slot((unsigned int)slot, SIGCONT);
}

static bool
wants_spare(void)
{
	return now.what == NOTHING && !spare.tried && !alone &&
	       snapshot[spare.slot].pid > 0;
}

/* There is one, or there is none. */
static void
spare_over(void)
{
	now.what = NOTHING;
	if (spare.current && snapshot[spare.slot].pid > 0)
		kill(snapshot[spare.slot].pid, SIGSTOP);
}

/* A fork needs memory for page tables. If there is none, the kernel ends a process, which may be
 * the state. Before a cell, the supervisor sees to it that there is room. What every process shares
 * with the zygote is not this session's, and init has nothing else. */
static bool
has_room(void)
{
	uint64_t used = resting_memory(), zygote = processes_memory(getpid()), shared = zygote;
	struct statvfs files = { 0 };

	for (size_t i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (snapshot[i].pid > 0)
			shared += zygote;
	if (statvfs(WORKSPACE, &files) < 0)
		return false;
	used = used > shared ? used - shared : 0;
	return memory_limit == 0 ||
	       used + (files.f_blocks - files.f_bfree) * files.f_frsize + SPARE_ROOM <=
	       memory_limit;
}

/* Until it is made no message is read. */
static void
make_spare(void)
{
	spare.tried = true;
	if (!has_room()) {
		/* What goes on might grow, and nothing would be left. */
		rest();
		return;
	}
	memset(&now, 0, sizeof(now));
	now.what = SPARE;
	now.snapshot = spare.slot;
	spare.current = awake < 0;
	if (spare.current)
		kill(snapshot[now.snapshot].pid, SIGCONT);
	if (give_order(&snapshot[now.snapshot], ORDER_COPY, 0, -1) < 0)
		spare_over();
}

static void
spare_made(pid_t pid)
{
	spare.copy = (struct snapshot){ .pid = pid, .line = now.line };
	spare.status = SIGKILL;
	spare.measured = false;
	processes_becomes_ours(pid);
	weigh(snapshot[spare.slot].pid, WEIGHT_CELL);
	spare_over();
}

static bool
wants_measurement(void)
{
	return now.what == NOTHING && spare.copy.pid > 0 && !spare.measured;
}

/* The kernel walks the page tables of the copy: ten microseconds for a MiB. */
static void
measure_spare(void)
{
	uint64_t begun_ms = clock_ms(), ended_ms;

	if (begun_ms < cost.next_ms)
		return;
	spare.measured = true;
	cost.bytes = processes_alone_memory(spare.copy.pid);
	ended_ms = clock_ms();
	cost.next_ms = ended_ms + MEASURE_PAUSE * (ended_ms - begun_ms);
}

static void
copied(int error)
{
	struct msg msg = { .type = MSG_COPIED, .copied = {
		.to = now.to, .error = (uint32_t)error } };

	/* A session's first process has not been told to wait yet. */
	if (now.what == COPY) {
		if (error != 0)
			halt(now.snapshot, 0);
		else
			halt_copied(now.snapshot, snapshot[now.to].pid);
		wake(now.awake);
	}
	now.what = NOTHING;
	tell_states();
	tell(&msg);
}

static void
on_copy(const struct msg_copy *copy)
{
	int r;

	memset(&now, 0, sizeof(now));
	now.what = COPY;
	now.snapshot = copy->from;
	now.to = copy->to;
	now.awake = rest();
	/* All of it: the head may wait for the process between it and its last copy. */
	signal_slot(now.snapshot, SIGCONT);
	r = give_order(&snapshot[copy->from], ORDER_COPY, 0, -1);
	if (r < 0)
		copied(-r);
}

/* ---- cells ---- */

/* What threads of earlier cells have written since the last answer. A script may have made the pipe
 * larger. */
static struct msg_bin
read_background(int fd, char *to)
{
	char rest[4096];
	ssize_t n = read(fd, to, BACKGROUND_MAX);

	for (int i = 0; i < (1 << 20) / (int)sizeof(rest) && read(fd, rest, sizeof(rest)) > 0; i++)
		;
	return (struct msg_bin){ to, n > 0 ? (size_t)n : 0 };
}

/* Whether threads, processes or tasks that cells have started are there. */
static bool
leaves_some(void)
{
	return now.tasks || processes_threads(snapshot[now.snapshot].pid) != 1 ||
	       processes_go_on(now.snapshot);
}

static void
cell_ended(enum cell_state state, int status, int error, bool by_state)
{
	static char text[2][BACKGROUND_MAX];
	struct msg msg = { .type = MSG_CELL_ENDED, .cell_ended = {
		.id = now.id, .state = state, .status = (uint32_t)status & 0xffff,
		.error = (uint32_t)error, .by_state = by_state, .ended = now.ended,
		.background_stdout = read_background(background[0], text[0]),
		.background_stderr = read_background(background[1], text[1]) } };

	now.what = NOTHING;
	listener_end(now.listener);
	if (state == CELL_COMMITTED && now.background == BACKGROUND_RUN && leaves_some())
		awake = (int)now.snapshot;
	else
		signal_slot(now.snapshot, SIGSTOP);
	if (now.look) {
		wake(now.awake);
	} else {
		spare.tried = has_spare(now.snapshot);
		spare.slot = now.snapshot;
	}
	msg.cell_ended.goes_on = awake >= 0;
	if (!fallen.told && fallen.slot == now.snapshot && !now.look && state != CELL_LOST) {
		fallen.told = msg.cell_ended.fell = true;
		msg.cell_ended.fell_status = (uint32_t)fallen.status & 0xffff;
	} else if (now.fell && state == CELL_ROLLED_BACK) {
		msg.cell_ended.fell = true;
		msg.cell_ended.fell_status = (uint32_t)status & 0xffff;
	}
	tell_states();
	tell(&msg);
}

/* Ends all processes but the snapshots and one, and what other slots have; how many were found. If
 * even init cannot fork, and still cannot after all visible processes were ended, there are
 * invisible ones, which only the end of the worker ends. */
static unsigned int
end_others(pid_t one)
{
	pid_t keep[KEPT_MAX];
	unsigned int found = now.look ? 0 : processes_end_left(now.snapshot), first;
	size_t n = list_states(keep, one);

	now.ended += found;
	for (int i = 0; processes_end_others(keep, n, &first) < 0; i++) {
		if (i == TRIES_MAX)
			_exit(1);
		found += first;
		reap();
		processes_pause(TRY_NS);
	}
	if (!now.begun && !now.look)
		now.ended += first;
	return found + first;
}

/* A cell that has killed its own snapshot may have killed others too. They take time to die;
 * init waits, so that it can report at once which are left. */
static void
await_deaths(void)
{
	struct snapshot *p = &snapshot[now.snapshot];

	reap();
	if (p->pid > 0 && !processes_is_alive(p->pid))
		empty(p);
	for (int i = 0; p->pid == 0 && !alone && i < DEATHS_MAX; i++) {
		processes_pause(TRY_NS);
		reap();
	}
}

/* From here on the cell's process holds the state again, and its copy ends. */
static void
commit(void)
{
	if (now.background == BACKGROUND_END)
		end_others(now.pid);
	spent = snapshot[now.snapshot].pid;
	put(&snapshot[now.snapshot], now.pid, now.line);
	weigh(now.pid, WEIGHT_STATE);
	reap();
	cell_ended(CELL_COMMITTED, 0, 0, false);
}

/* The cell has ended by itself; what it has started goes on. */
static void
on_committed(void)
{
	struct msg msg = { .type = MSG_CELL_READY, .cell_ready.id = now.id };

	now.ended = list_new(now.snapshot, now.pid);
	now.ready = true;
	await_deaths();
	/* It has killed its copy, and with it what else it could, such as by kill(-1, SIGKILL). */
	if (snapshot[now.snapshot].pid == 0 && !alone)
		now.ended += processes_left_gone(now.snapshot);
	if (memory_counted)
		commit();
	else
		tell(&msg);
}

static void
on_commit(const struct msg_commit *message)
{
	/* It may have died, or have been stopped, since then. */
	if (now.what == CELL && now.ready && now.looks == 0 && message->id == now.id)
		commit();
}

/* A process that its own threads keep from its orders reports when the operation is over. */
static bool
is_stale(const struct report *report)
{
	return (report->kind == REPORT_REFUSED || report->kind == REPORT_HERE) &&
	       report->number != orders && now.stale++ < STALE_MAX;
}

/* 1; 0: nothing for now; -EPIPE: the other end is closed; or -EBADMSG. */
static int
receive(int line, struct report *report_r)
{
	ssize_t n;

	/* A report with a descriptor that takes long to close is refused. */
	stall_watch();
	n = recv(line, report_r, sizeof(*report_r), MSG_DONTWAIT | MSG_TRUNC);
	if (stall_waited())
		return -EBADMSG;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == (ssize_t)sizeof(*report_r))
		return is_stale(report_r) ? 0 : 1;
	return n == 0 ? -EPIPE : -EBADMSG;
}

/* Makes sure that the copy has not been killed by the cell: it may take time to die. What was only
 * looked at answers when its own threads let it, and is not waited for. */
static void
prove(struct snapshot *p)
{
	struct order order = { .kind = now.look ? ORDER_ANSWER : ORDER_RETURN,
			       .number = ++orders,
			       .ended = n_ends < ENDS_MAX ? (uint32_t)n_ends : ENDS_MAX };
	struct pollfd answer = { .fd = p->line, .events = POLLIN };
	struct report report;
	int n = -1;

	memcpy(order.end, child_end, sizeof(order.end));
	n_ends = 0;
	/* The cell may have stopped it. */
	kill(p->pid, SIGCONT);
	if (fdpass_send_patiently(p->line, &order, sizeof(order), NULL, 0, MSG_DONTWAIT) ==
	    (ssize_t)sizeof(order)) {
		if (now.look)
			return;
		stall_rest();
		do
			n = poll(&answer, 1, ANSWER_MS);
		while (n < 0 && errno == EINTR);
		stall_turn();
	}
	if (n <= 0 || receive(p->line, &report) <= 0 || report.kind != REPORT_HERE)
		empty(p);
}

/* Between operations. If the process that went on is gone: ends what it has left. */
static void
use_spare(void)
{
	struct snapshot *p = &snapshot[spare.slot];

	if (spare.copy.pid == 0 || p->pid > 0)
		return;
	memset(&now, 0, sizeof(now));
	now.snapshot = spare.slot;
	awake = -1;
	*p = spare.copy;
	spare.copy.pid = 0;
	end_others(0);
	await_deaths();
	if (p->pid > 0)
		prove(p);
	signal_slot(now.snapshot, SIGSTOP);
	fallen.told = false;
	fallen.slot = now.snapshot;
	fallen.status = spare.status;
}

/* error: the process could not fork, and is as it was. */
static void
roll_back(int status, int error)
{
	struct snapshot *p = &snapshot[now.snapshot];

	if (now.pid == 0 && error == 0)
		now.fell = true;
	if (now.pid > 0 && !now.gone)
		kill(now.pid, SIGKILL);
	end_others(0);
	close(now.line);
	await_deaths();
	if (p->pid == 0 && has_spare(now.snapshot)) {
		*p = spare.copy;
		spare.copy.pid = 0;
	}
	if (error == 0 && p->pid > 0) {
		prove(p);
		/* What killed it may have killed checkpoints. */
		await_deaths();
	}
	if (error == 0 && workspace_tell(WORKSPACE, JAIL_CONTROL, &now.since, NULL, false) < 0)
		_exit(0);
	cell_ended(p->pid > 0 ? CELL_ROLLED_BACK : CELL_LOST, status, error, error != 0);
}

/* The end of its process, which is reaped, is the cell's end. A copy that is just being made is
 * the state. */
static void
end_cell(void)
{
	now.looks = 1;
	if (now.pid == 0) {
		now.kill = true;
		return;
	}
	end_others(0);
	kill(now.pid, SIGKILL);
}

static void
on_stop(const struct msg_stop *stop)
{
	if (now.what != CELL || stop->id != now.id)
		return;
	if (stop->force && stop->where && now.pid > 0 && !now.ready && now.looks == 0) {
		now.asked = true;
		where_ask(now.pid);
	} else if (stop->force) {
		end_cell();
	} else if (now.ready) {
		return;
	} else if (now.pid > 0) {
		kill(now.pid, SIGINT);
	} else {
		now.interrupt = true;
	}
}

/* A cell continues without its copy: it may still end by itself, and is the state then. */
static void
check(void)
{
	if (now.what == SPARE && snapshot[now.snapshot].pid == 0) {
		close(now.line);
		now.what = NOTHING;
	} else if (now.what == COPY && snapshot[now.snapshot].pid == 0) {
		close(now.line);
		await_deaths();
		copied(ENOENT);
	} else if (now.what == CELL && now.gone) {
		roll_back(now.status, 0);
	} else if (now.what == CELL && now.pid == 0 && snapshot[now.snapshot].pid == 0) {
		roll_back(SIGKILL, 0);
	}
}

/* After a forced stop the end should have been reported by now. */
static void
look_again(void)
{
	bool some = now.pid > 0 && (end_others(0) > 0 || processes_is_alive(now.pid));

	reap();
	check();
	/* Freeing much memory takes time. A state whose threads do not let it fork is as it was,
	 * unless they never do. */
	if (now.what != CELL || some || now.looks++ != LOOKS_MAX)
		return;
	if (now.pid == 0 && !now.look &&
	    (!processes_has_main_thread(snapshot[now.snapshot].pid) ||
	     (has_spare(now.snapshot) && ++unheard >= UNHEARD_MAX))) {
		unheard = 0;
		empty(&snapshot[now.snapshot]);
	}
	roll_back(SIGKILL, now.pid == 0 && snapshot[now.snapshot].pid > 0 ? EBUSY : 0);
}

/* ---- what is reported ---- */

/* The snapshot's process breaks the protocol, or has died. */
static void
give_up_snapshot(void)
{
	empty(&snapshot[now.snapshot]);
	check();
}

static void
on_refused(int error)
{
	if (now.what == CELL) {
		roll_back(0, error > 0 && error < 4096 ? error : EAGAIN);
		return;
	}
	close(now.line);
	if (now.what == SPARE)
		spare_over();
	else
		copied(EAGAIN);
}

static void
on_snapshot_report(void)
{
	struct report report;
	int r = receive(snapshot[now.snapshot].line, &report);

	if (r == 0)
		return;
	if (r > 0 && report.kind == REPORT_REFUSED && now.pid == 0)
		on_refused(report.value);
	else
		give_up_snapshot();
}

/* The process of the cell is known. */
static void
after_forked(void)
{
	struct order begin = { .kind = ORDER_BEGIN };

	weigh(now.pid, WEIGHT_CELL);
	now.begun = !now.kill && fdpass_send_patiently(now.line, &begin, sizeof(begin), NULL, 0,
						       MSG_DONTWAIT) == (ssize_t)sizeof(begin);
	if (!now.begun) {
		now.fell = !now.look && processes_threads(now.pid) > 1;
		end_cell();
	} else if (now.interrupt) {
		kill(now.pid, SIGINT);
	}
}

static void
on_forked(pid_t pid)
{
	struct snapshot head;

	if (now.what == SPARE) {
		spare_made(pid);
		return;
	}
	if (now.what == COPY) {
		if (now.awake == (int)now.to)
			now.awake = -1;
		forget(now.to);
		processes_end_left(now.to);
		put(&snapshot[now.to], pid, now.line);
		/* Beside a spare, the process that it comes from weighs as a cell. */
		weigh(pid, WEIGHT_STATE);
		copied(0);
		return;
	}
	if (now.look) {
		now.pid = pid;
		halt_copied(now.snapshot, pid);
		after_forked();
		return;
	}
	unheard = 0;
	head = snapshot[now.snapshot];
	snapshot[now.snapshot] = (struct snapshot){ .pid = pid, .line = now.line };
	now.pid = head.pid;
	now.line = head.line;
	end_spare();
	after_forked();
}

/* Handles a report of the copy, or of the cell. */
static void
on_own_report(void)
{
	struct report report;
	int r = receive(now.line, &report);

	if (r == 0)
		return;
	if (r > 0 && report.kind == REPORT_FORKED && now.pid == 0 && report.value > 1) {
		on_forked(report.value);
	} else if (now.what != CELL) {
		on_refused(EAGAIN);
	} else if (r > 0 && report.kind == REPORT_COMMITTED && now.pid > 0 && !now.ready &&
		   !now.look) {
		now.tasks = report.value != 0;
		on_committed();
	} else if (r == -EPIPE) {
		/* Its end will be reported by another process; the cell cannot report that it
		 * has ended well. */
		now.deaf = true;
	} else {
		end_cell();
	}
}

/* ---- the supervisor ---- */

/* The process of the state begins at once: its copy is the spare, or it has none. */
static int
begin_at_once(struct snapshot *p, uint16_t port, int control)
{
	int r = send_order(p, ORDER_RUN, port, &control, 1);

	if (r < 0)
		return r;
	now.pid = p->pid;
	now.line = p->line;
	*p = spare.copy;
	spare.copy.pid = 0;
	after_forked();
	return 0;
}

/* listener: as in now. As send_order. */
static int
try_cell(const struct msg_cell *cell, int control, int listener, uint16_t port)
{
	bool at_once = alone;

	memset(&now, 0, sizeof(now));
	now.what = CELL;
	now.line = -1;
	now.listener = listener;
	now.snapshot = cell->snapshot;
	now.id = cell->id;
	now.look = cell->inspect;
	now.background = (enum background_mode)cell->background;
	now.awake = -1;
	/* Those that its own slot has started meanwhile are listed when it has ended. */
	if (now.look || awake != (int)cell->snapshot)
		now.awake = rest();
	awake = -1;
	/* One of this slot is kept until there is another copy. */
	if (!now.look && spare.slot != cell->snapshot)
		end_spare();
	if (!now.look && spare.copy.pid > 0 && spare.current)
		at_once = true;
	clock_gettime(CLOCK_REALTIME_COARSE, &now.since);
	procfs_tell_uptime();
	/* What the cell before has closed is free, such as the room of a removed file. */
	if (spent > 0)
		processes_outlives(spent, DROP_MS);
	if (cell->network && listener < 0)
		return listener;
	signal_slot(cell->snapshot, SIGCONT);
	return at_once ? begin_at_once(&snapshot[cell->snapshot], port, control)
		       : give_order(&snapshot[cell->snapshot], now.look ? ORDER_LOOK : ORDER_CELL,
				    port, control);
}

static void
on_cell(const struct msg_cell *cell, struct frame *frame)
{
	own_fd int control = frame_take_fd(frame, 0);
	uint16_t port = 0;
	int listener = cell->network ? listener_offer(cell->id, &port) : -1, r;

	r = try_cell(cell, control, listener, port);

	/* The process that went on does not listen any more: it is another program, or has closed
	 * its line. */
	if (r == -ENOENT && has_spare(cell->snapshot)) {
		use_spare();
		r = try_cell(cell, control, listener, port);
	}
	if (r == -ENOENT)
		cell_ended(CELL_LOST, 0, ENOENT, true);
	else if (r < 0)
		cell_ended(CELL_ROLLED_BACK, 0, -r, false);
}

/* Nothing can grow meanwhile. A session that stays waits for the end of the socket, and each of its
 * processes is stopped; none can evade that, because a fork during it is repeated after it is
 * over. */
static void
on_hold(const struct msg_hold *hold)
{
	struct msg msg = { .type = MSG_HELD, .held.number = hold->number };
	int was;

	if (hold->stays && prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0)
		_exit(1);
	was = rest();
	if (hold->undo && spare.copy.pid > 0) {
		empty(&snapshot[spare.slot]);
		use_spare();
		tell_states();
	}
	end_spare();
	if (hold->stays) {
		kill(-1, SIGSTOP);
		held = was;
	}
	tell(&msg);
}

/* Between operations: what has become of the states. */
static void
settle(void)
{
	reap();
	use_spare();
	tell_states();
}

static void
on_message(struct frame *frame)
{
	const struct msg *msg = &frame->msg;

	/* The supervisor sends no further order before the answer to the last one. */
	if (now.what != NOTHING && msg->type != MSG_STOP && msg->type != MSG_COMMIT)
		_exit(1);
	if (held >= 0)
		list_new((unsigned int)held, 0);
	held = -1;
	if (now.what == NOTHING)
		settle();
	if (msg->type == MSG_CELL)
		on_cell(&msg->cell, frame);
	else if (msg->type == MSG_STOP)
		on_stop(&msg->stop);
	else if (msg->type == MSG_COMMIT)
		on_commit(&msg->commit);
	else if (msg->type == MSG_COPY)
		on_copy(&msg->copy);
	else if (msg->type == MSG_DROP)
		drop(&snapshot[msg->drop.snapshot]);
	else if (msg->type == MSG_HOLD)
		on_hold(&msg->hold);
	else
		_exit(1);
}

static void
on_child(int signal)
{
	(void)signal;
}

static _Noreturn void
serve(void)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	sigset_t none;

	sigemptyset(&none);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	for (;;) {
		static const struct timespec soon = { .tv_nsec = LOOK_AGAIN_MS * 1000000 };
		static const struct timespec late = { .tv_sec = COPY_S };
		static const struct timespec spare_late = { .tv_sec = SPARE_S };
		static const struct timespec at_once;
		static const struct timespec quiet = { .tv_nsec = MEASURE_MS * 1000000 };
		static const struct timespec where = { .tv_nsec = WHERE_WAIT_MS * 1000000 };
		static const struct timespec tick = { .tv_nsec = PROCFS_TICK_MS * 1000000 };
		bool is_cell = now.what == CELL, forced = is_cell && now.looks > 0;
		struct pollfd poll[3] = {
			{ .fd = now.what == SPARE ? -1 : JAIL_CONTROL, .events = POLLIN },
			{ .fd = now.what != NOTHING && snapshot[now.snapshot].pid > 0
				? snapshot[now.snapshot].line : -1, .events = POLLIN },
			/* Of a cell that is being ended only its end counts, once its copy is
			 * reported. */
			{ .fd = now.what != NOTHING && (!forced || now.pid == 0) && !now.deaf
				? now.line : -1, .events = POLLIN },
		};
		int n;

		if (now.what == NOTHING)
			settle();
		if (is_cell)
			procfs_tell_uptime();
		stall_rest();
		n = ppoll(poll, 3, forced ? &soon : now.what == COPY ? &late :
			  now.what == SPARE ? &spare_late : wants_spare() ? &at_once :
			  wants_measurement() ? &quiet :
			  is_cell ? now.asked ? &where : &tick : NULL, &none);
		stall_turn();
		if (n < 0) {
			/* The state may be in a copy that was just reported. */
			if (is_cell && now.pid == 0)
				on_own_report();
			reap();
			check();
		} else if (n == 0 && is_cell && !forced) {
			if (now.asked)
				end_cell();
		} else if (n == 0 && now.what == NOTHING && !wants_spare()) {
			measure_spare();
		} else if (n == 0 && now.what == NOTHING) {
			make_spare();
		} else if (n == 0 && !forced) {
			on_refused(EAGAIN);
		} else if (n == 0) {
			look_again();
		} else if (poll[2].revents != 0) {
			on_own_report();
		} else if (poll[1].revents != 0) {
			on_snapshot_report();
		} else {
			if (frame_reader_read(&reader, JAIL_CONTROL, &frame) != 1)
				_exit(0);
			on_message(&frame);
			frame_done(&frame);
		}
	}
}

/* Also for every snapshot, which inherits it. No process here can look into init at this time. */
static void
weigh_self(void)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	weigh(getpid(), WEIGHT_STATE);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void
session_live(const struct jail *jail, const struct msg_open *open)
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };
	int line = -1, theirs = -1, out[2], err[2];
	sigset_t child;
	pid_t pid = -1;

	memory_counted = jail->memory_counted;
	memory_limit = open->memory_bytes;
	alone = open->alone;
	weigh_self();
	if (pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(err, O_CLOEXEC | O_NONBLOCK) == 0 &&
	    make_line(&line, &theirs) == 0)
		pid = fork();
	if (pid < 0)
		jail_die(JAIL_CONTROL, "a session's first process", errno);
	if (pid == 0) {
		procfs_leave();
		close(line);
		close(out[0]);
		close(err[0]);
		snapshot_live(jail, theirs, (int[2]){ out[1], err[1] }, open);
	}
	background[0] = out[0];
	background[1] = err[0];
	close(theirs);
	close(out[1]);
	close(err[1]);
	close_range(STDIN_FILENO, STDERR_FILENO, 0);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &action, NULL);
	put(&snapshot[0], pid, line);
	if (stall_guard(NULL) < 0)
		_exit(1);
	copied(0);
	serve();
}
