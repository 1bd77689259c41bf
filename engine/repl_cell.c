/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the socket of the cell that runs in a session.
 * Reads:   messages of the cell's process, hostile from the first byte; a breach of the protocol
 * ends the cell. Also init's report of how the cell ended. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/watched.h"
#include "engine/engine_parts.h"
#include "engine/execution_files.h"
#include "engine/execution_parts.h"
#include "engine/repl_parts.h"
#include "engine/tenants.h"
#include "engine/worker.h"

/* ---- its socket ---- */

void
repl_close_channel(struct repl *repl)
{
	if (repl->channel < 0)
		return;
	event_del(&repl->readable);
	event_del(&repl->writable);
	frame_reader_done(&repl->reader);
	frame_writer_done(&repl->writer);
	close(repl->channel);
	repl->channel = -1;
}

static int
cell_on_message(struct execution *e, struct frame *frame)
{
	const enum msg_type type = frame->msg.type;

	/* Nothing may follow DONE. */
	if (e->facts.has_done)
		return -EBADMSG;
	if (type == MSG_AT_STAKE)
		return execution_keep_stake(e, frame);
	if (type != MSG_DONE)
		return execution_take(e, frame);
	if (frame->msg.done.id != e->serial)
		return -EBADMSG;
	execution_keep_done(e, frame);
	return 0;
}

/* Reads one message. 1: it was taken; 0: there is none now; or -errno. */
static int
read_message(struct repl *repl)
{
	struct frame frame = { 0 };
	int r;

	if (repl->may_pass)
		watched_begin(tenant_principal(repl->tenant));
	r = frame_reader_read(&repl->reader, repl->channel, &frame);
	if (watched_stalled("cell", tenant_principal(repl->tenant))) {
		frame_done(&frame);
		return -EBADMSG;
	}
	if (r > 0) {
		int bad = cell_on_message(repl->execution, &frame);

		frame_done(&frame);
		if (bad < 0)
			return bad;
	}
	return r;
}

static void
on_readable(evutil_socket_t, short, void *arg)
{
	struct repl *repl = arg;
	int r = read_message(repl);

	if (r >= 0)
		return;
	/* The socket was closed, or is broken. Init reports how the cell ended. */
	event_del(&repl->readable);
	if (r == -EBADMSG)
		execution_on_broken(repl->execution);
}

static void
on_writable(evutil_socket_t fd, short, void *arg)
{
	struct repl *repl = arg;

	if (frame_writer_flush(&repl->writer, fd) > 0)
		event_add(&repl->writable, NULL);
}

/* Makes the socket pair; *theirs_r: the cell's end. 0 or -errno. */
static int
make_channel(struct repl *repl, int *theirs_r)
{
	struct event_base *base = repl->engine->base;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	/* Only this end does not block: the cell blocks in reads and writes. */
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
		close(pair[0]);
		close(pair[1]);
		return -errno;
	}
	repl->channel = pair[0];
	repl->may_pass = watched_refuse(repl->channel);
	*theirs_r = pair[1];
	frame_reader_init(&repl->reader, FROM_WORKER);
	frame_writer_init(&repl->writer, WORKER_WRITER_MAX);
	event_assign(&repl->readable, base, pair[0], EV_READ | EV_PERSIST, on_readable, repl);
	event_assign(&repl->writable, base, pair[0], EV_WRITE, on_writable, repl);
	event_add(&repl->readable, NULL);
	return 0;
}

/* ---- its beginning ---- */

/* What a cell needs of the kernel. It is made before anything changes: if there is too little, the
 * session stays as it is. */
struct cell_parts {
	int theirs;		/* the cell's end of the channel */
	int in;			/* its standard input; -1: none */
};

