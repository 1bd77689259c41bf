/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: a session's init.
 * Owns:    the cell that runs: its process, and the line to it.
 * Reads:   CELL, STOP and COMMIT; and reports of the cell's process, which runs a script. */
#include "worker/cell.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "proto/fdpass.h"
#include "worker/jail.h"
#include "worker/listener.h"
#include "worker/processes.h"
#include "worker/procfs.h"
#include "worker/reaper.h"
#include "worker/slots.h"
#include "worker/spare.h"
#include "worker/states.h"
#include "worker/trees.h"
#include "worker/where.h"
#include "worker/workspace.h"

#define LOOK_AGAIN_MS 10	/* between looks, after a forced stop, for processes that were just
				 * being forked */
#define LOOKS_MAX 300	/* looks that find no process of the cell before it counts as ended */
#define UNHEARD_MAX 3	/* cells in a row that may not begin before their state is given up */

static int pipes[2];	/* background, of cell_init */

/* How many cells of a slot in a row have not begun because this process did not answer. */
static struct {
	pid_t head;
	unsigned int cells;
} unheard[REPL_SNAPSHOTS_MAX];

static struct {
	bool on;
	unsigned int slot;
	uint64_t id;
	bool look;		/* it only looks at the state */
	enum background_mode background;	/* of the threads and processes that it leaves */
	int awake;		/* the slot that continues after a look; -1: none */
	int line;		/* as for cell_runs */
	int listener;		/* the socket on which it reaches its proxy; -1: none */
	pid_t pid;		/* 0: its copy is not reported yet */
	bool deaf;		/* it has closed its line */
	bool interrupt;		/* it is interrupted as soon as its pid is known */
	bool kill;		/* it is killed as soon as its pid is known */
	bool begun;		/* its code may have run: new processes may be its own */
	bool fell;		/* it has not begun, but threads and processes of earlier cells are
				 * lost */
	bool ready;		/* it has ended by itself, and waits for COMMIT */
	bool tasks;		/* if ready: its event loop has tasks */
	unsigned int ended;	/* how many processes of earlier cells were ended */
	unsigned int looks;	/* how many looks came after a forced stop; 0: no such stop */
	bool asked;		/* the script was asked for its stacks; after that it is killed */
	struct timespec since;
} cell;

void
cell_init(const int background[2])
{
	memcpy(pipes, background, sizeof(pipes));
}

static pid_t
cell_head(void)
{
	return slot_head(cell.slot).pid;
}

/* ---- the end ---- */

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
	return cell.tasks || processes_threads(cell_head()) != 1 || processes_go_on(cell.slot);
}

static void
cell_ended(enum cell_state state, int status, int error, bool by_state)
{
	static char text[2][BACKGROUND_MAX];
	struct msg msg = { .type = MSG_CELL_ENDED, .cell_ended = {
		.id = cell.id, .state = state, .status = (uint32_t)status & 0xffff,
		.error = (uint32_t)error, .by_state = by_state, .ended = cell.ended,
		.background_stdout = read_background(pipes[0], text[0]),
		.background_stderr = read_background(pipes[1], text[1]) } };
	int before;

	cell.on = false;
	reaper_unwatch();
	listener_end(cell.listener);
	if (state == CELL_COMMITTED && cell.background == BACKGROUND_RUN && leaves_some())
		slots_set_awake((int)cell.slot);
	else
		slot_signal(cell.slot, SIGSTOP);
	if (cell.look) {
		if (cell.awake >= 0)
			trees_place((unsigned int)cell.awake);
		slots_wake(cell.awake);
	} else {
		spare_after(cell.slot);
	}
	msg.cell_ended.goes_on = slots_awake() >= 0;
	if (!cell.look && state != CELL_LOST && spare_replaced(cell.slot, &before)) {
		msg.cell_ended.fell = true;
		msg.cell_ended.fell_status = (uint32_t)before & 0xffff;
	} else if (cell.fell && state == CELL_ROLLED_BACK) {
		msg.cell_ended.fell = true;
		msg.cell_ended.fell_status = (uint32_t)status & 0xffff;
	}
	states_tell();
	states_send(&msg);
}

