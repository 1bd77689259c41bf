/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher's answers to the supervisor. The first byte has the questions, and the number of
 * descriptors of each answer. The rest is the answers: frames, then the end. The target asserts:
 *
 * - A started process has a pid and three descriptors; an adopted one has one descriptor. After an
 *   error there is none, and the failed step is UTF-8.
 * - Each order to start a program is answered once.
 * - The launcher is lost in the end, and is made again.
 * - All received descriptors are closed in the end. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/utf8.h"
#include "host/helper.h"
#include "host/launcher.h"
#include "host/outer.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/helper.h"

#define ANSWERS_MAX 60000	/* bytes; fits a socket's buffer */
#define QUESTIONS 4

void
launcher_live(const void *options, int socket, pid_t supervisor)
{
	(void)options;
	(void)supervisor;
	helper_give(socket);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Sends each frame with n_fds descriptors, until the socket is full. */
static void
answer(int socket, const uint8_t *at, size_t size, const int *fds, size_t n_fds)
{
	while (size > 0) {
		size_t len = size;

		if (size >= FRAME_HEADER)
			len = FRAME_HEADER + ((size_t)at[2] << 24 | (size_t)at[3] << 16 |
					      (size_t)at[4] << 8 | at[5]);
		if (len > size)
			len = size;
		if (fdpass_send(socket, at, len, fds, n_fds, MSG_DONTWAIT) != (ssize_t)len)
			break;
		at += len;
		size -= len;
	}
	MUST(shutdown(socket, SHUT_WR) == 0);
}

static unsigned int n_ordered, n_launched;

static void
on_launched(void *arg, int error, const char *what, struct launch *launch)
{
	(void)arg;
	n_launched++;
	MUST(error <= 0 && utf8_prefix(what, strlen(what)) == strlen(what));
	if (error < 0)
		return;
	MUST(launch->pid >= 2 && is_open(launch->pidfd) && is_open(launch->control) &&
	     is_open(launch->trouble));
	launch_done(launch);
}

static void
start(struct launcher *launcher, unsigned int profile, struct launch_order *order)
{
	n_ordered++;
	launcher_start(launcher, LAUNCH_ZYGOTE, profile, 0, order, on_launched, NULL);
}

static void
adopt(struct launcher *launcher)
{
	int fd = launcher_adopt(launcher, 2);

	MUST(fd < 0 || is_open(fd));
	if (fd >= 0)
		close(fd);
}

/* The supervisor sends LAUNCH and ADOPT only. */
static void
check_questions(int socket)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	size_t n = 0;

	MUST(fcntl(socket, F_SETFL, O_NONBLOCK) == 0);
	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (frame_reader_read(&reader, socket, &frame) == 1) {
		MUST(frame.msg.type == MSG_LAUNCH || frame.msg.type == MSG_ADOPT);
		MUST(++n <= QUESTIONS);
		frame_done(&frame);
	}
	frame_reader_done(&reader);
}

static void
ask(struct launcher *launcher, uint8_t which)
{
	struct launch_order order[QUESTIONS];
	const uint64_t lost = helper_state(HELPER_LAUNCHER).lost;
	static struct event_base *base;

	if (!base)
		base = event_base_new();
	n_ordered = n_launched = 0;
	launcher_watch(launcher, base, NULL, NULL);
	for (unsigned int i = 0; i < QUESTIONS; i++)
		if (which & 1U << i)
			adopt(launcher);
		else
			start(launcher, i, &order[i]);
	while (helper_state(HELPER_LAUNCHER).lost == lost || n_launched < n_ordered)
		event_base_loop(base, EVLOOP_ONCE);
	MUST(n_launched == n_ordered);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct outer_namespace outer;
	static const struct launcher_options options = { .outer = &outer };
	static uint8_t answers[ANSWERS_MAX];
	struct launcher *launcher;
	int ends[2], fds[MSG_FDS_MAX], socket;
	char byte;

	if (size == 0 || size > ANSWERS_MAX)
		return 0;
	helper_prepare();
	MUST(launcher_new(&options, &launcher, NULL) == 0);
	socket = helper_take();
	MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	for (size_t i = 0; i < MSG_FDS_MAX; i++)
		fds[i] = ends[1];
	memcpy(answers, data + 1, size - 1);
	frames_set_versions(answers, size - 1);
	answer(socket, answers, size - 1, fds, data[0] >> 6);
	ask(launcher, data[0]);
	check_questions(socket);
	launcher_free(launcher);
	helper_reap_all();
	close(socket);

	/* end of file: all copies of the writing end are closed */
	close(ends[1]);
	MUST(read(ends[0], &byte, 1) == 0);
	close(ends[0]);
	return 0;
}
