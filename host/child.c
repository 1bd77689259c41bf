/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: a process of another program of the service, its control
 * socket and its timer.
 * Reads:   frames. A breach of the protocol ends the process. */
#include "host/child.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "base/watched.h"
#include "host/helper.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 60000
#define SERVED_MS 10000		/* a process that has served this long was not lost because of its
				 * start, or of what it met at once */
#define BEAT_MS 500		/* between looks at a child that was sent something */
#define BEAT_USED_MS 1000	/* if it answered the last time, but is used */

static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);

/* ---- states ---- */

#define TO(state) (1U << (state))

static const unsigned int legal_next[] = {
	[CHILD_DOWN] = TO(CHILD_STARTING) | TO(CHILD_DOWN),
	[CHILD_STARTING] = TO(CHILD_SERVING) | TO(CHILD_ENDING) | TO(CHILD_DOWN),
	[CHILD_SERVING] = TO(CHILD_ENDING) | TO(CHILD_DOWN),
	[CHILD_ENDING] = TO(CHILD_DOWN),
};

static void
child_set_state(struct child *c, enum child_state to)
{
	static const char *const name[] = { "down", "starting", "serving", "ending" };

	assert((legal_next[c->state] & TO(to)) != 0);
	trace_line(0, "child=\"%s\" state=%s->%s", c->kind->name, name[c->state], name[to]);
	c->state = to;
}

/* ---- why and when ---- */