/* Ends all processes except the heads, the process "one", and the processes of other slots. Returns
 * how many were found. */
static unsigned int
cell_end_others(pid_t one)
{
	unsigned int found = cell.look ? 0 : processes_end_left(cell.slot), last;

	cell.ended += found;
	found += reaper_end_others(one, &last);
	if (!cell.begun && !cell.look)
		cell.ended += last;
	return found;
}

/* Keeps the changes of the cell: its process becomes the head of the slot again, and the copy ends.
 */
static void
cell_keep(void)
{
	if (cell.background == BACKGROUND_END)
		cell_end_others(cell.pid);
	reaper_spend(slot_put(cell.slot, (struct head){ .pid = cell.pid, .line = cell.line }));
	slots_weigh(cell.pid, WEIGHT_STATE);
	reaper_reap();
	cell_ended(CELL_COMMITTED, 0, 0, false);
}

/* The cell has ended by itself. The processes that it has started are listed and continue. */
static void
cell_committed(void)
{
	struct msg msg = { .type = MSG_CELL_READY, .cell_ready.id = cell.id };
	pid_t copy = cell_head();

	cell.ended = slot_list_new(cell.slot, cell.pid);
	cell.ready = true;
	if (copy > 0 && processes_is_ending(copy))
		processes_await_end(copy);
	reaper_await_deaths(cell.slot);
	/* The cell has killed its copy, and perhaps all processes that it could, by
	 * kill(-1, SIGKILL). */
	if (cell_head() == 0 && !slots_alone())
		cell.ended += processes_left_gone(cell.slot);
	if (slots_memory_counted())
		cell_keep();
	else
		states_send(&msg);
}

void
cell_commit(const struct msg_commit *message)
{
	/* The cell may have ended, or have been stopped, since CELL_READY. */
	if (cell.on && cell.ready && cell.looks == 0 && message->id == cell.id)
		cell_keep();
}

/* Ends the cell, and the slot has the state from before it. error: the errno with which the head
 * could not make a copy; then the head is unchanged. 0: the cell did not end by itself. */
static void
cell_roll_back(int status, int error)
{
	int seen;

	if (cell.pid == 0 && error == 0)
		cell.fell = true;
	if (cell.pid > 0 && !reaper_saw_end(&seen))
		kill(cell.pid, SIGKILL);
	cell_end_others(0);
	close(cell.line);
	reaper_await_deaths(cell.slot);
	if (cell_head() == 0 && spare_is_of(cell.slot))
		slot_exchange(cell.slot, spare_take());
	if (error == 0 && cell_head() > 0) {
		reaper_prove(cell.slot, cell.look);
		/* If the copy was killed, other states may have been killed, too. */
		reaper_await_deaths(cell.slot);
	}
	if (error == 0 && workspace_tell(WORKSPACE, JAIL_CONTROL, &cell.since, NULL, false) < 0)
		_exit(0);
	cell_ended(cell_head() > 0 ? CELL_ROLLED_BACK : CELL_LOST, status, error, error != 0);
}

void
cell_check(void)
{
	int status;

	if (reaper_saw_end(&status))
		cell_roll_back(status, 0);
	else if (cell.pid == 0 && cell_head() == 0)
		cell_roll_back(SIGKILL, 0);
}

/* ---- stopping ---- */

/* Kills the cell. The cell has ended when its process is reaped. If its copy, which will be the
 * state, is still being made, the cell is killed once the copy is reported. */
static void
cell_end(void)
{
	cell.looks = 1;
	if (cell.pid == 0) {
		cell.kill = true;
		return;
	}
	cell_end_others(0);
	kill(cell.pid, SIGKILL);
}