static int
make_parts(struct repl *repl, struct execution *e, struct cell_parts *parts)
{
	int r = make_channel(repl, &parts->theirs);

	if (r < 0)
		return r;
	if (e->request.stdin_text.at != NULL) {
		parts->in = execution_make_stdin(e);
		r = parts->in < 0 ? parts->in : 0;
	}
	if (r == 0)
		execution_grant_network(e);
	if (r == 0 && e->grant != NULL)
		r = worker_pass_descriptors(repl->worker, true);	/* LISTENER */
	if (r == 0)
		return 0;
	close(parts->theirs);
	if (parts->in >= 0)
		close(parts->in);
	repl_close_channel(repl);
	return r;
}

/* Notes the tasks and the processor time that exist before the cell and are not charged to it.
 * Memory is charged to the session as a whole. Returns the number of tasks. */
static uint32_t
take_stock(struct repl *repl, const struct execution *e, struct watchdog_usage *usage_r)
{
	const struct engine *engine = repl->engine;
	struct worker *w = repl->worker;
	struct watchdog_usage usage = { 0 };
	uint32_t tasks = 0;
	uint32_t most;

	memset(&w->before, 0, sizeof(w->before));
	if (w->leaf != NULL)
		cgroup_leaf_counters(w->leaf, true, &w->before);
	if (w->leaf == NULL || engine->sampled) {
		watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
		tasks = usage.tasks;
	}
	if (engine->pids_counted)
		cgroup_leaf_pids(w->leaf, &tasks);
	w->cpu_baseline_us = w->leaf != NULL ? w->before.cpu_us : usage.cpu_us;
	/* How many of the tasks that exist before a cell are not charged to it: init; one for each
	 * state; and tasks that earlier cells have left, but at most as many as one cell may have.
	 * Without this bound, each cell could add as many tasks as its limit allows. */
	most = 1 + (uint32_t)__builtin_popcount(repl->snapshots) + e->limits.pids;
	tasks = tasks < most ? tasks : most;
	/* The baseline of a script has one task more: the script's own process. */
	w->baseline.tasks = tasks + 1;
	*usage_r = usage;
	return tasks;
}

static int
send_run(struct repl *repl, struct execution *e, int in, uint32_t tasks)
{
	struct msg msg = { .type = MSG_RUN };
	int r = 0;

	msg.run = execution_run_message(e);
	msg.run.has_cell = e->request.cell != 0;
	msg.run.cell = e->request.cell;
	if (!repl->engine->pids_counted)
		msg.run.processes = tasks + e->limits.pids;
	for (size_t i = 0; r == 0 && i < e->request.n_inputs; i++) {
		struct msg input = { .type = MSG_INPUT, .input = e->request.input[i] };

		r = frame_writer_put(&repl->writer, &input, NULL, 0);
	}
	if (r == 0)
		r = execution_mounts_put(e, repl->worker, &repl->places, &repl->writer);
	if (r == 0)
		r = frame_writer_put(&repl->writer, &msg, &in, in >= 0 ? 1 : 0);
	else if (in >= 0)
		close(in);
	if (r == 0)
		on_writable(repl->channel, EV_WRITE, repl);
	return r;
}

/* Above this size the memory of the session counts as used up. */
static uint64_t
roomy_bytes(const struct repl *repl)
{
	return repl->memory_bytes > CELL_ROOM ? repl->memory_bytes - CELL_ROOM : 0;
}

/* The usage without the memory of the waiting copy. The sum over all processes counts that memory
 * twice, because the copy shares it with the state. */
static struct watchdog_usage
counted_once(const struct repl *repl, const struct watchdog_usage *usage)
{
	struct watchdog_usage once = *usage;
	uint64_t bytes = repl->rests_with + usage->kept_bytes;

	if (repl->rests_with > 0 && bytes < usage->memory_bytes)
		once.memory_bytes = bytes;
	return once;
}

