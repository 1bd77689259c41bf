/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the two fork servers, and the queue of helpers to be made.
 * Reads:   MADE, from a process that parses nothing of a client. */
#include "host/forker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "host/helper.h"
#include "proto/frame.h"

#define FORKERS 2
#define PATIENCE_MS 2000	/* for one fork; then the fork server counts as lost */
#define PAUSE_FIRST_MS 50	/* before the second try to make a helper; it doubles */
#define PAUSE_MOST_MS 2000	/* a stopped one is seen after two seconds, and five are promised */
#define MADE_FDS 2		/* of an answer */
#define LIVED_MS 10000		/* a helper that lived so long was not lost because of its start */

/* IDLE ──MAKE──> ASKED ──MADE──> IDLE;  ASKED ──PATIENCE_MS, end of the process──> made again */
struct forker {
	struct helper helper;
	struct frame_reader reader;
	struct event *readable, *late;
	bool asked;
	struct helper *order;		/* NULL although asked: it is not wanted any more */
};

static struct {
	bool started, reported;
	struct forker forker[FORKERS];
	struct event_base *base;
	void (*on_lost)(void *arg);
	void *arg;
	TAILQ_HEAD(, helper) waiting;
} forkers;

static void make_waiting(void);

/* ---- a fork server ---- */

/* Reserves descriptors for the next answer: where all are used up, a helper can still be made
 * again. 0 or -errno. */
static int
forker_expect(struct forker *forker)
{
	return frame_reader_expect(&forker->reader, forker->helper.socket, MADE_FDS);
}

static void
forker_on_made_again(void *arg)
{
	struct forker *forker = arg;

	frame_reader_init(&forker->reader, FROM_FORKER);
	(void)forker_expect(forker);
	event_assign(forker->readable, forkers.base, forker->helper.socket, EV_READ | EV_PERSIST,
		     event_get_callback(forker->readable), forker);
	event_add(forker->readable, NULL);
	helper_is_back(&forker->helper);
	make_waiting();
}

/* Its order goes to the other one. */
static void
forker_lose(struct forker *forker, int error)
{
	struct helper *order = forker->order;

	event_del(forker->readable);
	event_del(forker->late);
	frame_reader_done(&forker->reader);
	forker->asked = false;
	forker->order = NULL;
	if (order) {
		order->waits = true;
		TAILQ_INSERT_HEAD(&forkers.waiting, order, waiting);
	}
	helper_renew(&forker->helper, forkers.base, error, forker_on_made_again, forker);
	make_waiting();
}

static void
helper_try_later(struct helper *helper)
{
	unsigned int shift = helper->tries < 10 ? helper->tries : 10;
	uint32_t ms = helper->tries == 0 ? 0 : PAUSE_FIRST_MS << shift;
	struct timeval pause;

	ms = ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS;
	pause = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	helper->tries++;
	evtimer_add(helper->due, &pause);
}

void
helper_is_back(struct helper *helper)
{
	if (helper->away)
		log_line(LOG_NOTICE, "helper-made", "helper=%s", helper_name(helper->kind));
	helper_set_away(helper, false);
}

/* The answer for a helper that was ended meanwhile, or could not be made, has no new process. */
static void
forker_take_made(struct forker *forker, struct frame *frame)
{
	struct helper *helper = forker->order, unwanted = { .kind = HELPER_FORKER };
	const struct msg_made *made = &frame->msg.made;

	forker->asked = false;
	forker->order = NULL;
	evtimer_del(forker->late);
	if (made->error != 0) {
		log_line(LOG_ERR, "helper-not-made", "helper=%s err=%s",
			 helper ? helper_name(helper->kind) : "-",
			 strerrorname_np((int)made->error));
		if (helper)
			helper_try_later(helper);
		return;
	}
	helper_took(helper ? helper : &unwanted, (pid_t)made->pid, frame_take_fd(frame, 0),
		    frame_take_fd(frame, 1));
	if (helper)
		helper->on_made(helper->arg);
	else
		helper_drop(&unwanted, forkers.base);
}

static void
forker_on_readable(evutil_socket_t fd, short, void *arg)
{
	struct forker *forker = arg;
	struct frame frame = { 0 };
	int r = frame_reader_read(&forker->reader, (int)fd, &frame);

	if (r == 1 && (!forker->asked || (frame.msg.made.error == 0) != (frame.fds.n == MADE_FDS)))
		r = -EBADMSG;
	if (r == 1)
		forker_take_made(forker, &frame);
	frame_done(&frame);
	if (r < 0)
		forker_lose(forker, r);
	else
		(void)forker_expect(forker);
	make_waiting();
}

static void
forker_on_late(evutil_socket_t, short, void *arg)
{
	forker_lose(arg, -ETIMEDOUT);
}

/* ---- the queue ---- */

static struct forker *
find_idle(void)
{
	for (size_t i = 0; i < FORKERS; i++)
		if (forkers.forker[i].helper.socket >= 0 && !forkers.forker[i].asked)
			return &forkers.forker[i];
	return NULL;
}

static bool
none_is_left(void)
{
	for (size_t i = 0; i < FORKERS; i++)
		if (forkers.forker[i].helper.socket >= 0)
			return false;
	return true;
}

bool
helper_is_being_made(void)
{
	return forkers.forker[0].asked || forkers.forker[1].asked;
}

