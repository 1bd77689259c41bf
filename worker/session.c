/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init, pid 1, which never runs Python.
 * Owns:    the snapshots: for each of them, the process that holds its state, and the line to it.
 * Reads:   the supervisor's messages on the control socket, which no other process in the worker
 * has. Also reports of snapshots and cells: their processes run scripts, and one that breaks the
 * protocol loses its state. */
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

#define LOOK_AGAIN_MS 10	/* between looks, after a forced stop, for processes that were just
				 * being forked */
#define LOOKS_MAX 300	/* so many looks find no process of the cell before it counts as ended */
#define TRY_NS 1000000
#define TRIES_MAX 500
#define DEATHS_MAX 20
#define DROP_MS 1000
#define ANSWER_MS 5000		/* the time that a copy has to say that it is the state now */
#define COPY_S 5		/* the time that a snapshot's process has to make a copy */
#define SPARE_S 1		/* the time that it has to make a spare: no message is read
				 * meanwhile */
#define SPARE_ROOM (16 << 20)	/* the free memory, below the limit, that a spare needs */
#define MEASURE_MS 300		/* a spare is measured if nothing has happened for so long */
#define MEASURE_PAUSE 20	/* a pause is so many times as long as the last measurement */
#define UNHEARD_MAX 3		/* a state that lets so many cells in a row not begin is given up */
#define STALE_MAX 256		/* the most late reports that are accepted during one operation */

static bool memory_counted;	/* a controller counts memory: sampling is not needed */
static uint64_t memory_limit;	/* of the session; 0: none */
static bool alone;		/* no copies are made: the state ends with its process */

static struct snapshot {
	pid_t pid;		/* 0: it holds no state */
	int line;
} snapshot[REPL_SNAPSHOTS_MAX];

/* Init's ends of the pipes for standard output and error of threads of earlier cells. */
static int background[2];

/* A slot is the place of a snapshot. Its head is the process that holds the state. A cell runs in
 * the head of its slot; meanwhile the slot has the copy of that process (unless the session is
 * alone), until the cell has ended by itself. Processes that cells have started belong to the slot
 * of the cell (processes.h). They are stopped, unless a cell of that slot runs, or they may go on
 * after their cell. A cell that only looks at the state runs in a copy, which never becomes a
 * state, and the head is stopped meanwhile.
 *
 * now: the current operation. There is one at a time. */
static struct {
	enum { NOTHING, CELL, COPY, SPARE } what;
	unsigned int snapshot, to;	/* the slot; the slot that a copy goes to */
	uint64_t id;		/* of a cell */
	bool look;		/* the cell only looks at the state */
	enum background_mode background;	/* of the threads and processes that the cell leaves
						 */
	int awake;		/* the slot that continues when the operation is over; -1: none */
	unsigned int stale;	/* how many reports about earlier orders came */
	int line;		/* to the copy, until the copy is reported; then to the cell */
	int listener;		/* the socket on which a cell reaches its proxy; -1: none */
	pid_t pid;		/* of the cell; 0: its copy is not reported yet */
	bool deaf;		/* the cell has closed its line */
	bool gone;		/* the cell's process was reaped */
	int status;		/* of that process, if gone */
	bool interrupt;		/* the cell is interrupted as soon as its pid is known */
	bool kill;		/* the cell is killed as soon as its pid is known */
	bool begun;		/* the cell's code may have run: new processes may be its own */
	bool fell;		/* the cell has not begun, but threads and processes of earlier
				 * cells are lost */
	bool ready;		/* the cell has ended by itself, and waits for COMMIT */
	bool tasks;		/* if ready: its event loop has tasks */
	unsigned int ended;	/* how many processes of earlier cells were ended */
	unsigned int looks;	/* how many looks came after a forced stop; 0: no such stop */
	bool asked;		/* the script was asked for its stacks; after that it is killed */
	struct timespec since;
} now;

/* The slot whose head and processes run although there is no operation: its last cell may leave
 * them running. -1: none. Processes that they have started since that cell are not listed yet. */
static int awake = -1;

/* The spare: a copy that is made after the end of a cell. It becomes the state if the head of its
 * slot ends between cells. It serves as the copy for the next cell if nothing has run since it was
 * made. */
