/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the launcher from a supervisor that an attacker controls. Each bit of the first
 * byte says whether a started process ends at once; the rest is frames. The target asserts:
 *
 * - Each question has one answer.
 * - A started program is one of the table, and gets the message of the table.
 * - The number of live processes of a program is within its limit.
 * - Only a child of the supervisor is adopted; here there is none.
 * - Only profiles of the configuration are learned.
 *
 * launcher_live() never returns, so the target includes the file and calls
 * launcher_process_serve(). launch_start() of this file takes the place of the real one. */
#include "host/launcher_process.c"

#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/fuzz/frames.h"
#include "tests/fuzz/fuzz.h"

#define QUESTIONS_MAX 4096	/* bytes */
#define STARTED_MAX 64
#define NO_PROCESS INT32_MAX	/* above any pid: it has no child */

static struct launcher_options options;
static struct launcher_process l = { .options = &options, .supervisor = NO_PROCESS };

static const char *const profiles[] = { "basic", "a", "b", "c" };

static struct {
	unsigned int n;
	uint8_t ending;
	const struct launch_program *program[STARTED_MAX];
	bool ended[STARTED_MAX];
} started;

static void
check_first(const struct launch_program *program, int control)
{
	struct frame_reader reader;
	struct frame frame = { 0 };

	frame_reader_init(&reader, FROM_SUPERVISOR);
	MUST(frame_reader_read(&reader, control, &frame) == 1);
	if (program == &l.keeper.program)
		MUST(program->argv == keeper_argv && frame.msg.type == MSG_KEEP);
	for (size_t i = 0; program != &l.keeper.program; i++) {
		MUST(i < l.n_zygotes);
		if (program != &l.zygote[i].program)
			continue;
		MUST(program->argv == l.zygote_argv[i] && frame.msg.type == MSG_CONFIGURE);
		MUST(strncmp(profiles[i], frame.msg.configure.profile.at,
			     frame.msg.configure.profile.len) == 0);
		break;
	}
	frame_done(&frame);
	frame_reader_done(&reader);
}

/* In place of launch.c. The pidfd of an ended process is readable. */
pid_t
launch_start(const struct outer_namespace *outer, const struct launch_program *program,
	     pid_t parent, int control, int trouble, int *pidfd_r)
{
	unsigned int alive = 0;
	bool ends = started.ending & 1U << started.n % 8;

	(void)outer;
	MUST(parent == NO_PROCESS && program->fd >= 0 && trouble >= 0);
	MUST(started.n < STARTED_MAX);
	check_first(program, control);
	for (unsigned int i = 0; i < started.n; i++)
		alive += started.program[i] == program && !started.ended[i];
	MUST(alive < LAUNCHER_ALIVE_MAX);
	started.program[started.n] = program;
	started.ended[started.n++] = ends;
	*pidfd_r = eventfd(ends, EFD_CLOEXEC);
	MUST(*pidfd_r >= 0);
	return 1000 + (pid_t)started.n;
}

/* ---- the supervisor's end ---- */

static void
check_answer(int socket, const struct msg *asked, unsigned int before)
{
	struct frame_reader reader;
	struct frame frame = { 0 };

	frame_reader_init(&reader, FROM_LAUNCHER);
	MUST(frame_reader_read(&reader, socket, &frame) == 1);
	if (asked->type == MSG_LAUNCH) {
		const struct msg_launched *launched = &frame.msg.launched;

		MUST(frame.msg.type == MSG_LAUNCHED);
		MUST((launched->error == 0) == (started.n == before + 1));
		MUST(launched->error == 0 ? frame.fds.n == 3 && launched->what.len == 0
					  : frame.fds.n == 0 && launched->what.len > 0);
	} else if (asked->type == MSG_LEARN) {
		const struct msg_learned *learned = &frame.msg.learned;

		MUST(frame.msg.type == MSG_LEARNED && frame.fds.n == 0 && started.n == before);
		MUST(learned->error == 0
		     ? learned->profile < l.n_zygotes && learned->why.len == 0 &&
		       is_text(&asked->learn.profile, profiles[learned->profile])
		     : learned->why.len > 0);
	} else {
		MUST(frame.msg.type == MSG_ADOPTED && frame.msg.adopted.error != 0);
		MUST(frame.fds.n == 0 && started.n == before);
	}
	frame_done(&frame);
	MUST(frame_reader_read(&reader, socket, &frame) == 0);
	frame_reader_done(&reader);
}

static void
ask(int socket, const uint8_t *at, size_t size)
{
	struct frame_reader reader;
	struct frame frame = { 0 };
	size_t used;

	frame_reader_init(&reader, FROM_SUPERVISOR);
	while (started.n < STARTED_MAX &&
	       frame_reader_feed(&reader, at, size, &used, &frame) == 1) {
		unsigned int before = started.n;
		int r = launcher_process_serve(&l, &frame.msg);
		bool taken = frame.msg.type == MSG_LAUNCH || frame.msg.type == MSG_ADOPT ||
			     frame.msg.type == MSG_LEARN;

		MUST(r == (taken ? 0 : -EBADMSG));
		if (taken)
			check_answer(socket, &frame.msg, before);
		frame_done(&frame);
		at += used;
		size -= used;
		if (r < 0)
			break;
	}
	frame_reader_done(&reader);
}

static const struct config *
new_config(const char *text)
{
	struct config *config = config_new();
	int fd = memfd_create("config", MFD_CLOEXEC);
	char path[64];

	MUST(dprintf(fd, "[packages]\nstore = /store\n%s", text) > 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST(config_read(config, path, stderr) == 0);
	close(fd);
	return config;
}

/* What a reload reads: one profile is as it was, one is changed, one is new, one is missing. */
static const struct config *
read_again(void *arg)
{
	(void)arg;
	return new_config("[profile c]\n[profile a]\nmodules = json\n");
}

static void
forget(struct row *row)
{
	for (size_t i = 0; i < LAUNCHER_ALIVE_MAX; i++) {
		if (row->alive[i] >= 0)
			close(row->alive[i]);
		row->alive[i] = -1;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frames[QUESTIONS_MAX];
	int pair[2];

	if (size == 0 || size > QUESTIONS_MAX)
		return 0;
	if (!options.config) {
		options = (struct launcher_options){ .config = new_config("[profile a]\n"
									  "[profile b]\n"),
						     .read = read_again, .worker_fd = 0,
						     .keeper_fd = 0, .egress_fd = -1,
						     .tools_fd = -1 };
		fill_table(&l);
	}
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	MUST(fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
	l.socket = pair[0];
	started.n = 0;
	started.ending = data[0];
	memcpy(frames, data + 1, size - 1);
	frames_set_versions(frames, size - 1);
	ask(pair[1], frames, size - 1);
	close(pair[0]);
	close(pair[1]);
	for (size_t i = 0; i < l.n_zygotes; i++)
		forget(&l.zygote[i]);
	forget(&l.keeper);
	return 0;
}