static int
forker_ask(struct forker *forker, struct helper *helper)
{
	static const struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	const struct msg msg = { .type = MSG_MAKE, .make.kind = helper->kind };
	int r = forker_expect(forker);

	if (r == 0)
		r = frame_send_now(forker->helper.socket, &msg);
	if (frame_is_transient(r) || r == -EMFILE) {
		helper_try_later(helper);
		return 0;
	}
	forker->asked = true;
	forker->order = helper;
	evtimer_add(forker->late, &patience);
	return r;
}

static void
make_waiting(void)
{
	struct forker *forker;
	struct helper *helper;

	while ((helper = TAILQ_FIRST(&forkers.waiting)) && (forker = find_idle())) {
		int r;

		TAILQ_REMOVE(&forkers.waiting, helper, waiting);
		helper->waits = false;
		r = forker_ask(forker, helper);
		if (r < 0) {
			forker_lose(forker, r);
			return;
		}
	}
	TAILQ_FOREACH(helper, &forkers.waiting, waiting)
		if (helper->kind != HELPER_FORKER && none_is_left() && !forkers.reported) {
			forkers.reported = true;
			forkers.on_lost(forkers.arg);
			return;
		}
}

/* ---- helpers ---- */

/* A try without fork servers. */
static void
helper_fork_again(struct helper *helper)
{
	if (helper_fork(helper, helper->kind) < 0) {
		helper_drop(helper, event_get_base(helper->due));
		helper_try_later(helper);
		return;
	}
	helper->on_made(helper->arg);
}

static void
helper_on_due(evutil_socket_t, short, void *arg)
{
	struct helper *helper = arg;

	if (!forkers.started) {
		helper_fork_again(helper);
		return;
	}
	helper->waits = true;
	TAILQ_INSERT_TAIL(&forkers.waiting, helper, waiting);
	make_waiting();
}

void
helper_renew(struct helper *helper, struct event_base *base, int error, void (*on_made)(void *arg),
	     void *arg)
{
	if (clock_ms() - helper->made_ms >= LIVED_MS)
		helper->tries = 0;
	/* A helper that ends again and again is logged after 1, 2, 4, 8 ... times. */
	if ((helper->tries & (helper->tries - 1)) == 0)
		log_line(LOG_ERR, "helper-lost", "helper=%s err=%s text=\"%s\"",
			 helper_name(helper->kind), strerrorname_np(-error),
			 helper_without(helper->kind));
	helper_set_away(helper, true);
	helper_drop(helper, base);
	helper->on_made = on_made;
	helper->arg = arg;
	if (!helper->due)
		helper->due = xalloc_check(evtimer_new(base, helper_on_due, helper));
	helper_try_later(helper);
}

void
helper_done(struct helper *helper)
{
	for (size_t i = 0; i < FORKERS; i++)
		if (forkers.forker[i].order == helper)
			forkers.forker[i].order = NULL;
	if (helper->waits)
		TAILQ_REMOVE(&forkers.waiting, helper, waiting);
	if (helper->due)
		event_free(helper->due);
	helper->waits = false;
	helper->due = NULL;
	helper_set_away(helper, false);
	helper_end(helper);
}

/* ---- creation and end ---- */

int
forkers_start(const int *keep, size_t n)
{
	static struct forker_keeps *keeps;
	int r = 0;

	forkers_stop();
	keeps = xrealloc(keeps, sizeof(*keeps) + n * sizeof(*keep));
	keeps->n = n;
	memcpy(keeps->fd, keep, n * sizeof(*keep));
	helper_plan(HELPER_FORKER, forker_live, keeps);
	TAILQ_INIT(&forkers.waiting);
	forkers.started = true;
	for (size_t i = 0; i < FORKERS; i++)
		forkers.forker[i].helper = (struct helper){ .pidfd = -1, .socket = -1 };
	for (size_t i = 0; r == 0 && i < FORKERS; i++) {
		frame_reader_init(&forkers.forker[i].reader, FROM_FORKER);
		r = helper_fork(&forkers.forker[i].helper, HELPER_FORKER);
		if (r == 0)
			(void)forker_expect(&forkers.forker[i]);
	}
	if (r < 0)
		forkers_stop();
	return r;
}

void
forkers_watch(struct event_base *base, void (*on_lost)(void *arg), void *arg)
{
	forkers.base = base;
	forkers.on_lost = on_lost;
	forkers.arg = arg;
	for (size_t i = 0; i < FORKERS; i++) {
		struct forker *forker = &forkers.forker[i];

		forker->readable = xalloc_check(event_new(base, forker->helper.socket,
							  EV_READ | EV_PERSIST, forker_on_readable,
							  forker));
		forker->late = xalloc_check(evtimer_new(base, forker_on_late, forker));
		event_add(forker->readable, NULL);
	}
}

pid_t
forker_pid(unsigned int which)
{
	return forkers.forker[which].helper.pid;
}

void
forkers_stop(void)
{
	helper_reap_all();
	if (!forkers.started)
		return;
	for (size_t i = 0; i < FORKERS; i++) {
		struct forker *forker = &forkers.forker[i];

		helper_done(&forker->helper);
		frame_reader_done(&forker->reader);
		if (forker->readable) {
			event_free(forker->readable);
			event_free(forker->late);
		}
	}
	memset(&forkers, 0, sizeof(forkers));
}
