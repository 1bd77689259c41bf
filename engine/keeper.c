/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the keeper's process, and a socket for each environment that
 * is being made.
 * Reads:   KEEPING and TAKEN, from a program that runs no client's code. */
#include "engine/keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/log.h"
#include "base/watched.h"
#include "base/xalloc.h"
#include "host/child.h"
#include "proto/frame.h"

#define START_SECONDS 30
#define WRITER_MAX (8 * (size_t)MANIFEST_MAX)

struct keeper {
	struct keeper_options options;
	struct child child;
	int no_volumes, no_folder;
	unsigned int starts;
};

struct taking {
	struct frame_reader reader;
	struct event readable;
	int socket;
	keeper_taken *taken;
	void *arg;
};

/* A mount that an execution or a session waits for. */
struct mounting {
	struct event readable;
	int gate;
	void (*mounted)(void *arg, int error);
	void *arg;
};

/* ---- life ---- */

static void
keeper_on_down(void *arg)
{
	struct keeper *k = arg;
	struct child *c = &k->child;
	struct log_quoted quoted;

	if (child_is_told(c))
		log_line(LOG_WARNING, c->has_served ? "keeper-lost" : "keeper-failed", "text=%s",
			 log_quote(&quoted, c->text, strlen(c->text)));
	child_arm(c, c->has_served ? 0 : child_backoff_ms(c));
}

static void
keeper_start(struct keeper *k)
{
	k->starts++;
	child_start(&k->child, k->options.launcher, 0, 0);
}

static void
keeper_on_due(void *arg)
{
	struct keeper *k = arg;

	if (k->child.state == CHILD_DOWN)
		keeper_start(k);
}

static int
keeper_on_message(void *arg, struct frame *frame)
{
	struct keeper *k = arg;
	const struct msg_keeping *keeping = &frame->msg.keeping;
	struct log_quoted quoted;

	if (frame->msg.type == MSG_KEEPING && k->child.state == CHILD_SERVING) {
		log_line(LOG_ERR, "store-replaced", "directory=%s made-again=%s text=\"it was "
			 "removed or replaced by somebody else\"",
			 log_quote(&quoted, keeping->what.at, keeping->what.len),
			 keeping->error ? strerrorname_np((int)keeping->error) : "yes");
		return 0;
	}
	if (frame->msg.type != MSG_KEEPING || k->child.state != CHILD_STARTING)
		return -EBADMSG;
	if (!child_is_of_build(&k->child, &keeping->build))
		return -EPROTO;
	if (keeping->error != 0) {
		child_note(&k->child, -(int)keeping->error, "%.*s: %s",
			   (int)keeping->what.len, keeping->what.at,
			   strerror((int)keeping->error));
		return -ECHILD;
	}
	child_is_ready(&k->child);
	k->child.failed_starts = 0;
	k->no_volumes = (int)keeping->volumes;
	k->no_folder = (int)keeping->folder;
	log_line(LOG_INFO, "keeper-ready", "removed=%u", keeping->removed);
	if (k->options.wants_volumes && k->no_volumes != 0)
		log_line(LOG_WARNING, "volumes-none", "err=%s text=\"volumes need /dev/fuse and "
			 "[workspace] directory\"", strerrorname_np(k->no_volumes));
	return 0;
}

static const struct child_kind keeper_kind = {
	.name = "the keeper of packages",
	.launch = LAUNCH_KEEPER,
	.from = FROM_KEEPER,
	.writer_max = WRITER_MAX,
	.start_seconds = START_SECONDS,
	.on_message = keeper_on_message,
	.on_down = keeper_on_down,
	.on_due = keeper_on_due,
};

int
keeper_new(const struct keeper_options *options, struct keeper **keeper_r)
{
	struct keeper *k = xcalloc(1, sizeof(*k));

	k->options = *options;
	child_init(&k->child, &keeper_kind, options->base, k);
	keeper_start(k);
	*keeper_r = k;
	return 0;
}

void
keeper_free(struct keeper *k)
{
	if (k == NULL)
		return;
	child_done(&k->child);
	free(k);
}

unsigned int
keeper_starts(const struct keeper *k)
{
	return k->starts;
}

bool
keeper_is_there(const struct keeper *k)
{
	return k->child.state == CHILD_SERVING ||
	       (k->child.state == CHILD_STARTING && k->child.failed_starts == 0);
}

const char *
keeper_trouble(const struct keeper *k)
{
	if (k->child.state == CHILD_SERVING)
		return "";
	return k->child.text[0] != '\0' ? k->child.text : "the store of packages is being opened";
}

/* ---- orders to the keeper ---- */

/* Sends a message with descriptors, which belong to the keeper from now on. A keeper that is still
 * starting reads the message once it serves. If it ends before, its end closes the descriptors. */
