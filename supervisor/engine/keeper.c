/* Runs in: the supervisor.   Owns: the keeper's process, its control socket, and a socket
 * for each environment that is being made.
 * Reads:   KEEPING and TAKEN. It runs no client's code, but is held to the protocol. */
#include "supervisor/engine/keeper.h"

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
#include <event2/event_struct.h>

#include "proto/frame.h"
#include "proto/own.h"
#include "supervisor/engine/launch.h"
#include "supervisor/log.h"

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 60000
#define START_TIMEOUT_MS 30000
#define WRITER_MAX (8 * (size_t)MANIFEST_MAX)

enum keeper_state {
	KEEPER_DOWN,		/* no process; the timer starts one */
	KEEPER_BEGUN,		/* has KEEP, has not spoken */
	KEEPER_READY,
	KEEPER_ENDING,		/* killed, to be reaped */
};

struct keeper {
	struct keeper_options options;
	enum keeper_state state;
	unsigned int failed_starts;
	struct frame_reader reader;
	struct frame_writer writer;
	struct event readable, writable, ended, timer;
	struct launch launch;
	char text[1200];
};

struct taking {
	struct frame_reader reader;
	struct event readable;
	int socket;
	keeper_taken *taken;
	void *arg;
};

/* A mount that somebody waits for. */
struct mounting {
	struct event readable;
	int gate;
	void (*mounted)(void *arg, int error);
	void *arg;
};

/* ---- life ---- */

static void
arm(struct keeper *k, uint32_t ms)
{
	struct timeval delay = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	evtimer_add(&k->timer, &delay);
}

static void
end(struct keeper *k)
{
	if (k->state == KEEPER_DOWN || k->state == KEEPER_ENDING)
		return;
	k->state = KEEPER_ENDING;
	event_del(&k->readable);
	event_del(&k->writable);
	event_del(&k->timer);
	syscall(SYS_pidfd_send_signal, k->launch.pidfd, SIGKILL, NULL, 0);
}

static void
release_process(struct keeper *k)
{
	event_del(&k->readable);
	event_del(&k->writable);
	event_del(&k->ended);
	event_del(&k->timer);
	frame_reader_done(&k->reader);
	frame_writer_done(&k->writer);
	launch_done(&k->launch);
	k->state = KEEPER_DOWN;
}

/* It is gone and reaped, or could not be made. */
static void
on_down(struct keeper *k)
{
	bool was_ready = k->failed_starts == 0;
	uint32_t delay = 0;
	struct log_quoted quoted;
	const char *step;
	int error;

	if (launch_trouble(&k->launch, &step, &error))
		snprintf(k->text, sizeof(k->text), "cannot %s: %s", step, strerror(error));
	release_process(k);
	log_line(LOG_WARNING, was_ready ? "keeper-lost" : "keeper-failed", "text=%s",
		 log_quote(&quoted, k->text, strlen(k->text)));
	if (!was_ready)
		delay = BACKOFF_FIRST_MS << (k->failed_starts < 10 ? k->failed_starts : 10);
	arm(k, delay < BACKOFF_MOST_MS ? delay : BACKOFF_MOST_MS);
}

static void
on_ended(evutil_socket_t fd, short what, void *arg)
{
	siginfo_t info = { 0 };

	(void)what;
	if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0)
		on_down(arg);
}

static int
flush(struct keeper *k)
{
	int r = frame_writer_flush(&k->writer, k->launch.control);

	if (r > 0)
		event_add(&k->writable, NULL);
	return r < 0 ? r : 0;
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	if (flush(arg) < 0)
		end(arg);
}

static int
on_keeping(struct keeper *k, const struct msg_keeping *keeping)
{
	if (k->state != KEEPER_BEGUN)
		return -EBADMSG;
	if (keeping->build.len != strlen(PROTO_BUILD) ||
	    memcmp(keeping->build.at, PROTO_BUILD, keeping->build.len) != 0) {
		snprintf(k->text, sizeof(k->text), "mcp-python-worker is of another build");
		return -EPROTO;
	}
	if (keeping->error != 0) {
		snprintf(k->text, sizeof(k->text), "%.*s: %s", (int)keeping->what.len,
			 keeping->what.at, strerror((int)keeping->error));
		return -ECHILD;
	}
	event_del(&k->timer);
	k->state = KEEPER_READY;
	k->failed_starts = 0;
	k->text[0] = '\0';
	log_line(LOG_INFO, "keeper-ready", "removed=%u", keeping->removed);
	return 0;
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *k = arg;
	struct frame frame = { 0 };
	int r = frame_reader_read(&k->reader, fd, &frame);

	(void)what;
	if (r > 0) {
		r = frame.msg.type == MSG_KEEPING ? on_keeping(k, &frame.msg.keeping)
						  : -EBADMSG;
		frame_done(&frame);
	}
	if (r >= 0)
		return;
	if (k->text[0] == '\0')
		snprintf(k->text, sizeof(k->text), "the keeper of packages %s",
			 r == -EBADMSG ? "broke its protocol" : "ended");
	end(k);
}

