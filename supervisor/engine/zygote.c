/* Runs in: the supervisor.   Owns: the zygote's process and its control socket.
 * Reads:   frames from the zygote. It runs no client's code, but it is held to the
 *          protocol like everybody: a breach ends it. */
#include "supervisor/engine/zygote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "policy/config.h"
#include "proto/frame.h"
#include "proto/own.h"
#include "supervisor/engine/launch.h"
#include "supervisor/log.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 60000
#define START_TIMEOUT_S 30
#define WRITER_MAX (2 * FRAME_MAX)

enum zygote_state {
	ZYGOTE_DOWN,		/* no process; the timer starts one */
	ZYGOTE_HELLO,		/* started, has not spoken */
	ZYGOTE_CONFIGURED,	/* is getting ready */
	ZYGOTE_READY,
	ZYGOTE_ENDING,		/* killed, to be reaped */
};

struct zygote {
	struct zygote_options options;
	enum zygote_state state;
	bool was_ready, stopping;
	unsigned int failed_starts, spawns;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable, ended, timer;
	struct launch launch;
	uint32_t landlock_abi;
	int error;			/* why it failed before it was ready */
	char text[1200];
};

static void start(struct zygote *z);

/* ---- life ---- */

static void
arm(struct zygote *z, uint32_t ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	evtimer_add(&z->timer, &delay);
}

/* The first reason is kept: what follows from it says less. */
static void __attribute__((format(printf, 3, 4)))
note_trouble(struct zygote *z, int error, const char *format, ...)
{
	va_list args;

	if (z->text[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(z->text, sizeof(z->text), format, args);
	va_end(args);
	z->error = error;
}

static void
end(struct zygote *z)
{
	if (z->state == ZYGOTE_DOWN || z->state == ZYGOTE_ENDING)
		return;
	z->state = ZYGOTE_ENDING;
	event_del(&z->readable);
	event_del(&z->writable);
	event_del(&z->timer);
	syscall(SYS_pidfd_send_signal, z->launch.pidfd, SIGKILL, NULL, 0);
}

static void
release_process(struct zygote *z)
{
	event_del(&z->readable);
	event_del(&z->writable);
	event_del(&z->ended);
	event_del(&z->timer);
	frame_reader_done(&z->reader);
	frame_writer_done(&z->writer);
	launch_done(&z->launch);
	z->spawns = 0;
	z->state = ZYGOTE_DOWN;
}

static void
plan_restart(struct zygote *z)
{
	uint32_t delay = 0;

	if (!z->was_ready) {
		delay = BACKOFF_FIRST_MS
			<< (z->failed_starts < 10 ? z->failed_starts : 10);
		if (delay > BACKOFF_MOST_MS)
			delay = BACKOFF_MOST_MS;
		z->failed_starts++;
	}
	arm(z, delay);
}

/* The process is gone and reaped, or could not be made. */
static void
on_down(struct zygote *z, const siginfo_t *info)
{
	const struct zygote_watcher *watcher = &z->options.watcher;
	bool was_ready = z->was_ready;
	struct log_quoted quoted;
	const char *step;
	int error;

	if (launch_trouble(&z->launch, &step, &error))
		note_trouble(z, -error, "cannot %s: %s", step, strerror(error));
	else if (info != NULL)
		note_trouble(z, -ECHILD, "the zygote ended early (%s %d)",
			     info->si_code == CLD_EXITED ? "exit code" : "signal",
			     info->si_status);
	release_process(z);
	if (z->stopping) {
		watcher->on_stopped(watcher->arg);
		return;
	}
	log_line(LOG_WARNING, was_ready ? "zygote-lost" : "zygote-failed",
		 "profile=%s text=%s", z->options.profile->name,
		 log_quote(&quoted, z->text, strlen(z->text)));
	plan_restart(z);
	if (was_ready)
		watcher->on_lost(watcher->arg);
	else
		watcher->on_failed(watcher->arg, z->error, z->text);
}

static void
on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct zygote *z = arg;
	siginfo_t info = { 0 };

	(void)what;
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 &&
	    info.si_pid != 0)
		on_down(z, &info);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct zygote *z = arg;

	(void)fd;
	(void)what;
	if (z->state == ZYGOTE_DOWN) {
		start(z);
		return;
	}
	note_trouble(z, -ETIMEDOUT, z->state == ZYGOTE_READY ? "the zygote fell silent"
		     : "the zygote was not ready within " PROTO_STRING(START_TIMEOUT_S) " s");
	end(z);
}