/* The bytes that the session holds in memory. *kept_r: the part of them that is files. */
static uint64_t
held_memory(const struct repl *repl, const struct watchdog_usage *usage, uint64_t *kept_r)
{
	const struct worker *w = repl->worker;
	uint64_t used = 0;

	*kept_r = 0;
	if (!repl->engine->memory_counted) {
		struct watchdog_usage once = counted_once(repl, usage);

		used = watchdog_looked_memory(&w->look, &w->baseline, &once);
		/* This can be above the limit, by the bytes that were written between two looks;
		 * the size of the file system bounds it. */
		*kept_r = usage->kept_bytes < used ? usage->kept_bytes : used;
	} else if (cgroup_leaf_memory(w->leaf, &used) < 0) {
		used = 0;
	}
	return used;
}

/* The memory limit for the next cell. Files outlive the cell that filled the memory with them. A
 * later cell must be able to run and to remove them, so it gets CELL_ROOM beyond the limit. This
 * room does not add up from cell to cell. */
static uint64_t
memory_limit(const struct repl *repl, uint64_t used, uint64_t kept)
{
	if (used <= roomy_bytes(repl))
		return repl->memory_bytes;
	used -= kept;
	return kept + (used < repl->memory_bytes ? used : repl->memory_bytes) + CELL_ROOM;
}

/* Takes the output that threads and processes of earlier cells have written to the pipes since the
 * last cell. */
static void
take_background(const struct repl *repl, struct execution *e)
{
	static unsigned char text[BACKGROUND_MAX];
	struct worker *w = repl->worker;

	for (int i = 0; repl->background.is_heard && i < STREAM_COUNT; i++) {
		ssize_t n = w->pipe[i] >= 0 ? read(w->pipe[i], text, sizeof(text)) : 0;

		if (n > 0)
			output_add(&e->background, (enum stream)i, text, (size_t)n);
	}
	/* The pipes are emptied, because a thread may have been in the middle of a write. */
	worker_output_discard(w);
}

/* What a worker imported before it was the session's is the first cell's, which is no look. */
static void
note_first(struct repl *repl, struct execution *e)
{
	if (e->request.inspect) {
		e->made_ready = false;
		return;
	}
	e->is_first = !repl->has_begun;
	repl->has_begun = true;
	e->worker->made_ready[0] = '\0';
}

int
repl_start_cell(struct repl *repl, struct execution *e)
{
	struct worker *w = repl->worker;
	struct cell_parts parts = { -1, -1 };
	struct cgroup_limits limits = {
		.cpu_percent = repl->engine->standard.cpu_percent,
	};
	struct msg cell = { .type = MSG_CELL, .cell = { .id = e->serial,
							.snapshot = e->request.snapshot,
							.memory_bytes = repl->memory_bytes,
							.inspect = e->request.inspect,
							.background = e->request.background } };
	struct watchdog_usage usage;
	uint64_t uncounted, used, kept, memory_max;
	uint32_t tasks;
	int r = make_parts(repl, e, &parts);

	if (r < 0)
		return r;
	repl_set_phase(repl, REPL_CELL);
	repl->execution = e;
	repl->ready = false;
	repl_background_count(repl);
	tasks = take_stock(repl, e, &usage);
	uncounted = repl_uncounted(repl);
	used = held_memory(repl, &usage, &kept) + uncounted;
	memory_max = memory_limit(repl, used, kept);
	e->usage.memory_max = memory_max;
	e->limits.memory_bytes = repl->memory_bytes;	/* raised while it waited, perhaps */
	/* While threads of the session run, init has not reported what the state holds, and the sum
	 * over all processes has the waiting copy in it. */
	if (repl->engine->memory_counted || repl->rests_with > 0)
		e->facts.state_bytes = used;
	limits.memory_bytes = memory_max > uncounted + CELL_ROOM
			      ? memory_max - uncounted : CELL_ROOM;
	limits.pids = tasks + e->limits.pids;
	if (w->leaf != NULL)
		r = cgroup_leaf_limit(w->leaf, &limits);
	execution_start_clock(e);
	execution_begin(e, w);
	note_first(repl, e);
	take_background(repl, e);
	worker_run_cell(w, e);
	cell.cell.network = e->grant != NULL;
	if (r == 0)
		r = repl_send(repl, &cell, parts.theirs);
	else
		close(parts.theirs);
	if (r == 0)
		r = send_run(repl, e, parts.in, tasks);
	else if (parts.in >= 0)
		close(parts.in);
	if (r < 0)
		execution_lose(e, STOP_PROTOCOL);
	return 0;
}