static void
start(struct keeper *k)
{
	static const char *const argv[] = { "mcp-python-worker", "--keeper", NULL };
	const struct launch_program program = { .fd = k->options.worker_fd, .argv = argv,
						.as = LAUNCH_ROOT_OF_OUTER };
	struct msg msg = { .type = MSG_KEEP, .keep.store = msg_str(k->options.store) };
	int r;

	k->text[0] = '\0';
	/* Counted at once; taken back when it is ready. */
	k->failed_starts++;
	frame_reader_init(&k->reader, FROM_KEEPER);
	frame_writer_init(&k->writer, WRITER_MAX);
	r = launch_start(k->options.outer, &program, &k->launch);
	if (r < 0) {
		snprintf(k->text, sizeof(k->text), "cannot start mcp-python-worker: %s",
			 strerror(-r));
		on_down(k);
		return;
	}
	k->state = KEEPER_BEGUN;
	event_assign(&k->readable, k->options.base, k->launch.control, EV_READ | EV_PERSIST,
		     on_readable, k);
	event_assign(&k->writable, k->options.base, k->launch.control, EV_WRITE, on_writable,
		     k);
	event_assign(&k->ended, k->options.base, k->launch.pidfd, EV_READ | EV_PERSIST,
		     on_ended, k);
	event_add(&k->readable, NULL);
	event_add(&k->ended, NULL);
	arm(k, START_TIMEOUT_MS);
	if (frame_writer_put(&k->writer, &msg, NULL, 0) < 0 || flush(k) < 0)
		end(k);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *k = arg;

	(void)fd;
	(void)what;
	if (k->state == KEEPER_DOWN) {
		start(k);
		return;
	}
	snprintf(k->text, sizeof(k->text), "the keeper of packages was not ready in time");
	end(k);
}

int
keeper_new(const struct keeper_options *options, struct keeper **keeper_r)
{
	struct keeper *k = calloc(1, sizeof(*k));

	if (k == NULL)
		return -ENOMEM;
	k->options = *options;
	launch_init(&k->launch);
	event_assign(&k->readable, options->base, -1, 0, on_readable, k);
	event_assign(&k->writable, options->base, -1, 0, on_writable, k);
	event_assign(&k->ended, options->base, -1, 0, on_ended, k);
	evtimer_assign(&k->timer, options->base, on_timer, k);
	start(k);
	*keeper_r = k;
	return 0;
}

void
keeper_free(struct keeper *k)
{
	siginfo_t info;

	if (k == NULL)
		return;
	if (k->state != KEEPER_DOWN) {
		end(k);
		while (waitid(P_PIDFD, (id_t)k->launch.pidfd, &info, WEXITED) < 0 &&
		       errno == EINTR)
			;
	}
	release_process(k);
	free(k);
}

pid_t
keeper_pid(const struct keeper *k)
{
	return k == NULL ? 0 : k->launch.pid;
}

bool
keeper_is_ready(const struct keeper *k)
{
	return k->state == KEEPER_READY;
}

const char *
keeper_trouble(const struct keeper *k)
{
	if (k->state == KEEPER_READY)
		return "";
	return k->text[0] != '\0' ? k->text : "the store of packages is being opened";
}

/* ---- what it is asked for ---- */

/* The descriptors are the writer's from now on. */
static int
put(struct keeper *k, const struct msg *msg, const int *fd, size_t n)
{
	int r;

	if (k->state != KEEPER_READY) {
		for (size_t i = 0; i < n; i++)
			close(fd[i]);
		return -EAGAIN;
	}
	r = frame_writer_put(&k->writer, msg, fd, n);
	if (r == 0 && flush(k) < 0) {
		end(k);
		r = -EAGAIN;
	}
	return r;
}

