/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: every worker, from its start until it is reaped, and its leaf.
 * Reads:   frames and output from workers, hostile from the first byte. */
#include "engine/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/passrights.h"
#include "base/trace.h"
#include "base/watched.h"
#include "base/xalloc.h"
#include "engine/engine_parts.h"
#include "engine/repl_stage.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/zygote.h"
#include "host/usage.h"

#define START_TIMEOUT_MS 10000
#define SILENCE_MS 1000		/* the time that init has to end after its socket was closed */
#define KILL_AGAIN_MS 2000

/* ---- states ---- */

#define TO(state) (1u << (state))

static const unsigned int worker_legal_next[WORKER_STATE_COUNT] = {
	[WORKER_STARTING] = TO(WORKER_WARM) | TO(WORKER_ENDING),
	[WORKER_WARM] = TO(WORKER_LEASED) | TO(WORKER_RUNNING) | TO(WORKER_ENDING),
	[WORKER_LEASED] = TO(WORKER_RUNNING) | TO(WORKER_ENDING),
	[WORKER_RUNNING] = TO(WORKER_LEASED) | TO(WORKER_SPENT) | TO(WORKER_ENDING),
	[WORKER_SPENT] = TO(WORKER_ENDING),
	[WORKER_ENDING] = 0,
};

bool
worker_may_move(enum worker_state from, enum worker_state to)
{
	return (worker_legal_next[from] & TO(to)) != 0;
}

static void
worker_set_state(struct worker *w, enum worker_state to)
{
	static const char *const name[] = { "starting", "warm", "leased", "running", "spent",
					    "ending" };
	enum worker_state from = w->state;

	assert(worker_may_move(from, to));
	trace_line(0, "worker=%llu state=%s->%s", (unsigned long long)w->serial, name[from],
		   name[to]);
	w->state = to;
	w->engine->owner->on_state(w, (int)from, (int)to);
}

/* ---- the end ---- */

static void
worker_arm(struct worker *w, uint32_t ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	evtimer_add(&w->timer, &delay);
}

/* The supervisor owns the outer namespace, so it may signal every process in it
 * (user_namespaces(7)). SIGKILL to a worker's init ends the whole pid namespace. */