static struct spare {
	struct snapshot copy;	/* pid 0: there is none */
	unsigned int slot;	/* of the last cell */
	bool tried;		/* a spare was made, or could not be, or is not needed */
	bool current;		/* nothing has run in the slot since the spare was made */
	bool measured;
	int status;		/* of the slot's head when it has ended, as wait(2) gives it */
} spare = { .tried = true };

/* A head that has ended between cells, so that its spare has become the state. The next CELL_ENDED
 * of the slot reports it. */
static struct {
	bool told;		/* it was reported, or there is none */
	unsigned int slot;
	int status;
} fallen = { .told = true };

/* The slot that was awake when everything was stopped for a restart of the service; -1: none. A
 * process that was just being made then is stopped, too, but may not be listed yet. */
static int held = -1;

static uint32_t orders;		/* the number of the last one */

/* How many cells in a row have not begun because the process did not answer. */
static unsigned int unheard;

/* How children of a lost head had ended, if they ended before it and it has not reaped them: init
 * reaps them. A state that is used again has Python objects for these children, and is told. Only
 * the last ENDS_MAX are kept. */
static struct child_end child_end[ENDS_MAX];
static size_t n_ends;

static void
tell(const struct msg *msg)
{
	/* The supervisor is gone, or has closed the socket: the session ends. */
	if (frame_send(JAIL_CONTROL, msg, NULL, 0) < 0)
		_exit(0);
}

/* ---- snapshots ---- */

static bool
has_spare(unsigned int slot)
{
	return spare.copy.pid > 0 && spare.slot == slot;
}

/* The memory of init, of the states and of the processes that outlived their cells. The spare is
 * left out, because it shares its memory with the state. */
