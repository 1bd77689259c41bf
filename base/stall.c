/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, the egress proxy, the client of other servers, zygotes, the keeper, a
 *          session's init.
 * Owns:    one timer and the action of one signal. */
#include "base/stall.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_MS 1		/* between two signals of one turn */
#define SPARE_MS 10		/* a timer that was armed less than this before a turn is left
				 * as it is */
#define WAIT_US 1000		/* a shorter wait does not count */
#define SUSPECT_US 100		/* the same for one who is in debt */
#define EXCUSED_US 60000	/* of debt: one wait of STALL_MS, and a little */
#define PAID_US 6		/* in each millisecond: the debt of one excuse in ten seconds */

/* The state that the handler shares with the rest is volatile; both run in the same thread. */
static struct {
	timer_t timer;
	void (*slow)(unsigned int milliseconds);
	volatile sig_atomic_t rests;
	volatile sig_atomic_t is_armed;
	volatile sig_atomic_t woke_loop;	/* the signal came while the loop rested */
	bool was_woken;			/* the signal has ended the wait before this turn; usually
					 * the turn has no event */
	volatile sig_atomic_t signals;	/* signals that came in the middle of a turn */
	volatile sig_atomic_t stops;	/* how often the process was continued after a stop */
	sig_atomic_t signals_before;	/* the value of signals at the end of the last turn */
	uint64_t turn_ms;		/* when this turn began */
	uint64_t armed_ms;
	bool is_brief;			/* the timer has been set for one call of this turn */
	bool hurries, is_watched;
	sig_atomic_t watch_stops;
	uint32_t watch_most_us;		/* a longer wait is not the stranger's */
	uint64_t watch_idle_us;
	long watch_waits;
} guard;

/* Of each thread: other threads, such as those in which libcurl looks up names, may also wait in a
 * function that turns.c replaces. */
static _Thread_local bool is_on;

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid	/* as for timer_create(2) */
#endif

/* The coarse clock is exact enough, and its cost is a fifth of that of CLOCK_MONOTONIC. */
static uint64_t
stall_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* How often this thread has waited. Lost processor time and pages read from disk do not count. */
static long
count_waits(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : usage.ru_nvcsw - usage.ru_majflt;
}

static uint64_t
stall_clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The time in which this thread has not run. */
static uint64_t
stall_idle_us(void)
{
	uint64_t now_us = stall_clock_us(CLOCK_MONOTONIC);

	return now_us - stall_clock_us(CLOCK_THREAD_CPUTIME_ID);
}

static void
stall_arm(unsigned int ms)
{
	const struct itimerspec in = { .it_value.tv_nsec = ms * 1000000L };

	guard.is_armed = ms > 0;
	timer_settime(guard.timer, 0, &in, NULL);
}

/* If the signal comes while the loop rests, the timer was armed in the turn before. It is not armed
 * again, so it wakes the loop only once. */
static void
stall_on_signal(int, siginfo_t *info, void *)
{
	int error = errno;

	/* Other processes may send the same signal. */
	if (info->si_code != SI_TIMER)
		return;
	if (guard.rests) {
		guard.is_armed = false;
		guard.woke_loop = true;
	} else {
		guard.signals++;
		stall_arm(AGAIN_MS);
	}
	errno = error;
}

int
stall_guard(void (*slow)(unsigned int milliseconds))
{
	struct sigaction action = { .sa_sigaction = stall_on_signal, .sa_flags = SA_SIGINFO };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = STALL_SIGNAL };
	sigset_t set;

	if (is_on)
		return 0;
	event.sigev_notify_thread_id = gettid();
	sigemptyset(&set);
	sigaddset(&set, STALL_SIGNAL);
	if (sigaction(STALL_SIGNAL, &action, NULL) < 0 ||
	    sigprocmask(SIG_UNBLOCK, &set, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &guard.timer) < 0)
		return -errno;
	guard.slow = slow;
	guard.rests = true;
	is_on = true;
	return 0;
}

static void
stall_on_continued(int)
{
	guard.stops++;
}

void
stall_excuse_stops(void)
{
	struct sigaction action = { .sa_handler = stall_on_continued, .sa_flags = SA_RESTART };

	sigaction(SIGCONT, &action, NULL);
}

