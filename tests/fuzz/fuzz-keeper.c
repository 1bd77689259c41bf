/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's messages to the supervisor. The first byte says whether the keeper is ready first,
 * and the number of descriptors of its messages. Two bytes are the length of the frames on its
 * line, which follow. Then come the bytes for the gate of a mount, after their number. The rest is
 * frames on the socket of a set. The target asserts:
 *
 * - The set and the mount each have one answer.
 * - A set is there only after TAKEN without an error; a mount only after a 0 at the gate.
 * - Each error has a text.
 * - All received descriptors are closed in the end. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/utf8.h"
#include "engine/keeper.h"
#include "host/launcher.h"
#include "tests/fuzz/frames.h"

#define INPUT_MAX 30000
#define NAME "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct {
	struct event_base *base;
	bool started;
	int line, gate, take;		/* the keeper's ends */
	unsigned int taken, mounted;
	bool is_taken, is_mounted;
} rig;

/* ---- in place of the launcher: one process, which does nothing ---- */

void
launcher_finish(struct launch_order *order)
{
	(void)order;
}

void
launcher_start(struct launcher *launcher, enum launch_kind kind, unsigned int profile,
	       uint64_t modules, struct launch_order *order,
	       void (*on_launched)(void *arg, int error, const char *what, struct launch *launch),
	       void *arg)
{
	struct launch launch;
	int pair[2];

	(void)launcher;
	MUST(modules == 0);
	(void)order;
	MUST(kind == LAUNCH_KEEPER && profile == 0);
	if (rig.started) {
		on_launched(arg, -EBUSY, "start it twice", NULL);
		return;
	}
	rig.started = true;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	launch = (struct launch){ .pid = fork(), .control = pair[0], .trouble = -1 };
	if (launch.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, ~0U, 0);
		for (;;)
			pause();
	}
	launch.pidfd = (int)syscall(SYS_pidfd_open, launch.pid, 0);
	MUST(launch.pidfd >= 0);
	rig.line = pair[1];
	on_launched(arg, 0, "", &launch);
}

void
launch_init(struct launch *launch)
{
	*launch = (struct launch){ .pidfd = -1, .control = -1, .trouble = -1 };
}

void
launch_done(struct launch *launch)
{
	if (launch->pidfd >= 0)
		close(launch->pidfd);
	if (launch->control >= 0)
		close(launch->control);
	launch_init(launch);
}

bool
launch_trouble(const struct launch *launch, const char **step_r, int *error_r)
{
	(void)launch;
	(void)step_r;
	(void)error_r;
	return false;
}

/* ---- requests to the keeper ---- */

static void
on_taken(void *arg, int error, const char *text, uint64_t bytes, uint32_t files)
{
	(void)arg;
	(void)bytes;
	MUST(rig.taken++ == 0 && error >= 0 && files <= INT32_MAX);
	MUST(*text && utf8_prefix(text, strlen(text)) == strlen(text));
	rig.is_taken = error == 0;
}

static void
on_mounted(void *arg, int error)
{
	(void)arg;
	MUST(rig.mounted++ == 0 && error >= 0 && error <= UINT8_MAX);
	rig.is_mounted = error == 0;
}

static void
ask(struct keeper *keeper, int pipe)
{
	const char *wheel = "a 1 " NAME " 1";
	const struct taking_request request = {
		.name = NAME, .manifest = "{}", .manifest_len = 2, .wheel = &wheel, .n_wheels = 1,
		.python = "/p", .bytes_max = 1, .files_max = 1,
		.stream = dup(pipe), .compiler = dup(pipe) };
	struct mounting *mounting;
	struct taking *taking;

	MUST(keeper_take(keeper, &request, on_taken, NULL, &taking) == 0);
	MUST(keeper_mount(keeper, NAME, pipe, on_mounted, NULL, &mounting) == 0);
}

