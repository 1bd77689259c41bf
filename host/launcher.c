/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the launcher's process and the socket to it.
 * Reads:   LAUNCHED, ADOPTED and LEARNED, from a process that parses nothing of a client. */
#include "host/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "host/forker.h"
#include "host/helper.h"
#include "host/launch.h"
#include "policy/learnable.h"
#include "proto/frame.h"

#define LAUNCH_PATIENCE_S 3	/* for the first order; then the launcher counts as lost */
#define LAUNCHED_FDS 3		/* the most descriptors of an answer */

static const struct timeval launch_patience = { .tv_sec = LAUNCH_PATIENCE_S };

/* A profile that the launcher was told to learn. */
struct learned {
	char *name;
	unsigned int profile;	/* its number for the rest of the service */
	int number;		/* the launcher's number; -errno: a new launcher could not learn it
				 */
};

struct launcher {
	struct helper helper;
	struct frame_reader reader;
	struct event_base *base;		/* NULL: not watched yet */
	struct event readable, late;
	TAILQ_HEAD(, launch_order) orders;	/* unanswered, in their order */
	struct learned learned[CONFIG_PROFILES_MAX];
	size_t n_learned, n_again;	/* n_again: what a new launcher has learned of them */
	uint32_t slots;
	bool has_egress;
	void (*on_back)(void *arg);
	void *arg;
	char what[257];			/* the step that failed last */
	struct launch_order ahead;	/* of launcher_ahead() */
	struct launch ahead_launch;	/* its answer, which nobody has asked for yet */
};

/* Reserves descriptors for the answers to all orders and to so many more; for one at least, so that
 * clients that use up all descriptors do not keep a process from being made again. 0 or -EMFILE. */
static int
spare_fds(struct launcher *l, size_t more)
{
	const struct launch_order *order;
	size_t n = more;

	TAILQ_FOREACH(order, &l->orders, link)
		n++;
	return frame_reader_expect(&l->reader, l->helper.socket, LAUNCHED_FDS * (n > 0 ? n : 1));
}

/* ---- asking ---- */

static void launcher_lose(struct launcher *l, int error);

/* For a breach of the protocol that the caller reports itself. */
static int
launcher_break(struct launcher *l, int error)
{
	launcher_lose(l, error);
	return error;
}

/* Takes the order out of the queue, and calls its owner. error: 0, or -errno with the name of the
 * step that failed. */
static void
order_end(struct launcher *l, struct launch_order *order, int error, const char *what,
	  struct launch *launch)
{
	TAILQ_REMOVE(&l->orders, order, link);
	order->launcher = NULL;
	(void)spare_fds(l, 0);
	if (l->base)
		event_del(&l->late);
	if (l->base && !TAILQ_EMPTY(&l->orders))
		event_add(&l->late, &launch_patience);
	order->on_launched(order->arg, error, what, launch);
}

/* The answer to the first order. 0 or -EBADMSG. */
static int
launcher_take_launched(struct launcher *l, struct frame *frame)
{
	const struct msg_launched *launched = &frame->msg.launched;
	struct launch_order *order = TAILQ_FIRST(&l->orders);
	struct launch launch;

	if (!order || frame->msg.type != MSG_LAUNCHED ||
	    (launched->error == 0 && (frame->fds.n != 3 || launched->pid < 2)))
		return -EBADMSG;
	launch_init(&launch);
	if (launched->error != 0) {
		snprintf(l->what, sizeof(l->what), "%.*s", (int)launched->what.len,
			 launched->what.at);
	} else {
		launch = (struct launch){ (pid_t)launched->pid, frame_take_fd(frame, 0),
					  frame_take_fd(frame, 1), frame_take_fd(frame, 2) };
	}
	order_end(l, order, -(int)launched->error, l->what, &launch);
	return 0;
}

/* Waits until the launcher has answered all orders. 0 or -errno. */
static int
launcher_await_orders(struct launcher *l, uint64_t end_ms)
{
	struct frame frame = { 0 };
	int r = 0;

	while (r == 0 && !TAILQ_EMPTY(&l->orders)) {
		r = helper_await(&l->helper, &l->reader, end_ms, &frame);
		if (r == 1)
			r = launcher_take_launched(l, &frame);
		frame_done(&frame);
	}
	return r;
}

/* Sends a message and waits for its answer. */
static int
launcher_ask(struct launcher *l, const struct msg *question, enum msg_type answer,
	     struct frame *frame_r)
{
	const uint64_t end_ms = clock_ms() + LAUNCHER_PATIENCE_MS;
	int r;