void
stall_forget(void)
{
	if (!is_on)
		return;
	is_on = guard.is_watched = false;
	guard.is_armed = false;
	signal(STALL_SIGNAL, SIG_DFL);
	signal(SIGCONT, SIG_DFL);
}

void
stall_rest(void)
{
	unsigned int ms;

	if (!is_on)
		return;
	/* If the timer has begun this turn, it is disarmed: otherwise each wake-up would cause the
	 * next one. */
	if (guard.was_woken)
		stall_arm(0);
	guard.rests = true;
	if (guard.signals == guard.signals_before)
		return;
	guard.signals_before = guard.signals;
	ms = (unsigned int)(stall_now_ms() - guard.turn_ms);
	if (guard.slow)
		guard.slow(ms);
}

void
stall_pause(void)
{
	if (!is_on)
		return;
	stall_arm(0);
	guard.rests = true;
}

/* A timer that was armed a moment ago serves this turn as well. So a turn has between STALL_MS -
 * SPARE_MS and STALL_MS before the first signal. */
void
stall_turn(void)
{
	if (!is_on)
		return;
	guard.turn_ms = stall_now_ms();
	guard.rests = false;
	guard.was_woken = guard.woke_loop;
	guard.woke_loop = false;
	if (guard.is_armed && guard.turn_ms - guard.armed_ms < SPARE_MS)
		return;
	guard.armed_ms = guard.turn_ms;
	stall_arm(STALL_MS);
}

/* ---- calls that concern a suspect ---- */

/* If this turn is interrupted each AGAIN_MS already, that is brief enough. */
static void
brief_begin(void)
{
	if (guard.rests || guard.is_brief || guard.signals != guard.signals_before)
		return;
	guard.is_brief = true;
	stall_arm(BRIEF_MS);
}

static void
brief_end(void)
{
	if (!guard.is_brief)
		return;
	guard.is_brief = false;
	guard.armed_ms = stall_now_ms();
	stall_arm(STALL_MS);
}

void
stall_hurry(void)
{
	guard.hurries = true;
}

void
stall_close(bool begins)
{
	/* A close within a watched call is the call's. */
	if (!is_on || !guard.hurries || guard.is_watched)
		return;
	if (begins)
		brief_begin();
	else
		brief_end();
}

/* ---- what a stranger has cost ---- */

static uint32_t
debt_now_us(const struct stall_debt *debt)
{
	uint64_t paid_us = (stall_now_ms() - debt->at_ms) * PAID_US;

	return debt->us == 0 || paid_us >= debt->us ? 0 : debt->us - (uint32_t)paid_us;
}

static void
debt_set(struct stall_debt *debt, uint32_t us)
{
	debt->at_ms = stall_now_ms();
	/* What is owed is forgotten in a bounded time. */
	debt->us = us < 2 * EXCUSED_US ? us : 2 * EXCUSED_US;
}

bool
stall_is_in_debt(const struct stall_debt *debt)
{
	return debt_now_us(debt) > 0;
}

void
stall_owe(struct stall_debt *debt)
{
	debt_set(debt, EXCUSED_US);
}

void
stall_watch(const struct stall_debt *debt)
{
	bool is_brief = stall_is_in_debt(debt);

	if (!is_on)
		return;
	guard.is_watched = true;
	guard.watch_stops = guard.stops;
	guard.watch_most_us = (is_brief ? BRIEF_MS : STALL_MS) * 1000;
	guard.watch_waits = count_waits();
	guard.watch_idle_us = stall_idle_us();
	if (is_brief)
		brief_begin();
}

enum stall
stall_waited(struct stall_debt *debt)
{
	uint32_t owed_us = debt_now_us(debt);
	uint64_t us;

	if (!is_on || !guard.is_watched)
		return STALL_NONE;
	guard.is_watched = false;
	us = stall_idle_us() - guard.watch_idle_us;
	brief_end();
	if (us < (owed_us > 0 ? SUSPECT_US : WAIT_US) || guard.stops != guard.watch_stops ||
	    count_waits() <= guard.watch_waits)
		return STALL_NONE;
	debt_set(debt, owed_us + (uint32_t)(us < guard.watch_most_us ? us : guard.watch_most_us));
	return debt->us > EXCUSED_US ? STALL_PROVEN : STALL_EXCUSED;
}
