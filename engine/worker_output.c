/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the supervisor's ends of the pipes of a worker's standard output
 * and standard error.
 * Reads:   bytes of scripts, at most a buffer at a time. */
#include "engine/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "engine/engine_parts.h"

#define PIPE_MAX (1 << 20)	/* the largest pipe that needs no privilege */

/* Handles one read of a pipe; the execution may be over afterwards. */
static ssize_t
output_read_output(struct worker *w, enum stream stream)
{
	unsigned char *scratch = w->engine->scratch;
	ssize_t n = read(w->pipe[stream], scratch, SCRATCH_BYTES);

	if (n < 0 && errno != EAGAIN && errno != EINTR)	/* a closed pipe would fail it */
		n = read(w->pipe[stream], scratch, SCRATCH_BYTES);
	if (n > 0) {
		w->user->on_output(w, stream, scratch, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		event_del(&w->output[stream]);
		close(w->pipe[stream]);
		w->pipe[stream] = -1;
	}
	return n;
}

static void
on_stdout(evutil_socket_t, short, void *arg)
{
	output_read_output(arg, STREAM_STDOUT);
}

static void
on_stderr(evutil_socket_t, short, void *arg)
{
	output_read_output(arg, STREAM_STDERR);
}

void
worker_drain(struct worker *w)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		ssize_t total = 0, n;

		/* A short read means that the pipe was empty at that moment. */
		do {
			n = w->pipe[i] >= 0 ? output_read_output(w, (enum stream)i) : 0;
			total += n;
		} while (n == SCRATCH_BYTES && total < PIPE_MAX);
	}
}

void
worker_output_discard(struct worker *w)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		for (ssize_t n = SCRATCH_BYTES, total = 0;
		     w->pipe[i] >= 0 && n == SCRATCH_BYTES && total < PIPE_MAX; total += n)
			n = read(w->pipe[i], w->engine->scratch, SCRATCH_BYTES);
}

int
worker_output_make(struct worker *w, int theirs_r[STREAM_COUNT])
{
	int pair[2];

	for (int i = 0; i < STREAM_COUNT; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		w->pipe[i] = pair[0];
		theirs_r[i] = pair[1];
		/* A script may open /dev/stdout. It does not run with the uid of the pipe's owner,
		 * so it needs the permission for others. */
		if (fcntl(w->pipe[i], F_SETFL, O_NONBLOCK) < 0 ||
		    fchmod(w->pipe[i], 0622) < 0)
			return -errno;
	}
	return 0;
}

void
worker_output_assign(struct worker *w)
{
	struct event_base *base = w->engine->base;

	event_assign(&w->output[STREAM_STDOUT], base, w->pipe[STREAM_STDOUT],
		     EV_READ | EV_PERSIST, on_stdout, w);
	event_assign(&w->output[STREAM_STDERR], base, w->pipe[STREAM_STDERR],
		     EV_READ | EV_PERSIST, on_stderr, w);
}

void
worker_output_listen(struct worker *w)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		if (w->pipe[i] >= 0)
			event_add(&w->output[i], NULL);
}

void
worker_output_mute(struct worker *w)
{
	for (int i = 0; i < STREAM_COUNT; i++)
		event_del(&w->output[i]);
}

void
worker_output_close(struct worker *w)
{
	worker_output_mute(w);
	for (int i = 0; i < STREAM_COUNT; i++) {
		if (w->pipe[i] >= 0)
			close(w->pipe[i]);
		w->pipe[i] = -1;
	}
}