void
child_note(struct child *c, int error, const char *format, ...)
{
	va_list args;

	if (c->text[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
	c->error = error;
}

void
child_arm(struct child *c, uint32_t ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	evtimer_add(&c->timer, &delay);
}

uint32_t
child_backoff_ms(struct child *c)
{
	uint32_t ms;

	/* The launcher, which is made again soon, was away. */
	if (c->error == -ENOTCONN) {
		c->lost_orders++;
		return BACKOFF_FIRST_MS;
	}
	if (c->has_served && clock_ms() - c->ready_ms >= SERVED_MS)
		c->failed_starts = 0;
	ms = BACKOFF_FIRST_MS << (c->failed_starts < 10 ? c->failed_starts : 10);
	c->failed_starts++;
	return ms < BACKOFF_MOST_MS ? ms : BACKOFF_MOST_MS;
}

bool
child_is_told(const struct child *c)
{
	return c->error != -ENOTCONN || (c->lost_orders & (c->lost_orders + 1)) == 0;
}

bool
child_is_one(pid_t pid)
{
	const struct child *c;

	LIST_FOREACH(c, &children, link)
		if (c->launch.pid == pid)
			return true;
	return false;
}

bool
child_is_up(const struct child *c)
{
	return c->state == CHILD_STARTING || c->state == CHILD_SERVING;
}

bool
child_is_of_build(struct child *c, const struct msg_str *build)
{
	if (build->len == strlen(PROTO_BUILD) &&
	    memcmp(build->at, PROTO_BUILD, build->len) == 0)
		return true;
	child_note(c, -EPROTO, "%s is of another build (%.*s)", c->kind->name,
		   (int)build->len, build->at);
	return false;
}

/* ---- the end ---- */

void
child_end(struct child *c)
{
	if (!child_is_up(c))
		return;
	child_set_state(c, CHILD_ENDING);
	event_del(&c->readable);
	event_del(&c->writable);
	event_del(&c->timer);
	event_del(&c->again);
	event_del(&c->beat);
	if (c->launch.pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->launch.pidfd, SIGKILL, NULL, 0);
	if (c->kind->on_ending != NULL)
		c->kind->on_ending(c->arg);
}

static void
child_release(struct child *c)
{
	event_del(&c->readable);
	event_del(&c->writable);
	event_del(&c->ended);
	event_del(&c->timer);
	event_del(&c->again);
	event_del(&c->beat);
	frame_reader_done(&c->reader);
	frame_writer_done(&c->writer);
	launch_done(&c->launch);
	child_set_state(c, CHILD_DOWN);
}

/* info: how the process ended; NULL: it was never made. */
static void
child_go_down(struct child *c, const siginfo_t *info)
{
	const char *step;
	int error;

	/* An error between fork() and exec() explains everything that followed. */
	if (launch_trouble(&c->launch, &step, &error)) {
		c->text[0] = '\0';
		child_note(c, -error, "cannot %s: %s", step, strerror(error));
	} else if (info != NULL && (c->state != CHILD_ENDING || c->lost)) {
		child_note(c, -ECHILD, "%s ended early (%s %d)", c->kind->name,
			   info->si_code == CLD_EXITED ? "exit code" : "signal",
			   info->si_status);
	}
	child_release(c);
	if (!c->done)
		c->kind->on_down(c->arg);
}

static void
child_wait_for(struct child *c, siginfo_t *info_r)
{
	while (waitid(P_PIDFD, (id_t)c->launch.pidfd, info_r, WEXITED) < 0 &&
	       errno == EINTR)
		;
}

void
child_reap(struct child *c)
{
	siginfo_t info = { 0 };

	launcher_finish(&c->order);
	if (c->state == CHILD_DOWN)
		return;		/* it was never made */
	child_wait_for(c, &info);
	child_go_down(c, &info);
}

/* Waits until the process has ended by itself, for as long as its kind allows. */
static void
let_end(const struct child *c)
{
	struct pollfd ended = { .fd = c->launch.pidfd, .events = POLLIN };

	if (c->state != CHILD_SERVING || c->kind->grace_ms == 0)
		return;
	shutdown(c->launch.control, SHUT_WR);
	(void)poll(&ended, 1, (int)c->kind->grace_ms);
}

void
child_done(struct child *c)
{
	siginfo_t info;

	c->done = true;
	let_end(c);
	child_end(c);
	launcher_finish(&c->order);
	if (c->state == CHILD_ENDING)
		child_wait_for(c, &info);
	child_release(c);
	LIST_REMOVE(c, link);
}

/* ---- the line ---- */

/* When the process closed its end, the wait status says more than error. */
static void
child_lose(struct child *c, int error)
{
	if (error == -EBADMSG)
		child_note(c, error, "%s broke its protocol", c->kind->name);
	else if (error != -EPIPE && error != -ECONNRESET)
		child_note(c, error, "the line to %s failed: %s", c->kind->name,
			   strerror(-error));
	c->lost = true;
	child_end(c);
}

/* The kernel has no memory for a message now: the line rests, and is tried again. */
static void
child_pause(struct child *c)
{
	struct timeval pause = { 0 };
	unsigned int ms;

	if (event_pending(&c->again, EV_TIMEOUT, NULL))
		return;
	if (c->pauses == 0)
		log_line(LOG_WARNING, "line-rests", "child=\"%s\" text=\"the kernel has no memory "
			 "for messages; they are tried again\"", c->kind->name);
	ms = frame_pause_ms(&c->pauses);
	pause.tv_sec = ms / 1000;
	pause.tv_usec = ms % 1000 * 1000;
	event_del(&c->readable);
	event_add(&c->again, &pause);
}

static int
child_flush(struct child *c)
{
	int r = c->launch.control < 0 ? 0	/* sent when it is there */
		: frame_writer_flush(&c->writer, c->launch.control);

	if (r > 0 && c->writer.starved)
		child_pause(c);
	else if (r > 0)
		event_add(&c->writable, NULL);
	else
		c->pauses = 0;
	return r < 0 ? r : 0;
}

/* ---- signs of life ---- */

static void
child_arm_beat(struct child *c, unsigned int ms)
{
	const struct timeval beat = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	event_add(&c->beat, &beat);
}

static int
child_on_pong(struct child *c, const struct msg_pong *pong)
{
	if (!c->is_asked || pong->number != c->pings)
		return -EBADMSG;
	c->is_asked = false;
	event_del(&c->beat);
	if (c->was_sent)
		child_arm_beat(c, BEAT_MS);
	else if (c->kind->is_used != NULL && c->kind->is_used(c->arg))
		child_arm_beat(c, BEAT_USED_MS);
	return 0;
}

/* A supervisor that was stopped itself comes here once, whatever the time. */
static void
child_on_beat(evutil_socket_t, short, void *arg)
{
	struct child *c = arg;
	struct msg ping = { .type = MSG_PING };

	if (c->is_asked && !event_pending(&c->again, EV_TIMEOUT, NULL))
		c->silent_ms += BEAT_MS;
	if (c->silent_ms >= CHILD_PATIENCE_MS ||
	    (c->silent_ms >= CHILD_STOPPED_MS && helper_is_stopped(c->launch.pidfd))) {
		child_note(c, -ETIMEDOUT, "%s stood still for %u ms, and was killed",
			   c->kind->name, c->silent_ms);
		child_end(c);
		return;
	}
	child_arm_beat(c, BEAT_MS);
	if (c->is_asked)
		return;
	ping.ping.number = ++c->pings;
	c->silent_ms = 0;
	c->is_asked = child_send(c, &ping, NULL, 0) == 0;
	c->was_sent = false;
}

int
child_expect(struct child *c, size_t n)
{
	return frame_reader_expect(&c->reader, c->launch.control, n);
}

int
child_send(struct child *c, const struct msg *msg, const int *fd, size_t n_fds)
{
	int r;

	if (!child_is_up(c)) {
		for (size_t i = 0; i < n_fds; i++)
			close(fd[i]);
		return -ENOTCONN;
	}
	r = frame_writer_put(&c->writer, msg, fd, n_fds);
	if (r < 0)
		return r;
	c->was_sent = true;
	if (c->state == CHILD_SERVING && !event_pending(&c->beat, EV_TIMEOUT, NULL))
		child_arm_beat(c, BEAT_MS);
	r = child_flush(c);
	if (r < 0)
		child_lose(c, r);
	return r;
}

/* 1: a message was taken; 0: there is none; or -errno. */
static int
child_take(struct child *c)
{
	struct frame frame = { 0 };
	int r = frame_reader_read(&c->reader, c->launch.control, &frame);

	if (r <= 0)
		return r;
	c->silent_ms = 0;
	r = frame.msg.type == MSG_PONG ? child_on_pong(c, &frame.msg.pong)
				       : c->kind->on_message(c->arg, &frame);
	frame_done(&frame);
	if (r < 0)
		child_lose(c, r);
	return 1;
}

static void
child_on_readable(evutil_socket_t, short, void *arg)
{
	struct child *c = arg;
	int r = child_take(c);

	if (r < 0)
		child_lose(c, r);
	else if (c->reader.starved)
		child_pause(c);
}

/* After a pause. */
static void
child_on_again(evutil_socket_t, short, void *arg)
{
	struct child *c = arg;
	int r = child_flush(c);

	if (r < 0)
		child_lose(c, r);
	else
		event_add(&c->readable, NULL);
}

/* The loop may report the end of the process before its last messages. These are read first,
 * because they may give the reason for the end. */
static void
child_on_ended(evutil_socket_t fd, short, void *arg)
{
	struct child *c = arg;
	siginfo_t info = { 0 };

	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
		return;
	while (child_is_up(c) && child_take(c) > 0)
		;
	child_go_down(c, &info);
}

static void
child_on_writable(evutil_socket_t, short, void *arg)
{
	int r = child_flush(arg);

	if (r < 0)
		child_lose(arg, r);
}

/* ---- the beginning ---- */

static void
child_on_timer(evutil_socket_t, short, void *arg)
{
	struct child *c = arg;

	if (c->state != CHILD_STARTING) {
		c->kind->on_due(c->arg);
		return;
	}
	child_note(c, -ETIMEDOUT, "%s was not ready within %u s", c->kind->name,
		   c->kind->start_seconds);
	child_end(c);
}

void
child_init(struct child *c, const struct child_kind *kind, struct event_base *base, void *arg)
{
	*c = (struct child){ .kind = kind, .base = base, .arg = arg };
	LIST_INSERT_HEAD(&children, c, link);
	launch_init(&c->launch);
	/* Assigned at once, so that event_del() is always allowed. */
	event_assign(&c->readable, base, -1, 0, child_on_readable, c);
	event_assign(&c->writable, base, -1, 0, child_on_writable, c);
	event_assign(&c->ended, base, -1, 0, child_on_ended, c);
	evtimer_assign(&c->timer, base, child_on_timer, c);
	evtimer_assign(&c->again, base, child_on_again, c);
	evtimer_assign(&c->beat, base, child_on_beat, c);
}

static void
child_on_launched(void *arg, int error, const char *what, struct launch *launch)
{
	struct child *c = arg;

	if (error < 0) {
		child_note(c, error, "cannot start %s: %s: %s", c->kind->name, what,
			   strerror(-error));
		child_go_down(c, NULL);
		return;
	}
	c->launch = *launch;
	if (!c->kind->passes)
		watched_refuse(c->launch.control);
	event_assign(&c->readable, c->base, c->launch.control, EV_READ | EV_PERSIST,
		     child_on_readable, c);
	event_assign(&c->writable, c->base, c->launch.control, EV_WRITE, child_on_writable, c);
	event_assign(&c->ended, c->base, c->launch.pidfd, EV_READ | EV_PERSIST, child_on_ended, c);
	event_add(&c->ended, NULL);
	if (c->state != CHILD_STARTING) {	/* ended before it was there */
		syscall(SYS_pidfd_send_signal, c->launch.pidfd, SIGKILL, NULL, 0);
		return;
	}
	event_add(&c->readable, NULL);
	error = child_flush(c);
	if (error < 0)
		child_lose(c, error);
}

void
child_start(struct child *c, struct launcher *launcher, unsigned int profile, uint64_t modules)
{
	c->text[0] = '\0';
	c->error = 0;
	c->lost = false;
	c->has_served = false;
	c->pauses = 0;
	c->is_asked = c->was_sent = false;
	c->silent_ms = 0;
	frame_reader_init(&c->reader, c->kind->from);
	frame_writer_init(&c->writer, c->kind->writer_max);
	child_set_state(c, CHILD_STARTING);
	child_arm(c, c->kind->start_seconds * 1000);
	launcher_start(launcher, c->kind->launch, profile, modules, &c->order,
		       child_on_launched, c);
}

void
child_is_ready(struct child *c)
{
	child_set_state(c, CHILD_SERVING);
	c->has_served = true;
	c->ready_ms = clock_ms();
	c->lost_orders = 0;
	c->text[0] = '\0';
	event_del(&c->timer);
	if (c->was_sent)
		child_arm_beat(c, BEAT_MS);
}