void
worker_kill(struct worker *w)
{
	if (w->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
	else if (w->leaf != NULL)
		cgroup_leaf_kill(w->leaf);
}

int
worker_stop(struct worker *w, enum worker_end how)
{
	static const int signal[] = { [WORKER_INTERRUPT] = SIGINT, [WORKER_WHERE] = SIGUSR1,
				      [WORKER_KILL] = SIGTERM };

	watchdog_look_end(&w->look);
	return w->pidfd < 0 || syscall(SYS_pidfd_send_signal, w->pidfd, signal[how], NULL, 0) < 0
	       ? -ESRCH : 0;
}

static void
close_channels(struct worker *w)
{
	event_del(&w->readable);
	event_del(&w->writable);
	worker_output_close(w);
	frame_reader_done(&w->reader);
	frame_writer_done(&w->writer);
	if (w->control >= 0)
		close(w->control);
	w->control = -1;
}

void
worker_note_tables(struct worker *w, uint32_t sockets, uint32_t tasks)
{
	struct tenant *tenant = w->share->tenant;

	tenant->sockets += sockets - w->sockets;
	tenant->tasks += tasks - w->tasks;
	w->sockets = sockets;
	w->tasks = tasks;
}

void
worker_end(struct worker *w)
{
	const struct worker_user *user = w->user;

	if (w->state == WORKER_ENDING)
		return;
	worker_set_state(w, WORKER_ENDING);
	worker_note_tables(w, 0, 0);
	watchdog_look_end(&w->look);
	worker_kill(w);
	close_channels(w);
	worker_arm(w, KILL_AGAIN_MS);
	if (user != NULL && user->on_ending != NULL)
		user->on_ending(w);
}

void
worker_spend(struct worker *w)
{
	if (w->state == WORKER_RUNNING)
		worker_set_state(w, WORKER_SPENT);
}

void
worker_ignore(struct worker *w)
{
	if (w->state != WORKER_SPENT)
		return;
	event_del(&w->readable);
	event_del(&w->writable);
	event_del(&w->timer);
	worker_output_mute(w);
}

/* Releases everything; the process is reaped, or was never made. */
static void
worker_release(struct worker *w)
{
	struct engine *engine = w->engine;

	close_channels(w);
	event_del(&w->ended);
	event_del(&w->timer);
	if (w->pidfd >= 0)
		close(w->pidfd);
	watchdog_seen_done(&w->seen);
	watchdog_look_end(&w->look);
	usage_forget(w->pid);
	cgroup_leaf_retire(w->leaf);
	worker_slots_give(&engine->slots, w->slot);
	free(w);
}

static void
remove_worker(struct worker *w)
{
	struct engine *engine = w->engine;

	assert(w->state == WORKER_ENDING);
	engine->owner->on_gone(w);
	worker_release(w);
	engine->owner->on_freed(engine);
}

void
worker_free(struct worker *w)
{
	siginfo_t info;

	if (w->pidfd >= 0 && !w->kept) {
		worker_kill(w);
		while (waitid(P_PIDFD, (id_t)w->pidfd, &info, WEXITED) < 0 &&
		       errno == EINTR)
			;
	}
	worker_release(w);
}

/* Ends a worker that failed before it had a user. If it was not warm yet, the pool is told. */
static void
worker_fail(struct worker *w, const char *text)
{
	bool was_new = w->state == WORKER_STARTING || w->state == WORKER_WARM;

	/* First: if the pool refuses waiting calls, this worker must not count as a future one. */
	worker_end(w);
	if (was_new)
		w->engine->owner->on_failed(w, text);
}

/* READY has arrived, and the zygote has sent the worker's pid. */
static void
become_warm(struct worker *w)
{
	struct engine *engine = w->engine;

	event_del(&w->timer);
	if (!engine->memory_counted || !engine->pids_counted || w->leaf == NULL) {
		/* New workers are alike. */
		if (watchdog_measure(w->pid, w->leaf, &w->seen, &w->baseline))
			engine->baseline = w->baseline;
		else
			w->baseline = engine->baseline;
		w->cpu_baseline_us = w->baseline.cpu_us;
	}
	if (w->leaf != NULL)
		cgroup_leaf_cpu(w->leaf, &w->cpu_baseline_us);
	worker_set_state(w, WORKER_WARM);
	engine->owner->on_warm(w);
}

static void
worker_tell_host_name(struct engine *engine)
{
	if (engine->has_told_host_name)
		return;
	engine->has_told_host_name = true;
	log_line(LOG_NOTICE, "host-name", "text=\"the host name of workers cannot be set here: "
		 "scripts see this machine's\"");
}

static int
worker_on_ready(struct worker *w, const struct msg_ready *ready)
{
	if (w->state != WORKER_STARTING || w->is_ready || ready->worker != w->serial)
		return -EBADMSG;
	w->is_ready = true;
	if (!ready->host_name)
		worker_tell_host_name(w->engine);
	if (w->pidfd >= 0)
		become_warm(w);
	return 0;
}

static int
on_jail_failed(struct worker *w, const struct msg_jail_failed *failed)
{
	char text[1200];

	if (w->state != WORKER_STARTING)
		return -EBADMSG;
	snprintf(text, sizeof(text), "%.*s: %s", (int)failed->what.len, failed->what.at,
		 strerror((int)failed->error));
	worker_fail(w, text);
	return 0;
}

/* A worker without a user sends only READY or JAIL_FAILED. */
static int
worker_on_message(struct worker *w, struct frame *frame)
{
	if (w->user != NULL)
		return w->user->on_message(w, frame);
	if (frame->msg.type == MSG_READY)
		return worker_on_ready(w, &frame->msg.ready);
	if (frame->msg.type == MSG_JAIL_FAILED)
		return on_jail_failed(w, &frame->msg.jail_failed);
	return -EBADMSG;
}

static bool
worker_runs(const struct worker *w)
{
	return w->state == WORKER_RUNNING && w->execution != NULL;
}

static void
worker_on_ended(evutil_socket_t fd, short, void *arg)
{
	struct worker *w = arg;
	struct frame frame = { 0 };
	siginfo_t info = { 0 };
	int status;

	/* Its last messages may lie unread in the socket. */
	while (worker_runs(w) && frame_reader_read(&w->reader, w->control, &frame) > 0) {
		int r = worker_on_message(w, &frame);

		frame_done(&frame);
		if (r < 0)
			w->user->on_broken(w);
	}
	if (worker_runs(w) && w->reader.starved)
		return;		/* it is not reaped yet, so this event comes again */
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) < 0 && errno == ECHILD)
		info.si_status = SIGKILL;	/* not our child: as a rule it was killed */
	else if (info.si_pid == 0)
		return;
	status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8
					    : info.si_status & 0x7f;
	if (worker_runs(w) && frame_reader_broke_off(&w->reader))
		w->user->on_broken(w);
	if (worker_runs(w))
		w->user->on_died(w, status);
	if (w->state == WORKER_SPENT)
		worker_end(w);
	else if (w->state != WORKER_ENDING)
		worker_fail(w, "the worker ended before it was ready");
	remove_worker(w);
}