int
repl_send_cell(struct repl *repl, const struct msg *msg, int fd)
{
	int r = frame_writer_put(&repl->writer, msg, &fd, fd >= 0 ? 1 : 0);

	if (r == 0)
		on_writable(repl->channel, EV_WRITE, repl);
	return r;
}

bool
repl_stop_cell(struct repl *repl, bool interrupt, bool where)
{
	struct msg stop = { .type = MSG_STOP, .stop = { .id = repl->execution->serial,
							.force = !interrupt, .where = where } };

	return repl_send(repl, &stop, -1) == 0;
}

/* ---- its end ---- */

/* Reads the messages that arrived before the end. No event brings what the kernel had no memory
 * for, so it is asked again. */
static void
read_messages(struct repl *repl)
{
	unsigned int tries = 1000;

	while (repl->channel >= 0 &&
	       (read_message(repl) > 0 || (repl->reader.starved && tries-- > 0)))
		;
}

/* The memory of a cell that has ended by itself, and waits for COMMIT, is known. */
static void
repl_on_cell_looked(void *arg)
{
	struct repl *repl = arg;
	struct execution *e = repl->execution;
	struct msg commit = { .type = MSG_COMMIT, .commit.id = e->serial };

	if (!execution_fits_memory(e))
		execution_stop(e, STOP_MEMORY);
	else if (repl_send(repl, &commit, -1) < 0)
		execution_lose(e, STOP_PROTOCOL);
}

int
repl_on_cell_ready(struct repl *repl, const struct msg_cell_ready *ready)
{
	struct execution *e = repl->execution;

	if (repl->phase != REPL_CELL || ready->id != e->serial || repl->ready ||
	    repl->engine->memory_counted)
		return -EBADMSG;
	repl->ready = true;
	/* The cell was stopped already, and init has the order or will get it. */
	if (e->stopping == KILLED)
		return 0;
	read_messages(repl);
	/* memory_limit() of the next cell uses this measurement, too. */
	if (repl_look(repl, roomy_bytes(repl), repl_on_cell_looked))
		repl_on_cell_looked(repl);
	return 0;
}

int
repl_on_listener(struct repl *repl, struct frame *frame)
{
	if (repl->phase != REPL_CELL || execution_on_listener(repl->execution, frame) < 0)
		return -EBADMSG;
	worker_pass_descriptors(repl->worker, false);
	return 0;
}

int
repl_on_left(struct repl *repl, struct frame *frame)
{
	if (repl->phase != REPL_CELL)
		return -EBADMSG;
	/* Files that the cell reported before it was killed are reported again. */
	execution_files_restart(repl->execution);
	results_restart(&repl->execution->results);
	return results_take(&repl->execution->results, frame);
}

int
repl_on_cell_ended(struct repl *repl, const struct msg_cell_ended *ended)
{
	static const enum outcome_state state[CELL_STATE_COUNT] = {
		[CELL_COMMITTED] = STATE_COMMITTED,
		[CELL_ROLLED_BACK] = STATE_ROLLED_BACK,
		[CELL_LOST] = STATE_LOST,
	};
	struct execution *e = repl->execution;

	if (repl->phase != REPL_CELL || ended->id != e->serial)
		return -EBADMSG;
	read_messages(repl);
	repl_background_begin(repl, e, ended);
	execution_on_cell_ended(e, state[ended->state], ended);
	repl_rest(repl);
	return 0;
}