/* ---- messages ---- */

static int
flush(struct zygote *z)
{
	int r = frame_writer_flush(&z->writer, z->launch.control);

	if (r > 0)
		event_add(&z->writable, NULL);
	return r < 0 ? r : 0;
}

static int
send_configure(struct zygote *z)
{
	const struct config_profile *profile = z->options.profile;
	const struct results_limits *results = z->options.results;
	struct msg_str modules[CONFIG_LIST_MAX], paths[CONFIG_LIST_MAX];
	struct msg msg = { .type = MSG_CONFIGURE, .configure = {
		.profile = msg_str(profile->name),
		.modules = { modules, profile->modules.n },
		.paths = { paths, profile->paths.n },
		.disk_bytes = profile->disk_bytes,
		.disk_inodes = profile->disk_inodes,
		.displays = results->displays,
		.display_bytes = results->display_bytes,
		.left_files = results->files,
		.left_file_bytes = results->file_bytes,
		.left_bytes = results->files_bytes,
		.memory_counted = z->options.memory_counted,
	} };
	int r;

	for (size_t i = 0; i < profile->modules.n; i++)
		modules[i] = msg_str(profile->modules.item[i]);
	for (size_t i = 0; i < profile->paths.n; i++)
		paths[i] = msg_str(profile->paths.item[i]);
	r = frame_writer_put(&z->writer, &msg, NULL, 0);
	return r < 0 ? r : flush(z);
}

static int
on_hello(struct zygote *z, const struct msg_hello *hello)
{
	int r;

	if (z->state != ZYGOTE_HELLO)
		return -EBADMSG;
	if (hello->build.len != strlen(PROTO_BUILD) ||
	    memcmp(hello->build.at, PROTO_BUILD, hello->build.len) != 0) {
		note_trouble(z, -EPROTO, "mcp-python-worker is of another build (%.*s)",
			     (int)hello->build.len, hello->build.at);
		return -EPROTO;
	}
	r = send_configure(z);
	if (r < 0) {
		note_trouble(z, r, "cannot send the profile: %s", strerror(-r));
		return r;
	}
	z->state = ZYGOTE_CONFIGURED;
	return 0;
}

static int
on_zygote_ready(struct zygote *z, const struct msg_zygote_ready *ready)
{
	struct log_quoted quoted;

	if (z->state != ZYGOTE_CONFIGURED)
		return -EBADMSG;
	for (size_t i = 0; i < ready->missing.n; i++)
		log_line(LOG_WARNING, "zygote-misses", "profile=%s what=%s",
			 z->options.profile->name,
			 log_quote(&quoted, ready->missing.item[i].at,
				   ready->missing.item[i].len));
	z->landlock_abi = ready->landlock_abi;
	z->state = ZYGOTE_READY;
	z->was_ready = true;
	z->failed_starts = 0;
	z->text[0] = '\0';
	event_del(&z->timer);
	z->options.watcher.on_ready(z->options.watcher.arg);
	return 0;
}

static int
on_zygote_failed(struct zygote *z, const struct msg_zygote_failed *failed)
{
	if (z->state == ZYGOTE_READY)
		return -EBADMSG;
	note_trouble(z, -(int)failed->error, "%.*s: %s", (int)failed->what.len,
		     failed->what.at, strerror((int)failed->error));
	return -ECHILD;
}

static int
on_spawned(struct zygote *z, struct frame *frame)
{
	const struct zygote_watcher *watcher = &z->options.watcher;
	const struct msg_spawned *spawned = &frame->msg.spawned;

	if (z->state != ZYGOTE_READY || z->spawns == 0)
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

	if (z->state != ZYGOTE_READY || z->spawns == 0)
		return -EBADMSG;
	z->spawns--;
	snprintf(text, sizeof(text), "%.*s: %s", (int)failed->what.len, failed->what.at,
		 strerror((int)failed->error));
	watcher->on_spawn_failed(watcher->arg, failed->worker, -(int)failed->error,
				 text);
	return 0;
}

