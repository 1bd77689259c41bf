/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the usage helper's process, and the socket to it.
 * Reads:   answers of the helper: numbers. */
#include "host/usage.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/passrights.h"
#include "base/xalloc.h"
#include "host/forker.h"
#include "host/helper.h"
#include "proto/frame.h"

#define PATIENCE_MS 50		/* for one answer; as STALL_MS */
#define UID_PATIENCE_MS 2000	/* at the start and the end, when no client is served */
#define LOST_MS 4000		/* a helper that owes an answer for so long is replaced */

/* NONE ──question──> ASKED ──answer──> NONE
 *                    ASKED ──PATIENCE_MS──> LATE ──answer──> HELD ──the same question──> NONE
 *                                           LATE ──LOST_MS──> the helper is replaced, NONE
 * While an answer is LATE no question is sent. An answer that is HELD is given to whoever asks the
 * same again: a worker that makes its measurement slow is measured all the same. */
static struct {
	bool started;
	struct helper helper;
	struct event_base *base;
	struct event *readable, *lost;
	bool late, held;
	struct usage_asked asked;	/* LATE or HELD: the question */
	struct usage_answer answer;	/* HELD */
} usage = { .helper = { .pidfd = -1, .socket = -1 } };

static void
usage_clear(struct usage_answer *answer)
{
	memset(answer, 0, offsetof(struct usage_answer, process));
}

/* ---- the helper ---- */

static void
usage_on_made(void *)
{
	(void)passrights_set(usage.helper.socket, false);
	event_assign(usage.readable, usage.base, usage.helper.socket, EV_READ | EV_PERSIST,
		     event_get_callback(usage.readable), NULL);
	event_add(usage.readable, NULL);
	helper_is_back(&usage.helper);
}

static void
usage_lose(int error)
{
	usage.late = usage.held = false;
	/* Before the loop runs, and in unit tests, nobody replaces it. */
	if (!usage.base) {
		close(usage.helper.socket);
		usage.helper.socket = -1;
		return;
	}
	event_del(usage.readable);
	event_del(usage.lost);
	helper_renew(&usage.helper, usage.base, error, usage_on_made, NULL);
}

/* 1: *answer_r has the answer; 0: it has not come yet; or -errno. */
static int
usage_receive(struct usage_answer *answer_r)
{
	ssize_t n = recv(usage.helper.socket, answer_r, sizeof(*answer_r), MSG_DONTWAIT);

	if (n < 0)
		return frame_is_transient(-errno) ? 0 : -errno;
	return n >= (ssize_t)offsetof(struct usage_answer, process) &&
	       answer_r->n <= USAGE_MEMBERS_MAX &&
	       (size_t)n == usage_answer_size(answer_r) ? 1 : -EPIPE;
}

/* As usage_receive, but waits. */
static int
usage_await(struct usage_answer *answer_r, unsigned int ms)
{
	struct pollfd line = { .fd = usage.helper.socket, .events = POLLIN };
	const uint64_t end_ms = clock_ms() + ms;
	uint64_t now_ms;
	int r;

	while ((r = usage_receive(answer_r)) == 0 && (now_ms = clock_ms()) < end_ms)
		if (poll(&line, 1, (int)(end_ms - now_ms)) < 0 && errno != EINTR)
			return -errno;
	return r;
}

/* 1, 0: the question cannot be sent now; or -errno. */
static int
usage_send(const struct usage_asked *asked)
{
	ssize_t n;

	do
		n = send(usage.helper.socket, asked, usage_asked_size(asked),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 1;
	return frame_is_transient(-errno) ? 0 : -errno;
}

/* Something is here although no answer is awaited in this turn: a late answer, or the end. */
static void
usage_on_readable(evutil_socket_t, short, void *)
{
	int r = usage_receive(&usage.answer);

	if (r == 1 && !usage.late)
		r = -EBADMSG;
	if (r < 0) {
		usage_lose(r);
		return;
	}
	if (r == 0)
		return;
	event_del(usage.lost);
	usage.late = false;
	usage.held = usage.asked.pid != 0;
}

static void
usage_on_lost(evutil_socket_t, short, void *)
{
	usage_lose(-ETIMEDOUT);
}

/* ---- asking ---- */

void
usage_forget(pid_t pid)
{
	if (usage.asked.pid != pid)
		return;
	usage.asked.pid = 0;
	usage.held = false;
}

static bool
usage_take_held(const struct usage_asked *asked, struct usage_answer *answer_r)
{
	if (!usage.held || asked->question != usage.asked.question ||
	    asked->pid != usage.asked.pid)
		return false;
	usage.held = false;
	memcpy(answer_r, &usage.answer, usage_answer_size(&usage.answer));
	return true;
}

static bool
usage_exchange(const struct usage_asked *asked, struct usage_answer *answer_r, unsigned int ms)
{
	int r;

	usage_clear(answer_r);
	if (!usage.started) {
		usage_look(asked, answer_r);
		return true;
	}
	if (usage.helper.socket < 0 || usage.late)
		return false;
	if (usage_take_held(asked, answer_r))
		return true;
	r = usage_send(asked);
	if (r == 1) {
		r = usage_await(answer_r, ms);
		if (r == 0) {
			static const struct timeval lost = { .tv_sec = LOST_MS / 1000 };

			usage.late = true;
			memcpy(&usage.asked, asked, usage_asked_size(asked));
			if (usage.lost)
				event_add(usage.lost, &lost);
		}
	}
	if (r < 0)
		usage_lose(r);
	if (r != 1)
		usage_clear(answer_r);
	return r == 1;
}

bool
usage_ask(const struct usage_asked *asked, struct usage_answer *answer_r)
{
	return usage_exchange(asked, answer_r, PATIENCE_MS);
}

uid_t
usage_uid(pid_t pid)
{
	const struct usage_asked asked = { .question = USAGE_UID, .pid = pid };
	struct usage_answer answer;

	/* The answer to an earlier question comes first. */
	if (usage.late && usage_await(&answer, UID_PATIENCE_MS) == 1)
		usage.late = false;
	usage_exchange(&asked, &answer, UID_PATIENCE_MS);
	return answer.uid;
}

/* ---- beginning and end ---- */

void
usage_plan(void)
{
	helper_plan(HELPER_USAGE, usage_live, NULL);
}

int
usage_start(void)
{
	int r;

	usage_plan();
	r = helper_fork(&usage.helper, HELPER_USAGE);
	if (r < 0) {
		helper_end(&usage.helper);
		return r;
	}
	(void)passrights_set(usage.helper.socket, false);
	usage.started = true;
	return 0;
}

void
usage_watch(struct event_base *base)
{
	usage.base = base;
	usage.readable = xalloc_check(event_new(base, usage.helper.socket, EV_READ | EV_PERSIST,
						usage_on_readable, NULL));
	usage.lost = xalloc_check(evtimer_new(base, usage_on_lost, NULL));
	event_add(usage.readable, NULL);
}

pid_t
usage_pid(void)
{
	return usage.helper.pid;
}

void
usage_stop(void)
{
	if (!usage.started)
		return;
	if (usage.base) {
		event_free(usage.readable);
		event_free(usage.lost);
	}
	helper_done(&usage.helper);
	usage.base = NULL;
	usage.started = usage.late = usage.held = false;
}