static void
worker_on_timer(evutil_socket_t, short, void *arg)
{
	struct worker *w = arg;

	switch (w->state) {
	case WORKER_STARTING:
		/* A zygote that has not named the worker hangs: it is killed, and its end ends the
		 * worker, too. */
		if (w->pidfd >= 0 || !zygote_kill(share_zygote(w->share), w->generation))
			worker_fail(w, "the worker was not ready in time");
		break;
	case WORKER_WARM: case WORKER_LEASED: case WORKER_SPENT:
		break;
	case WORKER_RUNNING:
		if (w->throttled) {
			w->throttled = false;
			worker_output_listen(w);
		}
		if (!event_pending(&w->readable, EV_READ, NULL))
			worker_kill(w);
		break;
	case WORKER_ENDING:
		if (w->leaf != NULL)
			cgroup_leaf_kill(w->leaf);
		worker_kill(w);
		worker_arm(w, KILL_AGAIN_MS);
		break;
	case WORKER_STATE_COUNT:
		break;
	}
}

/* ---- its socket ---- */

int
worker_pass_descriptors(struct worker *w, bool may)
{
	int r = may ? passrights_set(w->control, true) : 0;

	w->may_pass = may ? r == 0 || r == -ENOPROTOOPT : watched_refuse(w->control);
	return w->may_pass || !may ? 0 : r;
}

static int
read_frame(struct worker *w, struct frame *frame)
{
	int r;

	if (w->may_pass)
		watched_begin(w->share->tenant->principal);
	r = frame_reader_read(&w->reader, w->control, frame);
	if (!watched_stalled("worker", w->share->tenant->principal))
		return r;
	frame_done(frame);
	return -EBADMSG;
}

static void
worker_on_readable(evutil_socket_t, short, void *arg)
{
	struct worker *w = arg;
	struct frame frame = { 0 };
	int r;

	r = read_frame(w, &frame);
	if (r > 0) {
		r = worker_on_message(w, &frame);
		frame_done(&frame);
	}
	if (r >= 0)
		return;
	if (w->state != WORKER_RUNNING) {
		worker_fail(w, r == -EBADMSG ? "the worker broke its protocol"
						: "the worker closed its socket");
	} else if (r == -EBADMSG || frame_reader_broke_off(&w->reader)) {
		w->user->on_broken(w);
	} else {
		/* The pidfd will report the end of init, with its status. */
		event_del(&w->readable);
		worker_arm(w, SILENCE_MS);
	}
}

static void
worker_on_writable(evutil_socket_t fd, short, void *arg)
{
	struct worker *w = arg;
	int r;

	r = frame_writer_flush(&w->writer, fd);
	if (r > 0)
		event_add(&w->writable, NULL);
	/* A failed send means that the process has ended; the pidfd reports it. */
}

void
worker_throttle(struct worker *w, uint32_t ms)
{
	w->throttled = true;
	worker_output_mute(w);
	worker_arm(w, ms);
}

/* ---- the beginning ---- */

