/* Runs in: the supervisor.   Owns: the zygote's process.
 * Reads:   frames from the zygote, which runs no client's code. */
#include "engine/zygote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "host/child.h"
#include "policy/config.h"
#include "proto/frame.h"

#define START_SECONDS 30
#define WRITER_MAX (2 * FRAME_MAX)

struct zygote {
	struct zygote_options options;
	struct child child;
	bool said_hello;
	bool stopping;
	unsigned int spawns;
	uint32_t landlock_abi;
};

/* ---- life ---- */

static void
start(struct zygote *z)
{
	z->said_hello = false;
	child_start(&z->child, z->options.launcher, z->options.index);
}

static void
on_down(void *arg)
{
	struct zygote *z = arg;
	const struct zygote_watcher *watcher = &z->options.watcher;
	struct child *c = &z->child;
	struct log_quoted quoted;

	z->spawns = 0;
	if (z->stopping) {
		watcher->on_stopped(watcher->arg);
		return;
	}
	log_line(LOG_WARNING, c->has_served ? "zygote-lost" : "zygote-failed",
		 "profile=%s text=%s", z->options.profile->name,
		 log_quote(&quoted, c->text, strlen(c->text)));
	child_arm(c, c->has_served ? 0 : child_backoff_ms(c));
	if (c->has_served)
		watcher->on_lost(watcher->arg);
	else
		watcher->on_failed(watcher->arg, c->error, c->text);
}

static void
on_due(void *arg)
{
	struct zygote *z = arg;

	if (z->child.state == CHILD_DOWN)
		start(z);
}

/* ---- messages ---- */

static int
on_hello(struct zygote *z, const struct msg_hello *hello)
{
	if (z->said_hello)
		return -EBADMSG;
	if (!child_is_ours(&z->child, &hello->build))
		return -EPROTO;
	z->said_hello = true;
	return 0;
}

static int
on_zygote_ready(struct zygote *z, const struct msg_zygote_ready *ready)
{
	struct log_quoted quoted;

	if (!z->said_hello || z->child.state != CHILD_STARTING)
		return -EBADMSG;
	for (size_t i = 0; i < ready->missing.n; i++)
		log_line(LOG_WARNING, "zygote-misses", "profile=%s what=%s",
			 z->options.profile->name,
			 log_quote(&quoted, ready->missing.item[i].at,
				   ready->missing.item[i].len));
	z->landlock_abi = ready->landlock_abi;
	child_is_ready(&z->child);
	z->child.failed_starts = 0;
	z->options.watcher.on_ready(z->options.watcher.arg);
	return 0;
}

static int
on_zygote_failed(struct zygote *z, const struct msg_zygote_failed *failed)
{
	if (z->child.state == CHILD_SERVING)
		return -EBADMSG;
	child_note(&z->child, -(int)failed->error, "%.*s: %s", (int)failed->what.len,
		     failed->what.at, strerror((int)failed->error));
	return -ECHILD;
}

static int
on_spawned(struct zygote *z, struct frame *frame)
{
	const struct zygote_watcher *watcher = &z->options.watcher;
	const struct msg_spawned *spawned = &frame->msg.spawned;

	if (z->child.state != CHILD_SERVING || z->spawns == 0)
		return -EBADMSG;
	z->spawns--;
	watcher->on_spawned(watcher->arg, spawned->worker, (pid_t)spawned->pid,
			    frame_take_fd(frame, 0));
	return 0;
}

static int
on_spawn_failed(struct zygote *z, const struct msg_spawn_failed *failed)
{
	const struct zygote_watcher *watcher = &z->options.watcher;
	char text[1200];

	if (z->child.state != CHILD_SERVING || z->spawns == 0)
		return -EBADMSG;
	z->spawns--;
	snprintf(text, sizeof(text), "%.*s: %s", (int)failed->what.len, failed->what.at,
		 strerror((int)failed->error));
	watcher->on_spawn_failed(watcher->arg, failed->worker, -(int)failed->error,
				 text);
	return 0;
}