int
keeper_attach(struct keeper *k, const char *name, int pidfd, int gate)
{
	struct msg msg = { .type = MSG_ATTACH, .attach.name = msg_str(name) };
	int fd[2] = { fcntl(pidfd, F_DUPFD_CLOEXEC, 3), gate };

	if (fd[0] < 0) {
		int r = -errno;

		close(gate);
		return r;
	}
	return put(k, &msg, fd, 2);
}

static void
free_mounting(struct mounting *mounting)
{
	event_del(&mounting->readable);
	close(mounting->gate);
	free(mounting);
}

static void
on_mounted(evutil_socket_t fd, short what, void *arg)
{
	struct mounting mounting = *(struct mounting *)arg;
	unsigned char said = EPIPE;

	(void)what;
	if (read(fd, &said, 1) != 1)
		said = EPIPE;
	free_mounting(arg);
	mounting.mounted(mounting.arg, said);
}

int
keeper_mount(struct keeper *k, const char *name, int pidfd,
	     void (*mounted)(void *arg, int error), void *arg, struct mounting **mounting_r)
{
	struct mounting *mounting;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	r = keeper_attach(k, name, pidfd, pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	mounting = calloc(1, sizeof(*mounting));
	if (mounting == NULL)
		abort();
	mounting->gate = pair[0];
	mounting->mounted = mounted;
	mounting->arg = arg;
	event_assign(&mounting->readable, k->options.base, pair[0], EV_READ, on_mounted,
		     mounting);
	event_add(&mounting->readable, NULL);
	*mounting_r = mounting;
	return 0;
}

void
keeper_unwait(struct mounting *mounting)
{
	free_mounting(mounting);
}

int
keeper_discard(struct keeper *k, const char *name)
{
	struct msg msg = { .type = MSG_DISCARD, .discard.name = msg_str(name) };

	return put(k, &msg, NULL, 0);
}

/* ---- taking in ---- */

static void
free_taking(struct taking *taking)
{
	event_del(&taking->readable);
	frame_reader_done(&taking->reader);
	close(taking->socket);
	free(taking);
}

static void
on_taken(evutil_socket_t fd, short what, void *arg)
{
	struct taking *taking = arg;
	keeper_taken *tell = taking->taken;
	void *tell_arg = taking->arg;
	struct frame frame = { 0 };
	uint32_t files = 0;
	uint64_t bytes = 0;
	char text[1200];
	int r = frame_reader_read(&taking->reader, fd, &frame), error = EPIPE;

	(void)what;
	if (r == 0)
		return;
	snprintf(text, sizeof(text), "the keeper of packages ended before they were stored");
	if (r > 0 && frame.msg.type == MSG_TAKEN) {
		const struct msg_taken *taken = &frame.msg.taken;

		error = (int)taken->error;
		bytes = taken->bytes;
		files = taken->files;
		snprintf(text, sizeof(text), "%.*s: %s", (int)taken->what.len,
			 taken->what.at, strerror(error));
	}
	frame_done(&frame);
	free_taking(taking);
	tell(tell_arg, error, text, bytes, files);
}

int
keeper_take(struct keeper *k, const struct taking_request *request, keeper_taken *taken,
	    void *arg, struct taking **taking_r)
{
	struct msg msg = { .type = MSG_TAKE, .take = {
		.name = msg_str(request->name),
		.manifest = { request->manifest, request->manifest_len },
		.bytes_max = request->bytes_max,
		.files_max = request->files_max,
	} };
	int fd[2] = { request->stream, -1 }, pair[2], r;
	struct taking *taking;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		r = -errno;
		close(request->stream);
		return r;
	}
	fd[1] = pair[1];
	r = fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = put(k, &msg, fd, 2);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	taking = calloc(1, sizeof(*taking));
	if (taking == NULL)
		abort();
	taking->socket = pair[0];
	taking->taken = taken;
	taking->arg = arg;
	frame_reader_init(&taking->reader, FROM_KEEPER);
	event_assign(&taking->readable, k->options.base, pair[0], EV_READ | EV_PERSIST,
		     on_taken, taking);
	event_add(&taking->readable, NULL);
	*taking_r = taking;
	return 0;
}

void
keeper_forget(struct taking *taking)
{
	free_taking(taking);
}