/* Makes the control socket and the pipes. theirs_r gets the worker's three ends. */
static int
make_channels(struct worker *w, int theirs_r[1 + STREAM_COUNT])
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	w->control = pair[0];
	theirs_r[0] = pair[1];
	worker_pass_descriptors(w, false);
	r = worker_output_make(w, theirs_r + 1);
	if (r == 0 && fcntl(w->control, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	for (int i = 0; r < 0 && i < 1 + STREAM_COUNT; i++)
		if (theirs_r[i] >= 0)
			close(theirs_r[i]);
	return r;
}

static void
assign_events(struct worker *w)
{
	struct event_base *base = w->engine->base;

	event_assign(&w->readable, base, w->control, EV_READ | EV_PERSIST, worker_on_readable,
		     w);
	event_assign(&w->writable, base, w->control, EV_WRITE, worker_on_writable, w);
	event_assign(&w->ended, base, -1, 0, worker_on_ended, w);
	evtimer_assign(&w->timer, base, worker_on_timer, w);
	worker_output_assign(w);
}

static int
worker_prepare(struct worker *w, int fd_r[4], size_t *n_fds_r, const char **step_r)
{
	struct tenant *tenant = w->share->tenant;
	int r = 0;

	*step_r = "make its cgroup";

	if (w->engine->options.cgroups != NULL) {
		if (tenant->cgroup == NULL)
			r = cgroup_tenant_new(w->engine->options.cgroups,
					      tenant->directory, &tenant->cgroup);
		if (r == 0)
			r = cgroup_leaf_new(tenant->cgroup, w->serial,
					    &w->engine->standard, &w->leaf);
		if (r < 0)
			return r;
		fd_r[3] = cgroup_leaf_fd(w->leaf);
		*n_fds_r = 4;
	}
	*step_r = "make its pipes";
	return make_channels(w, fd_r);
}

int
worker_start(struct engine *engine, struct share *share, const char **step_r)
{
	struct worker *w = calloc(1, sizeof(*w));
	int fd[4] = { -1, -1, -1, -1 }, r;
	size_t n_fds = 3;

	*step_r = "allocate it";
	if (w == NULL)
		return -ENOMEM;
	w->engine = engine;
	w->share = share;
	w->pidfd = w->control = w->pipe[0] = w->pipe[1] = -1;
	*step_r = "find a free uid for it";
	r = worker_slots_take(&engine->slots, &w->slot);
	if (r < 0) {
		free(w);
		return r;
	}
	w->serial = ++engine->next_serial;
	w->started_ms = clock_ms();
	r = worker_prepare(w, fd, &n_fds, step_r);
	frame_reader_init(&w->reader, FROM_WORKER);
	frame_writer_init(&w->writer, WORKER_WRITER_MAX);
	assign_events(w);
	if (r == 0) {
		*step_r = "ask the zygote for it";
		w->generation = zygote_generation(share_zygote(share));
		r = zygote_spawn(share_zygote(share), w->serial, share->number, w->slot, fd,
				 n_fds);
	}
	if (r < 0) {
		worker_release(w);
		return r;
	}
	event_add(&w->readable, NULL);
	worker_arm(w, START_TIMEOUT_MS);
	engine->owner->on_made(w);
	return 0;
}

void
worker_on_spawned(struct worker *w, pid_t pid, int pidfd)
{
	if (w->pidfd >= 0) {
		close(pidfd);
		return;
	}
	w->pid = pid;
	w->pidfd = pidfd;
	event_assign(&w->ended, w->engine->base, pidfd, EV_READ | EV_PERSIST, worker_on_ended,
		     w);
	event_add(&w->ended, NULL);
	if (w->state == WORKER_ENDING)
		worker_kill(w);
	else if (w->is_ready)
		become_warm(w);
}

void
worker_on_spawn_failed(struct worker *w, const char *text)
{
	if (w->pidfd >= 0)
		return;
	worker_fail(w, text);
	remove_worker(w);
}

void
worker_on_orphaned(struct worker *w)
{
	if (w->pidfd >= 0)
		return;
	worker_end(w);
	remove_worker(w);
}

int
worker_run(struct worker *w, const struct worker_load *load)
{
	struct msg msg = { .type = MSG_RUN, .run = *load->run };
	int r = 0;

	if (load->run->network)
		r = worker_pass_descriptors(w, true);	/* LISTENER */
	for (size_t i = 0; r == 0 && i < load->n_inputs; i++) {
		struct msg input = { .type = MSG_INPUT, .input = load->input[i] };

		r = frame_writer_put(&w->writer, &input, NULL, 0);
	}
	if (r == 0)
		r = frame_writer_put(&w->writer, &msg, load->fd, load->n_fds);
	else
		for (size_t i = 0; i < load->n_fds; i++)
			close(load->fd[i]);
	if (r == 0)
		r = frame_writer_flush(&w->writer, w->control);
	if (r < 0) {
		worker_fail(w, "the worker did not take the script");
		return r;
	}
	if (r > 0)
		event_add(&w->writable, NULL);
	w->user = load->user;
	worker_run_cell(w, load->execution);
	return 0;
}

/* ---- a session's ---- */

void
worker_run_cell(struct worker *w, struct execution *execution)
{
	w->execution = execution;
	worker_set_state(w, WORKER_RUNNING);
	worker_output_listen(w);
}

void
worker_rest(struct worker *w)
{
	worker_set_state(w, WORKER_LEASED);
	w->throttled = false;
	event_del(&w->timer);
	worker_output_mute(w);
}

int
worker_send(struct worker *w, const struct msg *msg, int fd)
{
	int r;

	watchdog_look_end(&w->look);
	r = frame_writer_put(&w->writer, msg, &fd, fd >= 0 ? 1 : 0);

	if (r == 0)
		r = frame_writer_flush(&w->writer, w->control);
	if (r > 0)
		event_add(&w->writable, NULL);
	return r < 0 ? r : 0;
}

int
worker_lease(struct worker *w, const struct worker_user *user, struct repl *repl,
	     const struct msg *msg, int fd)
{
	int r = worker_send(w, msg, fd);

	if (r < 0) {
		worker_fail(w, "the worker could not be leased");
		return r;
	}
	w->user = user;
	w->repl = repl;
	worker_set_state(w, WORKER_LEASED);
	return 0;
}

int
worker_lease_session(struct worker *w, const struct worker_bounds *bounds, bool prepare,
		     const struct worker_user *user, struct repl *repl)
{
	const struct engine *engine = w->engine;
	const struct cgroup_limits limits = {
		.memory_bytes = bounds->memory_bytes,
		.pids = engine->standard.pids,
		.cpu_percent = engine->standard.cpu_percent,
	};
	struct msg open = { .type = MSG_OPEN, .open = { .memory_bytes = bounds->memory_bytes,
							.alone = bounds->alone,
							.prepare = prepare } };
	int r = 0;

	if (!engine->memory_counted) {
		open.open.data_bytes = bounds->memory_bytes;
		open.open.data_most = bounds->memory_most;
	}
	if (!engine->pids_counted)
		open.open.processes = REPL_SNAPSHOTS_MAX + REPL_COPYING_MAX + 2 * bounds->pids_max;
	if (w->leaf != NULL)
		r = cgroup_leaf_limit(w->leaf, &limits);
	if (r == 0 && w->leaf != NULL)
		r = cgroup_leaf_keep_together(w->leaf, false);
	if (r == 0)
		return worker_lease(w, user, repl, &open, -1);
	worker_end(w);
	return r;
}

uint64_t
worker_cpu_us(struct worker *w)
{
	struct watchdog_usage usage = { 0 };

	if (w->leaf != NULL)
		cgroup_leaf_cpu(w->leaf, &usage.cpu_us);
	else
		watchdog_measure(w->pid, NULL, &w->seen, &usage);
	return usage.cpu_us;
}

struct worker *
worker_adopt(struct engine *engine, struct share *share, uint64_t serial, uint32_t slot,
	     pid_t pid, int pidfd, int control, const int pipe[STREAM_COUNT],
	     struct cgroup_leaf *leaf)
{
	struct worker *w = xcalloc(1, sizeof(*w));

	*w = (struct worker){ .engine = engine, .share = share, .serial = serial, .slot = slot,
			      .state = WORKER_LEASED, .pid = pid, .pidfd = pidfd,
			      .control = control, .is_ready = true, .leaf = leaf };
	memcpy(w->pipe, pipe, sizeof(w->pipe));
	worker_pass_descriptors(w, false);
	frame_reader_init(&w->reader, FROM_WORKER);
	frame_writer_init(&w->writer, WORKER_WRITER_MAX);
	assign_events(w);
	event_assign(&w->ended, engine->base, pidfd, EV_READ | EV_PERSIST, worker_on_ended, w);
	event_add(&w->readable, NULL);
	event_add(&w->ended, NULL);
	engine->owner->on_made(w);
	return w;
}
