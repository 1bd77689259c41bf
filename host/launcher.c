/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the launcher's process and the socket to it.
 * Reads:   LAUNCHED, ADOPTED and LEARNED, from a process that parses nothing of a client. */
#include "host/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/why.h"
#include "host/helper.h"
#include "host/launch.h"
#include "host/launcher_parts.h"
#include "host/outer.h"
#include "proto/frame.h"

#define LAUNCHED_FDS 3		/* the most descriptors of an answer */

struct launcher {
	struct helper helper;
	struct frame_reader reader;
	struct event readable;
	bool watched, lost;
	void (*on_lost)(void *arg);
	void *arg;
	uint32_t slots;
	bool has_egress;
	int spare[LAUNCHED_FDS];	/* reserved for an answer's descriptors; -1: not reserved
					 * now */
	char what[257];			/* the step that failed last */
};

/* Reserves descriptors for the next answer. Without them, clients that use up all descriptors
 * would make an answer look like a breach of the protocol, which ends the service. */
static void
spare_fds(struct launcher *l)
{
	for (size_t i = 0; i < LAUNCHED_FDS; i++)
		if (l->spare[i] < 0)
			l->spare[i] = fcntl(l->helper.socket, F_DUPFD_CLOEXEC, 3);
}

static void
give_spare_fds(struct launcher *l)
{
	for (size_t i = 0; i < LAUNCHED_FDS; i++) {
		if (l->spare[i] >= 0)
			close(l->spare[i]);
		l->spare[i] = -1;
	}
}

/* ---- life ---- */

int
launcher_new(const struct launcher_options *options, struct launcher **launcher_r,
	     struct why *why_r)
{
	struct launcher *l = calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return -ENOMEM;
	*l = (struct launcher){ .slots = options->outer->slots,
				.has_egress = options->egress_fd >= 0 };
	memset(l->spare, -1, sizeof(l->spare));
	frame_reader_init(&l->reader, FROM_LAUNCHER);
	r = helper_fork(&l->helper);
	if (r == 1)
		launcher_live(options, l->helper.pid, l->helper.socket);
	if (r < 0) {
		launcher_free(l);
		return why_say(why_r, r, "", "launcher: cannot start it: %s", strerror(-r));
	}
	spare_fds(l);
	*launcher_r = l;
	return 0;
}

void
launcher_free(struct launcher *l)
{
	if (l == NULL)
		return;
	if (l->watched)
		event_del(&l->readable);
	give_spare_fds(l);
	helper_end(&l->helper);
	frame_reader_done(&l->reader);
	free(l);
}

/* No answer is expected here: this is the launcher's end, or a breach of the protocol. */
static void
launcher_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct launcher *l = arg;

	(void)fd;
	(void)what;
	l->lost = true;
	event_del(&l->readable);
	l->on_lost(l->arg);
}

void
launcher_watch(struct launcher *l, struct event_base *base, void (*on_lost)(void *arg), void *arg)
{
	l->on_lost = on_lost;
	l->arg = arg;
	l->watched = true;
	event_assign(&l->readable, base, l->helper.socket, EV_READ | EV_PERSIST,
		     launcher_on_readable, l);
	event_add(&l->readable, NULL);
}

pid_t
launcher_pid(const struct launcher *l)
{
	return l->helper.pid;
}

uint32_t
launcher_slots(const struct launcher *l)
{
	return l->slots;
}

bool
launcher_has_egress(const struct launcher *l)
{
	return l->has_egress;
}

/* ---- asking ---- */

/* The owner is told from the loop, not from within its call of this module. */
static int
launcher_lose(struct launcher *l, int error)
{
	l->lost = true;
	if (l->watched)
		event_active(&l->readable, EV_READ, 0);
	return error;
}

static int
launcher_receive(struct launcher *l, struct frame *frame_r)
{
	uint64_t end = clock_us() + LAUNCHER_PATIENCE_MS * 1000ull, now;
	struct pollfd line = { .fd = l->helper.socket, .events = POLLIN };
	int r;

	while ((r = frame_reader_read(&l->reader, l->helper.socket, frame_r)) == 0) {
		now = clock_us();
		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&line, 1, (int)((end - now) / 1000) + 1) < 0 && errno != EINTR)
			return -errno;
	}
	return r < 0 ? r : 0;
}