void
cell_stop(const struct msg_stop *stop)
{
	if (!cell.on || stop->id != cell.id)
		return;
	if (stop->force && stop->where && cell.pid > 0 && !cell.ready && cell.looks == 0) {
		cell.asked = true;
		where_ask(cell.pid);
	} else if (stop->force) {
		cell_end();
	} else if (cell.ready) {
		return;
	} else if (cell.pid > 0) {
		kill(cell.pid, SIGINT);
	} else {
		cell.interrupt = true;
	}
}

/* The head has not answered. Has it not done so too often? Then threads keep it for ever. */
static bool
cell_is_unheard(void)
{
	if (unheard[cell.slot].head != cell_head())
		unheard[cell.slot].cells = 0;
	unheard[cell.slot].head = cell_head();
	return ++unheard[cell.slot].cells >= UNHEARD_MAX;
}

/* Called repeatedly after a forced stop, until the cell has ended: ends processes that were just
 * being forked. */
static void
cell_look_again(void)
{
	bool some = cell.pid > 0 && (cell_end_others(0) > 0 || processes_is_alive(cell.pid));
	bool lost = false;

	reaper_reap();
	cell_check();
	/* The cell has time to end, because freeing much memory takes time. If its copy was never
	 * reported, threads keep the head from forking: the state is as it was, and is given up
	 * only if this happens UNHEARD_MAX times in a row. Then the spare is the state; without one
	 * the state is lost, and the cell's error says why. */
	if (!cell.on || some || cell.looks++ != LOOKS_MAX)
		return;
	if (cell.pid == 0 && !cell.look) {
		bool whole = processes_has_main_thread(cell_head());

		lost = whole && !spare_is_of(cell.slot);
		if (!whole || cell_is_unheard())
			slot_empty(cell.slot);
	}
	cell_roll_back(SIGKILL, cell.pid == 0 && (cell_head() > 0 || lost) ? EBUSY : 0);
}

const struct timespec *
cell_wait(void)
{
	static const struct timespec soon = { .tv_nsec = LOOK_AGAIN_MS * 1000000 };
	static const struct timespec where = { .tv_nsec = WHERE_WAIT_MS * 1000000 };
	static const struct timespec tick = { .tv_nsec = PROCFS_TICK_MS * 1000000 };

	return cell.looks > 0 ? &soon : cell.asked ? &where : &tick;
}

void
cell_late(void)
{
	if (cell.looks > 0)
		cell_look_again();
	else if (cell.asked)
		cell_end();
}

/* ---- reports ---- */

bool
cell_runs(unsigned int *slot_r, int *line_r)
{
	/* Once its copy is reported, the line of a cell that is being ended is not read: only the
	 * end of its process counts. */
	bool ending = cell.looks > 0 && cell.pid > 0;

	*slot_r = cell.slot;
	*line_r = ending || cell.deaf ? -1 : cell.line;
	return cell.on;
}

bool
cell_waits_for_copy(void)
{
	return cell.on && cell.pid == 0;
}

/* The pid of the cell's process is known: lets the cell begin. */
static void
cell_let_begin(pid_t pid)
{
	struct order begin = { .kind = ORDER_BEGIN };

	cell.pid = pid;
	reaper_watch(cell.slot, pid);
	if (cell.look)
		slot_halt_copied(cell.slot, pid);
	slots_weigh(cell.pid, WEIGHT_CELL);
	cell.begun = !cell.kill && fdpass_send_patiently(cell.line, &begin, sizeof(begin), NULL, 0,
							 MSG_DONTWAIT) == (ssize_t)sizeof(begin);
	if (!cell.begun) {
		cell.fell = !cell.look && processes_threads(cell.pid) > 1;
		cell_end();
	} else if (cell.interrupt) {
		kill(cell.pid, SIGINT);
	}
}

/* Lets the cell begin in the process that was the head of its slot. From now on the copy is the
 * head. */