static void
take_questions(void)
{
	struct frame_reader reader;
	struct frame frame = { 0 };

	frame_reader_init(&reader, FROM_SUPERVISOR);
	MUST(frame_reader_read(&reader, rig.line, &frame) == 1 && frame.msg.type == MSG_TAKE);
	rig.take = frame_take_fd(&frame, 2);
	frame_done(&frame);
	MUST(frame_reader_read(&reader, rig.line, &frame) == 1 && frame.msg.type == MSG_ATTACH);
	rig.gate = frame_take_fd(&frame, 1);
	frame_done(&frame);
	MUST(frame_reader_read(&reader, rig.line, &frame) == 0);
	frame_reader_done(&reader);
}

/* ---- its messages ---- */

static void
turn(void)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(rig.base, EVLOOP_NONBLOCK);
}

static void
say(int socket, struct rest rest, const int *fds, size_t n_fds)
{
	uint8_t *bytes = malloc(rest.len + 1);
	ssize_t n = 0;

	memcpy(bytes, rest.at, rest.len);
	frames_set_versions(bytes, rest.len);
	if (rest.len > 0)
		n = fdpass_send(socket, bytes, rest.len, fds, n_fds, 0);
	/* -EPERM: the kernel refuses descriptors on the line. */
	MUST(n == (ssize_t)rest.len || n == -EPIPE || n == -ECONNRESET ||
	     (n_fds > 0 && n == -EPERM));
	free(bytes);
}

static void
say_serves(void)
{
	const struct msg msg = { .type = MSG_KEEPING, .keeping = {
		.build = msg_str(PROTO_BUILD), .what = msg_str("") } };

	MUST(frame_send(rig.line, &msg, NULL, 0) == 0);
}

/* Is the first message on the socket TAKEN without an error? */
static bool
says_taken(struct rest rest)
{
	uint8_t *bytes = malloc(rest.len + 1);
	struct frame_reader reader;
	struct frame frame = { 0 };
	size_t used;
	bool said;

	memcpy(bytes, rest.at, rest.len);
	frames_set_versions(bytes, rest.len);
	frame_reader_init(&reader, FROM_KEEPER);
	said = frame_reader_feed(&reader, bytes, rest.len, &used, &frame) == 1 &&
	       frame.msg.type == MSG_TAKEN && frame.msg.taken.error == 0;
	frame_done(&frame);
	frame_reader_done(&reader);
	free(bytes);
	return said;
}

static void
answer(struct keeper *keeper, struct rest rest, const int *fds)
{
	uint8_t what = rest_byte(&rest);
	size_t len = (size_t)rest_byte(&rest) << 8 | rest_byte(&rest);
	struct rest line = rest_take(&rest, len), gate = rest_take(&rest, rest_byte(&rest) % 3);
	const char *trouble;

	if (what & 1)
		say_serves();
	turn();
	say(rig.line, line, fds, what >> 1 & 3);
	turn();
	trouble = keeper_trouble(keeper);
	MUST(utf8_prefix(trouble, strlen(trouble)) == strlen(trouble));
	MUST(*trouble ? true : keeper_is_there(keeper));
	say(rig.take, rest, NULL, 0);
	if (gate.len > 0)
		MUST(write(rig.gate, gate.at, gate.len) == (ssize_t)gate.len);
	close(rig.take);
	close(rig.gate);
	turn();
	MUST(rig.taken == 1 && rig.is_taken == says_taken(rest));
	MUST(rig.mounted == 1 && rig.is_mounted == (gate.len > 0 && *gate.at == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct keeper_options options;
	struct keeper *keeper;
	int ends[2], fds[4];
	char byte;

	if (size > INPUT_MAX)
		return 0;
	if (!rig.base) {
		log_init(LOG_EMERG);
		rig.base = event_base_new();
	}
	rig.started = false;
	rig.taken = rig.mounted = 0;
	MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	for (size_t i = 0; i < 4; i++)
		fds[i] = ends[1];
	options = (struct keeper_options){ .base = rig.base };
	MUST(keeper_new(&options, &keeper) == 0);
	ask(keeper, ends[1]);
	take_questions();
	answer(keeper, (struct rest){ data, size }, fds);
	keeper_free(keeper);
	close(rig.line);

	/* end of file: all copies of the writing end are closed */
	close(ends[1]);
	MUST(read(ends[0], &byte, 1) == 0);
	close(ends[0]);
	return 0;
}