static int
keeper_put(struct keeper *k, const struct msg *msg, const int *fd, size_t n)
{
	int r;

	if (!child_is_up(&k->child)) {
		for (size_t i = 0; i < n; i++)
			close(fd[i]);
		return -ENOTCONN;
	}
	r = child_send(&k->child, msg, fd, n);
	return child_is_up(&k->child) ? r : -ENOTCONN;
}

static int
put_attach(struct keeper *k, const struct msg *msg, int pidfd, int gate)
{
	int fd[2] = { fcntl(pidfd, F_DUPFD_CLOEXEC, 3), gate };

	if (fd[0] < 0) {
		int r = -errno;

		close(gate);
		return r;
	}
	return keeper_put(k, msg, fd, 2);
}

int
keeper_attach(struct keeper *k, const char *name, int pidfd, int gate)
{
	struct msg msg = { .type = MSG_ATTACH, .attach.name = msg_str(name) };

	return put_attach(k, &msg, pidfd, gate);
}

int
keeper_attach_files(struct keeper *k, const char *directory, const char *const *names, size_t n,
		    unsigned int first, int pidfd, int gate)
{
	struct msg_str name[FILE_PLACES];
	struct msg msg = { .type = MSG_ATTACH_FILES, .attach_files = {
		.directory = msg_str(directory), .names = { name, n }, .first = first } };

	assert(n <= FILE_PLACES);
	for (size_t i = 0; i < n; i++)
		name[i] = msg_str(names[i]);
	return put_attach(k, &msg, pidfd, gate);
}

int
keeper_no_volumes(const struct keeper *k)
{
	return k->no_volumes;
}

int
keeper_no_folder(const struct keeper *k)
{
	return k->no_folder;
}

int
keeper_attach_folder(struct keeper *k, int pidfd, int gate)
{
	return put_attach(k, &(struct msg){ .type = MSG_FOLDER }, pidfd, gate);
}

int
keeper_attach_volume(struct keeper *k, const struct keeper_volume *volume, int cgroup, int pidfd,
		     int gate)
{
	struct msg msg = { .type = MSG_VOLUME, .volume = {
		.tenant = msg_str(volume->tenant), .name = msg_str(volume->name),
		.bytes = volume->bytes, .files = volume->files,
		.names_max = volume->names_max, .bytes_max = volume->bytes_max } };
	int fd[3] = { fcntl(pidfd, F_DUPFD_CLOEXEC, 3), gate,
		      fcntl(cgroup, F_DUPFD_CLOEXEC, 3) };

	if (fd[0] < 0 || fd[2] < 0) {
		int r = -errno;

		for (size_t i = 0; i < 3; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		return r;
	}
	return keeper_put(k, &msg, fd, 3);
}

static void
free_mounting(struct mounting *mounting)
{
	event_del(&mounting->readable);
	close(mounting->gate);
	free(mounting);
}

static void
keeper_on_mounted(evutil_socket_t fd, short, void *arg)
{
	struct mounting mounting = *(struct mounting *)arg;
	unsigned char said = EPIPE;

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
	mounting = xcalloc(1, sizeof(*mounting));
	mounting->gate = pair[0];
	mounting->mounted = mounted;
	mounting->arg = arg;
	event_assign(&mounting->readable, k->options.base, pair[0], EV_READ, keeper_on_mounted,
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

	return keeper_put(k, &msg, NULL, 0);
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
		/* With EBADMSG, what is a whole sentence: why a wheel was refused. */
		snprintf(text, sizeof(text), "%.*s%s%s", (int)taken->what.len, taken->what.at,
			 error == EBADMSG ? "" : ": ", error == EBADMSG ? "" : strerror(error));
	}
	frame_done(&frame);
	free_taking(taking);
	tell(tell_arg, error, text, bytes, files);
}

static int
put_take(struct keeper *k, const struct taking_request *request, int taken)
{
	const int fd[] = { request->stream, request->compiler, taken };
	struct msg_str wheel[WHEELS_MAX];
	struct msg msg = { .type = MSG_TAKE, .take = {
		.name = msg_str(request->name),
		.manifest = { request->manifest, request->manifest_len },
		.wheels = { wheel, request->n_wheels },
		.python = msg_str(request->python),
		.bytes_max = request->bytes_max,
		.files_max = request->files_max,
	} };

	assert(request->n_wheels <= WHEELS_MAX);
	for (size_t i = 0; i < request->n_wheels; i++)
		wheel[i] = msg_str(request->wheel[i]);
	return keeper_put(k, &msg, fd, sizeof(fd) / sizeof(*fd));
}

int
keeper_take(struct keeper *k, const struct taking_request *request, keeper_taken *taken,
	    void *arg, struct taking **taking_r)
{
	int pair[2], r;
	struct taking *taking;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		r = -errno;
		close(request->stream);
		close(request->compiler);
		return r;
	}
	watched_refuse(pair[0]);
	r = put_take(k, request, pair[1]);
	if (r == 0 && fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	taking = xcalloc(1, sizeof(*taking));
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