static void
cell_begin_in_head(struct head copy)
{
	struct head own = slot_exchange(cell.slot, copy);

	unheard[cell.slot].cells = 0;
	cell.line = own.line;
	spare_end();
	cell_let_begin(own.pid);
}

void
cell_forked(pid_t pid)
{
	if (cell.look) {
		cell_let_begin(pid);
		return;
	}
	cell_begin_in_head((struct head){ .pid = pid, .line = cell.line });
}

void
cell_refused(int error)
{
	cell_roll_back(0, error > 0 && error < 4096 ? error : EAGAIN);
}

void
cell_report(int r, const struct report *report)
{
	if (r > 0 && report->kind == REPORT_COMMITTED && cell.pid > 0 && !cell.ready &&
	    !cell.look) {
		cell.tasks = report->value != 0;
		cell_committed();
	} else if (r == -EPIPE) {
		/* The cell has closed its line, so it cannot report that it has ended by itself.
		 * The end of its process will be seen when it is reaped. */
		cell.deaf = true;
	} else {
		cell_end();
	}
}

/* ---- the beginning ---- */

/* Ends the spare of another slot; a spare of this slot is kept until the cell has its copy. Waits
 * for the end of the last cell's copy: then everything that the last cell has closed is free, such
 * as the room of a removed file. */
static void
cell_prepare(const struct msg_cell *message, int listener)
{
	memset(&cell, 0, sizeof(cell));
	cell.on = true;
	cell.line = -1;
	cell.listener = listener;
	cell.slot = message->snapshot;
	cell.id = message->id;
	cell.look = message->inspect;
	cell.background = (enum background_mode)message->background;
	cell.awake = -1;
	/* If the cell's own slot is awake, it is not stopped. The processes that it has started
	 * since its last cell are listed when the new cell has ended. */
	if (cell.look || slots_awake() != (int)cell.slot)
		cell.awake = slots_rest();
	slots_set_awake(-1);
	if (!cell.look && !spare_is_of(cell.slot))
		spare_end();
	trees_place(cell.slot);
	workspace_begin(&cell.since);
	procfs_tell_uptime();
	reaper_await_spent();
}

/* Gives the order for the cell. No fork is needed if its copy is the spare, or if the session makes
 * none. Returns what slot_order() returns. */
static int
cell_start(int control, uint16_t port)
{
	struct order order = { .kind = cell.look ? ORDER_LOOK : ORDER_CELL, .port = port,
			       .goes_on = cell.background == BACKGROUND_RUN };
	int r;

	reaper_watch(cell.slot, 0);
	slot_signal(cell.slot, SIGCONT);
	if (!slots_alone() && (cell.look || !spare_is_current(cell.slot)))
		return slot_order_fork(cell.slot, &order, control, &cell.line);
	order.kind = ORDER_RUN;
	r = slot_order(cell.slot, &order, &control, 1);
	if (r == 0)
		cell_begin_in_head(spare_take());
	return r;
}

void
cell_begin(struct frame *frame)
{
	const struct msg_cell *message = &frame->msg.cell;
	own_fd int control = frame_take_fd(frame, 0);
	uint16_t port = 0;
	int listener = message->network ? listener_offer(message->id, &port) : -1, r;

	if (spare_raise_limit(message->memory_bytes))
		procfs_tell_memory(message->memory_bytes);
	cell_prepare(message, listener);
	r = message->network && listener < 0 ? listener : cell_start(control, port);
	/* The head does not read its orders any more: it executes another program, or has closed
	 * its line. The spare takes its place, and what ran beside the head has ended. */
	if (r == -ENOENT && spare_is_of(cell.slot)) {
		reaper_unwatch();
		spare_use();
		if (cell.awake == (int)cell.slot)
			cell.awake = -1;
		r = cell_start(control, port);
	}
	if (r == -ENOENT)
		cell_ended(CELL_LOST, 0, ENOENT, true);
	else if (r < 0)
		cell_ended(CELL_ROLLED_BACK, 0, -r, false);
}