static int
on_message(void *arg, struct frame *frame)
{
	struct zygote *z = arg;

	switch (frame->msg.type) {
	case MSG_HELLO:
		return on_hello(z, &frame->msg.hello);
	case MSG_ZYGOTE_READY:
		return on_zygote_ready(z, &frame->msg.zygote_ready);
	case MSG_ZYGOTE_FAILED:
		return on_zygote_failed(z, &frame->msg.zygote_failed);
	case MSG_SPAWNED:
		return on_spawned(z, frame);
	case MSG_SPAWN_FAILED:
		return on_spawn_failed(z, &frame->msg.spawn_failed);
	case MSG_CONFIGURE:
	case MSG_SPAWN:
	case MSG_READY:
	case MSG_JAIL_FAILED:
	case MSG_RUN: case MSG_INPUT: case MSG_DISPLAY: case MSG_LEFT: case MSG_LEFT_MORE:
	case MSG_DONE: case MSG_EXITED: case MSG_LISTENER:
	case MSG_EGRESS_CONFIGURE: case MSG_EGRESS_READY: case MSG_EGRESS_OPEN:
	case MSG_EGRESS_CLOSE: case MSG_EGRESS_REPORT: case MSG_EGRESS_CLOSED:
	case MSG_OPEN: case MSG_CELL: case MSG_CELL_ENDED: case MSG_STOP: case MSG_COPY:
	case MSG_CELL_READY: case MSG_COMMIT: case MSG_STATES: case MSG_LEFT_ANEW: case MSG_COPIED: case MSG_DROP:
	case MSG_KEEP: case MSG_KEEPING: case MSG_ATTACH: case MSG_TAKE: case MSG_TAKEN:
	case MSG_DISCARD: case MSG_PROMPT: case MSG_ANSWER:
	case MSG_HOLD: case MSG_HELD:
	case MSG_HANDOVER: case MSG_KEPT: case MSG_KEPT_HANDLE: case MSG_KEPT_CHECKPOINT:
	case MSG_LAUNCH: case MSG_LAUNCHED: case MSG_ADOPT: case MSG_ADOPTED:
	case MSG_WHO: case MSG_PERSON:
		break;
	}
	return -EBADMSG;
}

static const struct child_kind zygote_kind = {
	.name = "the zygote",
	.launch = LAUNCH_ZYGOTE,
	.from = FROM_ZYGOTE,
	.passes = true,
	.writer_max = WRITER_MAX,
	.start_seconds = START_SECONDS,
	.on_message = on_message,
	.on_down = on_down,
	.on_due = on_due,
};

int
zygote_new(const struct zygote_options *options, struct zygote **zygote_r)
{
	struct zygote *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return -ENOMEM;
	z->options = *options;
	child_init(&z->child, &zygote_kind, options->base, z);
	/* From the loop, so that no callback comes before this returns. */
	child_arm(&z->child, 0);
	*zygote_r = z;
	return 0;
}

void
zygote_stop(struct zygote *z)
{
	z->stopping = true;
	if (z->child.state == CHILD_DOWN) {
		event_del(&z->child.timer);
		z->options.watcher.on_stopped(z->options.watcher.arg);
		return;
	}
	child_end(&z->child);
}

void
zygote_free(struct zygote *z)
{
	if (z == NULL)
		return;
	child_done(&z->child);
	free(z);
}

bool
zygote_is_ready(const struct zygote *z)
{
	return z->child.state == CHILD_SERVING;
}

bool
zygote_is_alive(const struct zygote *z)
{
	struct pollfd line = { .fd = z->child.launch.control };
	siginfo_t info = { 0 };

	/* A zygote that is ending has closed its line, with the messages on it, some time before
	 * it can be reaped. */
	return child_is_up(&z->child) && poll(&line, 1, 0) == 0 &&
	       waitid(P_PIDFD, (id_t)z->child.launch.pidfd, &info,
		      WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

pid_t
zygote_pid(const struct zygote *z)
{
	return z->child.launch.pid;
}

void
zygote_kill(struct zygote *z)
{
	child_end(&z->child);
}

const char *
zygote_trouble(const struct zygote *z)
{
	const struct child *c = &z->child;

	return c->failed_starts > 0 && c->state == CHILD_DOWN ? c->text : NULL;
}

uint32_t
zygote_landlock_abi(const struct zygote *z)
{
	return z->landlock_abi;
}

unsigned int
zygote_room(const struct zygote *z)
{
	return z->child.state == CHILD_SERVING ? ZYGOTE_SPAWNS_MAX - z->spawns : 0;
}

int
zygote_spawn(struct zygote *z, uint64_t worker, uint32_t uid, const int *fd,
	     size_t n_fds)
{
	struct msg msg = { .type = MSG_SPAWN, .spawn = {
		.worker = worker, .uid = uid, .into_cgroup = n_fds == 4,
	} };
	int sent[4], r;

	assert(n_fds == 3 || n_fds == 4);
	assert(zygote_room(z) > 0);
	memcpy(sent, fd, n_fds * sizeof(*fd));
	if (n_fds == 4)
		sent[3] = fcntl(fd[3], F_DUPFD_CLOEXEC, 3);
	if (n_fds == 4 && sent[3] < 0) {
		r = -errno;
		for (size_t i = 0; i < 3; i++)
			close(fd[i]);
		return r;
	}
	r = child_send(&z->child, &msg, sent, n_fds);
	if (r == 0)
		z->spawns++;
	return r;
}