/* Sends a message and waits for its answer. */
static int
launcher_ask(struct launcher *l, const struct msg *question, enum msg_type answer,
	     struct frame *frame_r)
{
	int r;

	if (l->lost)
		return -ENOTCONN;
	give_spare_fds(l);
	r = frame_send(l->helper.socket, question, NULL, 0);
	if (r == 0)
		r = launcher_receive(l, frame_r);
	if (r == 0 && frame_r->msg.type != answer) {
		frame_done(frame_r);
		r = -EBADMSG;
	}
	spare_fds(l);
	return r < 0 ? launcher_lose(l, r) : 0;
}

int
launcher_start(struct launcher *l, enum launch_kind kind, unsigned int profile,
	       struct launch *launch, const char **what_r)
{
	struct msg msg = { .type = MSG_LAUNCH, .launch = { kind, profile } };
	const struct msg_launched *launched;
	struct frame frame = { 0 };
	int r = launcher_ask(l, &msg, MSG_LAUNCHED, &frame);

	*what_r = "ask the launcher";
	if (r < 0)
		return r;
	launched = &frame.msg.launched;
	r = -(int)launched->error;
	if (r == 0 && (frame.fds.n != 3 || launched->pid < 2))
		r = launcher_lose(l, -EBADMSG);
	if (r == 0) {
		*launch = (struct launch){ (pid_t)launched->pid, frame_take_fd(&frame, 0),
					   frame_take_fd(&frame, 1), frame_take_fd(&frame, 2) };
	} else if (launched->error != 0) {
		snprintf(l->what, sizeof(l->what), "%.*s", (int)launched->what.len,
			 launched->what.at);
		*what_r = l->what;
	}
	frame_done(&frame);
	return r;
}

int
launcher_learn(struct launcher *l, const char *name, unsigned int *profile_r, struct why *why_r)
{
	struct msg msg = { .type = MSG_LEARN, .learn.profile = msg_str(name) };
	const struct msg_learned *learned;
	struct frame frame = { 0 };
	int r = launcher_ask(l, &msg, MSG_LEARNED, &frame);

	if (r < 0)
		return why_say(why_r, r, "", "the launcher: %s", strerror(-r));
	learned = &frame.msg.learned;
	r = -(int)learned->error;
	*profile_r = learned->profile;
	if (r < 0)
		why_say(why_r, r, "", "%.*s", (int)learned->why.len, learned->why.at);
	frame_done(&frame);
	return r;
}

int
launcher_adopt(struct launcher *l, pid_t pid)
{
	struct msg msg = { .type = MSG_ADOPT, .adopt.pid = (uint32_t)pid };
	struct frame frame = { 0 };
	int r = launcher_ask(l, &msg, MSG_ADOPTED, &frame);

	if (r < 0)
		return r;
	r = -(int)frame.msg.adopted.error;
	if (r == 0)
		r = frame.fds.n == 1 ? frame_take_fd(&frame, 0) : launcher_lose(l, -EBADMSG);
	frame_done(&frame);
	return r;
}

/* ---- the started process ---- */

void
launch_init(struct launch *launch)
{
	*launch = (struct launch){ .pidfd = -1, .control = -1, .trouble = -1 };
}

void
launch_done(struct launch *launch)
{
	const int fd[] = { launch->pidfd, launch->control, launch->trouble };

	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	launch_init(launch);
}

bool
launch_trouble(const struct launch *launch, const char **step_r, int *error_r)
{
	struct launch_trouble trouble;

	if (launch->trouble < 0 ||
	    read(launch->trouble, &trouble, sizeof(trouble)) != sizeof(trouble) ||
	    launch_step(trouble.step) == NULL)
		return false;
	*step_r = launch_step(trouble.step);
	*error_r = trouble.error;
	return true;
}