	if (l->helper.socket < 0)
		return -ENOTCONN;
	r = launcher_await_orders(l, end_ms);
	if (r == 0 && answer == MSG_ADOPTED && spare_fds(l, 1) < 0)
		return -EMFILE;
	if (r == 0)
		r = frame_send_now(l->helper.socket, question);
	if (r == 0)
		r = helper_await(&l->helper, &l->reader, end_ms, frame_r);
	if (r == 1 && frame_r->msg.type != answer) {
		frame_done(frame_r);
		r = -EBADMSG;
	}
	(void)spare_fds(l, 0);
	if (r < 0 && !frame_is_transient(r))
		launcher_lose(l, r);
	return r < 0 ? r : 0;
}

static const struct learned *
find_learned(const struct launcher *l, unsigned int profile)
{
	for (size_t i = 0; i < l->n_learned; i++)
		if (l->learned[i].profile == profile)
			return &l->learned[i];
	return NULL;
}

/* The launcher counts as lost if it does not answer in time. */
static void
be_patient(struct launcher *l)
{
	if (l->base && !event_pending(&l->late, EV_TIMEOUT, NULL))
		event_add(&l->late, &launch_patience);
}

static void
launcher_on_ahead(void *arg, int error, const char *, struct launch *launch)
{
	struct launcher *l = arg;

	if (error == 0)		/* otherwise the one who asks for it orders it again */
		l->ahead_launch = *launch;
}

/* Gives the process of launcher_ahead(), or its place in the queue, to this order. False: there is
 * none. */
static bool
take_ahead(struct launcher *l, struct launch_order *order)
{
	struct launch launch = l->ahead_launch;

	if (l->ahead.launcher) {
		TAILQ_INSERT_BEFORE(&l->ahead, order, link);
		TAILQ_REMOVE(&l->orders, &l->ahead, link);
		l->ahead.launcher = NULL;
		be_patient(l);
		return true;
	}
	launch_init(&l->ahead_launch);
	order->launcher = NULL;
	if (launch.pid != 0)
		order->on_launched(order->arg, 0, "", &launch);
	return launch.pid != 0;
}

void
launcher_start(struct launcher *l, enum launch_kind kind, unsigned int profile,
	       uint64_t modules, struct launch_order *order,
	       void (*on_launched)(void *arg, int error, const char *what, struct launch *launch),
	       void *arg)
{
	const struct learned *learned = kind == LAUNCH_ZYGOTE ? find_learned(l, profile) : NULL;
	int number = learned ? learned->number : (int)profile;
	struct msg msg = { .type = MSG_LAUNCH,
			   .launch = { kind, number < 0 ? 0 : (unsigned int)number,
				       modules } };
	int r = l->helper.socket < 0 || l->n_again < l->n_learned ? -ENOTCONN
		: number < 0 ? number : spare_fds(l, 1);

	*order = (struct launch_order){ .launcher = l, .on_launched = on_launched, .arg = arg };
	if (kind == LAUNCH_ZYGOTE && profile == 0 && modules == LEARNABLE_BARE &&
	    order != &l->ahead && take_ahead(l, order))
		return;
	order->launcher = l;
	if (r == 0)
		r = frame_send_now(l->helper.socket, &msg);
	TAILQ_INSERT_TAIL(&l->orders, order, link);
	if (r < 0)
		order_end(l, order, r, number < 0 ? "learn the profile again"
			  : r == -ENOTCONN ? "ask the launcher, which is away"
					   : "ask the launcher", NULL);
	else
		be_patient(l);
}

void
launcher_ahead(struct launcher *l)
{
	launcher_start(l, LAUNCH_ZYGOTE, 0, LEARNABLE_BARE, &l->ahead, launcher_on_ahead, l);
}

void
launcher_finish(struct launch_order *order)
{
	struct launcher *l = order->launcher;
	int r = l ? launcher_await_orders(l, clock_ms() + LAUNCHER_PATIENCE_MS) : 0;

	if (r < 0)
		launcher_lose(l, r);
}

/* ---- life ---- */

int
launcher_new(const struct launcher_options *options, struct launcher **launcher_r,
	     struct why *why_r)
{
	struct launcher *l = xcalloc(1, sizeof(*l));
	int r;

	*l = (struct launcher){ .slots = options->outer->slots,
				.has_egress = options->egress_fd >= 0,
				.helper = { .pidfd = -1, .socket = -1 } };
	TAILQ_INIT(&l->orders);
	launch_init(&l->ahead_launch);
	frame_reader_init(&l->reader, FROM_LAUNCHER);
	helper_plan(HELPER_LAUNCHER, launcher_live, options);
	r = helper_fork(&l->helper, HELPER_LAUNCHER);
	if (r < 0) {
		launcher_free(l);
		return why_say(why_r, r, "", "launcher: cannot start it: %s", strerror(-r));
	}
	(void)spare_fds(l, 0);
	*launcher_r = l;
	return 0;
}