static uint64_t
resting_memory(void)
{
	uint64_t bytes = processes_memory(getpid()) + processes_left_memory();

	for (size_t i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (snapshot[i].pid > 0)
			bytes += processes_memory(snapshot[i].pid);
	return bytes;
}

/* The memory that a waiting copy had alone when it was last measured, and the earliest time of the
 * next measurement. */
static struct {
	uint64_t bytes, next_ms;
} cost;

/* Sends STATES if something has changed. It goes before any other report. A slot whose head has
 * ended still holds a state while it has a spare. */
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

/* The heads, the spare, and one more process. */
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

/* Lists the processes that were made since the last time as those of the slot, except for the
 * heads, the spare and one more process. Returns how many were killed because the list is full. */
static unsigned int
list_new(unsigned int slot, pid_t one)
{
	pid_t keep[KEPT_MAX];

	return processes_leave(keep, list_states(keep, one), slot);
}

/* Sends a signal to the head and the processes of a slot: they are stopped between cells. A timer
 * of a stopped process can continue it, so the supervisor watches the processor time of idle
 * sessions.
 */
static void
signal_slot(unsigned int slot, int signal)
{
	if (snapshot[slot].pid > 0)
		kill(snapshot[slot].pid, signal);
	processes_signal_left(slot, signal);
}

/* Stops the head and the processes of a slot, and all new processes but one. A process that another
 * one has made just before it was stopped is met in the next turn. Must not be called while an
 * intermediate process makes a copy (fork_state): while that process is stopped, the end of the
 * copy would not be seen. */
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

/* As halt, after a copy of the slot's head was made. */
static void
halt_copied(unsigned int slot, pid_t copy)
{
	if (processes_becomes_ours(copy))
		halt(slot, copy);
	else
		signal_slot(slot, SIGSTOP);
}

/* Stops the slot that is awake, until an operation needs it. Returns that slot; -1: none. */
static int
rest(void)
{
	int was = awake;

	awake = -1;
	if (was >= 0)
		halt((unsigned int)was, 0);
	return was;
}

/* Sets the weight of a process (processes_weigh), but only if memory can run short in the worker's
 * own cgroup. If it can run short only on the whole machine, all processes of the worker must end
 * before any process of the host. */
static void
weigh(pid_t pid, const char *weight)
{
	if (memory_counted)
		processes_weigh(pid, weight);
}

/* Ends the spare, and waits: its memory and its open files are free afterwards. */
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

/* To be called before the slot gets another state, or none: stops and drops what is known of it. */
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

/* Ends a state, and waits: its memory is free when the next cell begins and memory is measured. */
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

/* Sends an order to a snapshot's head. 0; -ENOENT: the snapshot holds no state, or its head has
 * closed the line or does not read it, and is ended; or another -errno. */
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

/* As send_order, with two descriptors: the other end of a new line, now.line; and more, if it is
 * not -1. */
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

/* The copy that the last cell did not need, until it is reaped. Until then files that the cell has
 * closed are still open in this copy. */
static pid_t spent;

/* Notes how a process has ended, if it was made before the current copy. Processes that a cell has
 * started since then are not noted: they may be those of a fork bomb. */
static void
note_end(pid_t pid, int status)
{
	bool older = pid < spare.copy.pid ||
		     (now.what == CELL && pid < snapshot[now.snapshot].pid);

	/* An end by SIGKILL is not noted: init ends processes in this way, and the state assumes it
	 * of every child that it is not told of. */
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

/* To be called after an operation: the slot that was awake before it continues. */
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

/* Ends the operation SPARE, with a spare or without one. */
static void
spare_over(void)
{
	now.what = NOTHING;
	if (spare.current && snapshot[spare.slot].pid > 0)
		kill(snapshot[spare.slot].pid, SIGSTOP);
}

/* Is there enough memory for a spare? A fork needs memory for page tables. If there is none, the
 * kernel ends a process, which may be the state. (Before a cell, the supervisor makes sure that
 * there is room.) Memory that a process shares with the zygote does not count: init has only such
 * memory, so init's size is subtracted once for each process. */
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

/* Begins to make a spare. Until it is made no message is read. */
static void
make_spare(void)
{
	spare.tried = true;
	if (!has_room()) {
		/* A slot that is awake is stopped: it might grow and be ended for that, and there
		 * would be no spare. */
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

/* Measures the memory that the spare has alone. The kernel walks its page tables: ten microseconds
 * for a MiB. */
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

	/* The first head of a session is still starting: it must not be stopped. */
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
	/* The whole slot continues, not only the head: the head may wait for the intermediate
	 * process of an earlier copy. */
	signal_slot(now.snapshot, SIGCONT);
	r = give_order(&snapshot[copy->from], ORDER_COPY, 0, -1);
	if (r < 0)
		copied(-r);
}

/* ---- cells ---- */

/* Reads what threads of earlier cells have written since the last answer, and drops the bytes that
 * are too many: a script may have made the pipe larger. */
static struct msg_bin
read_background(int fd, char *to)
{
	char rest[4096];
	ssize_t n = read(fd, to, BACKGROUND_MAX);

	for (int i = 0; i < (1 << 20) / (int)sizeof(rest) && read(fd, rest, sizeof(rest)) > 0; i++)
		;
	return (struct msg_bin){ to, n > 0 ? (size_t)n : 0 };
}

/* Are there threads, processes or tasks that cells have started? */
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

/* Ends all processes except the heads, the spare, one more process, and the processes of other
 * slots. Returns how many were found. If init cannot fork, not even after all visible processes
 * were ended, there are invisible ones, and the worker has to end. */
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

/* Waits for other heads to end if the head of this slot is gone: a cell that has killed its own
 * copy may have killed other states, too. Killed processes take some time to end, and init has to
 * report which states are left. */
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

/* Keeps the changes of the cell: its process becomes the head of the slot again, and the copy ends.
 */
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

/* The cell has ended by itself. The processes that it has started are listed and continue. */
static void
on_committed(void)
{
	struct msg msg = { .type = MSG_CELL_READY, .cell_ready.id = now.id };
	pid_t copy = snapshot[now.snapshot].pid;

	now.ended = list_new(now.snapshot, now.pid);
	now.ready = true;
	if (copy > 0 && processes_is_ending(copy))
		processes_outlives(copy, DROP_MS);
	await_deaths();
	/* The cell has killed its copy, and perhaps all processes that it could, by
	 * kill(-1, SIGKILL). */
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
	/* The cell may have ended, or have been stopped, since CELL_READY. */
	if (now.what == CELL && now.ready && now.looks == 0 && message->id == now.id)
		commit();
}

/* Is this a late report about an earlier order? A process whose threads have kept it from reading
 * its orders reports when the operation is over. */
static bool
is_stale(const struct report *report)
{
	return (report->kind == REPORT_REFUSED || report->kind == REPORT_HERE) &&
	       report->number != orders && now.stale++ < STALE_MAX;
}

/* Reads a report. 1: *report_r has it; 0: there is none now; -EPIPE: the other end is closed; or
 * -EBADMSG. */
static int
receive(int line, struct report *report_r)
{
	ssize_t n;

	/* A report may bring a descriptor that takes long to close: such a report is refused. */
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

/* Makes sure that a head that is the state again is alive: the cell may have killed it, and it may
 * take time to end. After a look, the head is not waited for: it answers when its threads let it.
 */
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
	/* The cell may have stopped the process. */
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

/* Called between operations. If the head of the spare's slot is gone: ends the processes that it
 * has left, and makes the spare the state. */
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

/* Ends the cell, and the slot has the state from before it. error: the errno with which the head
 * could not make a copy; then the head is unchanged. 0: the cell did not end by itself. */
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
		/* If the copy was killed, other states may have been killed, too. */
		await_deaths();
	}
	if (error == 0 && workspace_tell(WORKSPACE, JAIL_CONTROL, &now.since, NULL, false) < 0)
		_exit(0);
	cell_ended(p->pid > 0 ? CELL_ROLLED_BACK : CELL_LOST, status, error, error != 0);
}

/* Kills the cell. The cell has ended when its process is reaped. If its copy, which will be the
 * state, is still being made, the cell is killed once the copy is reported. */
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

/* Ends the operation if the process that it needs is gone. A cell whose copy is gone continues: it
 * may still end by itself, and then its process is the state. */
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

/* Called repeatedly after a forced stop, until the cell has ended: ends processes that were just
 * being forked. */
static void
look_again(void)
{
	bool some = now.pid > 0 && (end_others(0) > 0 || processes_is_alive(now.pid));

	reap();
	check();
	/* The cell has time to end, because freeing much memory takes time. If its copy was never
	 * reported, threads keep the head from forking: the state is as it was, and is given up
	 * only if this happens UNHEARD_MAX times in a row and there is a spare. */
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

/* The head of the snapshot has broken the protocol, or has ended. */
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

/* Lets the cell begin: the pid of its process is known. */
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
		/* The copy has the weight of the head that it was made from. A head with a spare
		 * has the weight of a cell. */
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
		/* The cell has closed its line, so it cannot report that it has ended by itself.
		 * The end of its process will be seen when it is reaped. */
		now.deaf = true;
	} else {
		end_cell();
	}
}

/* ---- the supervisor ---- */

/* Lets the cell begin in the head without a fork: its copy is the spare, or the session makes none.
 */
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

/* Begins a cell. listener: as in now. The result is as of send_order. */
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
	/* If the cell's own slot is awake, it is not stopped. The processes that it has started
	 * since its last cell are listed when the new cell has ended. */
	if (now.look || awake != (int)cell->snapshot)
		now.awake = rest();
	awake = -1;
	/* A spare of another slot ends. One of this slot is kept until the cell has its copy. */
	if (!now.look && spare.slot != cell->snapshot)
		end_spare();
	if (!now.look && spare.copy.pid > 0 && spare.current)
		at_once = true;
	clock_gettime(CLOCK_REALTIME_COARSE, &now.since);
	procfs_tell_uptime();
	/* The last cell's copy has to end first: then all that the cell has closed is free, such as
	 * the room of a removed file. */
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

	if (cell->memory_bytes > memory_limit) {
		memory_limit = cell->memory_bytes;
		procfs_tell_memory(memory_limit);
	}
	r = try_cell(cell, control, listener, port);

	/* The head does not read its orders any more: it executes another program, or has closed
	 * its line. The spare takes its place. */
	if (r == -ENOENT && has_spare(cell->snapshot)) {
		use_spare();
		r = try_cell(cell, control, listener, port);
	}
	if (r == -ENOENT)
		cell_ended(CELL_LOST, 0, ENOENT, true);
	else if (r < 0)
		cell_ended(CELL_ROLLED_BACK, 0, -r, false);
}

/* Stops the slot that is awake and ends the spare, so that nothing can grow until the next message.
 * stays: the session outlives the supervisor until the end of its socket, and each of its processes
 * is stopped. None can evade this: the kernel repeats a fork during which the signal has come. */
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

/* Called between operations: looks what has become of the states, and reports it. */
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
			/* Once its copy is reported, the line of a cell that is being ended is not
			 * read: only the end of its process counts. */
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
			/* The head may have ended just after its copy was reported: the copy is the
			 * state. */
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

/* Sets the weight of init, which every snapshot inherits. Init is dumpable for a moment; at this
 * time there is no process that could look into it. */
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
	procfs_end_tick();
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