static int
on_message(struct zygote *z, struct frame *frame)
{
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
	case MSG_CELL_READY: case MSG_COMMIT: case MSG_LEFT_ANEW: case MSG_COPIED: case MSG_DROP:
	case MSG_KEEP: case MSG_KEEPING: case MSG_ATTACH: case MSG_TAKE: case MSG_TAKEN:
	case MSG_DISCARD:
		break;
	}
	return -EBADMSG;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct zygote *z = arg;
	struct frame frame = { 0 };
	int r;

	(void)what;
	r = frame_reader_read(&z->reader, fd, &frame);
	if (r > 0) {
		r = on_message(z, &frame);
		frame_done(&frame);
	}
	if (r < 0) {
		if (r == -EBADMSG)
			note_trouble(z, r, "the zygote broke its protocol");
		/* When it closed its end, how it ended is soon said by its wait status. */
		if (r == -EPIPE || r == -ECONNRESET) {
			event_del(&z->readable);
			arm(z, 1000);
		} else {
			end(z);
		}
	}
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct zygote *z = arg;
	int r;

	(void)fd;
	(void)what;
	r = flush(z);
	if (r < 0) {
		note_trouble(z, r, "cannot send to the zygote: %s", strerror(-r));
		end(z);
	}
}

/* ---- start ---- */

static void
start(struct zygote *z)
{
	static const char *const argv[] = { "mcp-python-worker", "--zygote", NULL };
	struct launch_program program = { .fd = z->options.worker_fd, .argv = argv,
					  .as = LAUNCH_ROOT_OF_OUTER };
	int r;

	z->text[0] = '\0';
	z->error = 0;
	z->was_ready = false;
	frame_reader_init(&z->reader, FROM_ZYGOTE);
	frame_writer_init(&z->writer, WRITER_MAX);
	r = launch_start(z->options.outer, &program, &z->launch);
	if (r < 0) {
		note_trouble(z, r, "cannot start mcp-python-worker: %s", strerror(-r));
		on_down(z, NULL);
		return;
	}
	z->state = ZYGOTE_HELLO;
	event_assign(&z->readable, z->options.base, z->launch.control,
		     EV_READ | EV_PERSIST, on_readable, z);
	event_assign(&z->writable, z->options.base, z->launch.control, EV_WRITE,
		     on_writable, z);
	event_assign(&z->ended, z->options.base, z->launch.pidfd, EV_READ | EV_PERSIST,
		     on_ended, z);
	event_add(&z->readable, NULL);
	event_add(&z->ended, NULL);
	arm(z, START_TIMEOUT_S * 1000);
}

int
zygote_new(const struct zygote_options *options, struct zygote **zygote_r)
{
	struct zygote *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return -ENOMEM;
	z->options = *options;
	launch_init(&z->launch);
	/* Assigned at once so that event_del is always allowed. */
	event_assign(&z->readable, options->base, -1, 0, on_readable, z);
	event_assign(&z->writable, options->base, -1, 0, on_writable, z);
	event_assign(&z->ended, options->base, -1, 0, on_ended, z);
	evtimer_assign(&z->timer, options->base, on_timer, z);
	/* From the loop, so that nobody is called back before this returns. */
	arm(z, 0);
	*zygote_r = z;
	return 0;
}

void
zygote_stop(struct zygote *z)
{
	z->stopping = true;
	if (z->state == ZYGOTE_DOWN) {
		event_del(&z->timer);
		z->options.watcher.on_stopped(z->options.watcher.arg);
		return;
	}
	end(z);
}

void
zygote_free(struct zygote *z)
{
	if (z == NULL)
		return;
	if (z->state != ZYGOTE_DOWN) {
		siginfo_t info;

		end(z);
		while (waitid(P_PIDFD, (id_t)z->launch.pidfd, &info, WEXITED) < 0 &&
		       errno == EINTR)
			;
	}
	release_process(z);
	free(z);
}

bool
zygote_is_ready(const struct zygote *z)
{
	return z->state == ZYGOTE_READY;
}

bool
zygote_is_alive(const struct zygote *z)
{
	siginfo_t info = { 0 };

	return z->launch.pidfd >= 0 &&
	       waitid(P_PIDFD, (id_t)z->launch.pidfd, &info,
		      WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

pid_t
zygote_pid(const struct zygote *z)
{
	return z->launch.pid;
}

const char *
zygote_trouble(const struct zygote *z)
{
	return z->failed_starts > 0 && z->state == ZYGOTE_DOWN ? z->text : NULL;
}

uint32_t
zygote_landlock_abi(const struct zygote *z)
{
	return z->landlock_abi;
}

unsigned int
zygote_room(const struct zygote *z)
{
	return z->state == ZYGOTE_READY ? ZYGOTE_SPAWNS_MAX - z->spawns : 0;
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
	r = frame_writer_put(&z->writer, &msg, sent, n_fds);
	if (r == 0)
		r = flush(z);
	if (r == 0)
		z->spawns++;
	return r;
}