void
launcher_free(struct launcher *l)
{
	if (l == NULL)
		return;
	if (l->base) {
		event_del(&l->readable);
		event_del(&l->late);
	}
	helper_done(&l->helper);
	launch_done(&l->ahead_launch);
	frame_reader_done(&l->reader);
	for (size_t i = 0; i < l->n_learned; i++)
		free(l->learned[i].name);
	free(l);
}

/* An answer, the launcher's end, or a breach of the protocol. */
static void
launcher_on_readable(evutil_socket_t fd, short, void *arg)
{
	struct launcher *l = arg;
	struct frame frame = { 0 };
	int r = frame_reader_read(&l->reader, (int)fd, &frame);

	if (r == 1)
		r = launcher_take_launched(l, &frame);
	frame_done(&frame);
	if (r < 0)
		launcher_lose(l, r);
}

static void
launcher_on_late(evutil_socket_t, short, void *arg)
{
	launcher_lose(arg, -ETIMEDOUT);
}

static void
launcher_open(struct launcher *l)
{
	frame_reader_done(&l->reader);
	frame_reader_init(&l->reader, FROM_LAUNCHER);
	(void)spare_fds(l, 0);
	event_assign(&l->readable, l->base, l->helper.socket, EV_READ | EV_PERSIST,
		     launcher_on_readable, l);
	event_add(&l->readable, NULL);
}

void
launcher_watch(struct launcher *l, struct event_base *base, void (*on_back)(void *arg), void *arg)
{
	l->base = base;
	l->on_back = on_back;
	l->arg = arg;
	evtimer_assign(&l->late, base, launcher_on_late, l);
	launcher_open(l);
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

/* 0, or -errno with why_r. */
static int
launcher_learn_again(struct launcher *l, const char *name, unsigned int *number_r,
		     struct why *why_r)
{
	struct msg msg = { .type = MSG_LEARN, .learn.profile = msg_str(name) };
	const struct msg_learned *learned;
	struct frame frame = { 0 };
	int r = launcher_ask(l, &msg, MSG_LEARNED, &frame);

	if (r < 0)
		return why_say(why_r, r, "", "the launcher: %s", strerror(-r));
	learned = &frame.msg.learned;
	r = -(int)learned->error;
	*number_r = learned->profile;
	if (r < 0)
		why_say(why_r, r, "", "%.*s", (int)learned->why.len, learned->why.at);
	frame_done(&frame);
	return r;
}

int
launcher_learn(struct launcher *l, const char *name, unsigned int *profile_r, struct why *why_r)
{
	struct learned *learned = l->learned;
	unsigned int number;
	int r = launcher_learn_again(l, name, &number, why_r);

	if (r < 0)
		return r;
	while (learned < l->learned + l->n_learned && strcmp(learned->name, name) != 0)
		learned++;
	if (learned == l->learned + l->n_learned) {
		*learned = (struct learned){ .name = xstrdup(name), .profile = number };
		l->n_learned++;
		l->n_again++;
	}
	learned->number = (int)number;
	*profile_r = learned->profile;
	return 0;
}

/* A new launcher knows the profiles of the start. It learns what the one before it had learned. */
static void
launcher_on_made(void *arg)
{
	struct launcher *l = arg;
	struct log_quoted quoted;

	launcher_open(l);
	while (l->n_again < l->n_learned) {
		struct learned *learned = &l->learned[l->n_again++];
		struct why why = { .text = "" };
		unsigned int number = 0;
		int r = launcher_learn_again(l, learned->name, &number, &why);

		if (l->helper.socket < 0)
			return;		/* it was lost meanwhile */
		learned->number = r < 0 ? r : (int)number;
		if (r < 0)
			log_line(LOG_ERR, "profile-not-learned", "profile=%s text=%s",
				 learned->name, log_quote(&quoted, why.text, strlen(why.text)));
	}
	helper_is_back(&l->helper);
	if (l->on_back)
		l->on_back(l->arg);
}

/* Orders fail; those who gave them try again. */
static void
launcher_lose(struct launcher *l, int error)
{
	struct launch_order *order;

	if (l->helper.socket < 0)
		return;
	frame_reader_done(&l->reader);
	if (l->base) {
		event_del(&l->readable);
		event_del(&l->late);
		helper_renew(&l->helper, l->base, error, launcher_on_made, l);
	} else {
		helper_end(&l->helper);
	}
	l->n_again = 0;
	while ((order = TAILQ_FIRST(&l->orders)))
		order_end(l, order, -ENOTCONN, "ask the launcher, which was lost", NULL);
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
		r = frame.fds.n == 1 ? frame_take_fd(&frame, 0) : launcher_break(l, -EBADMSG);
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
