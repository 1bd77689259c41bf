/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: one timer. */
#include "host/watchdog.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "host/cgroup.h"
#include "host/usage.h"

#define WAIT_US 20000		/* until a helper that is away or late is asked again */
#define PIECE_US 5000		/* of one turn of the loop, for each of the two timers */

static void
watchdog_add_pids(struct usage_asked *asked, const char *text)
{
	char *end;

	for (;;) {
		long pid = strtol(text, &end, 10);

		if (end == text || asked->n == USAGE_MEMBERS_MAX)
			return;
		asked->member[asked->n++] = (int32_t)pid;
		text = end;
	}
}

/* Asks about the processes of a worker: those in its leaf or, without a leaf (NULL), init and its
 * descendants. False: not measured now. */
static bool
watchdog_ask(enum usage_question question, pid_t init, const struct cgroup_leaf *leaf,
	     struct usage_answer *answer_r)
{
	struct usage_asked asked;
	char text[16384];

	asked.question = question;
	asked.pid = init;
	asked.n = 0;
	if (leaf != NULL && cgroup_leaf_read(leaf, "cgroup.procs", text, sizeof(text)) > 0)
		watchdog_add_pids(&asked, text);
	if (leaf == NULL || asked.n > 0)
		return usage_ask(&asked, answer_r);
	*answer_r = (struct usage_answer){ 0 };
	return true;
}

static bool
ask_one(enum usage_question question, pid_t pid, struct usage_answer *answer_r)
{
	struct usage_asked asked;

	asked.question = question;
	asked.pid = pid;
	asked.n = 0;
	return usage_ask(&asked, answer_r);
}

static uint64_t
own_cpu_us(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* Handles a process that was seen before and is missing now. The tree of processes changes
 * during the walk: a process counts as gone only when it is missing twice. */
static void
watchdog_miss(struct watchdog_seen *seen, const struct watchdog_process *process,
	      struct watchdog_process *kept, size_t *n_io)
{
	if (process->missed || *n_io >= USAGE_MEMBERS_MAX) {
		seen->gone_us += process->cpu_us;
	} else {
		kept[*n_io] = *process;
		kept[(*n_io)++].missed = true;
	}
}

/* The processor time of all processes, ended ones included. For ended processes there are two
 * sums: the waited_us of the remaining processes, and the times that were last seen. The first
 * lacks processes that nobody waits for (SIGCHLD ignored), the second the time after the last
 * sample. The larger sum counts, so nothing is counted twice. */
static uint64_t
all_cpu_us(const struct usage_answer *members, struct watchdog_seen *seen)
{
	struct watchdog_process now[2 * USAGE_MEMBERS_MAX], *process;
	uint64_t own = 0, waited = 0, gone;
	size_t old = 0, n = 0;

	for (size_t i = 0; i < members->n; i++) {
		pid_t pid = members->process[i].pid;
		uint64_t us = own_cpu_us(pid);

		own += us;
		waited += members->process[i].waited_us;
		while (old < seen->n && seen->process[old].pid < pid)
			watchdog_miss(seen, &seen->process[old++], now, &n);
		if (old < seen->n && seen->process[old].pid == pid) {
			/* A smaller value than before: another process with the same number. */
			if (seen->process[old].cpu_us > us)
				seen->gone_us += seen->process[old].cpu_us;
			old++;
		}
		now[n++] = (struct watchdog_process){ .pid = pid, .cpu_us = us };
	}
	while (old < seen->n)
		watchdog_miss(seen, &seen->process[old++], now, &n);
	gone = seen->gone_us;
	for (size_t i = 0; i < n; i++)
		gone += now[i].missed ? now[i].cpu_us : 0;
	process = xmalloc(n * sizeof(*process) + 1);
	memcpy(process, now, n * sizeof(*process));
	free(seen->process);
	seen->process = process;
	seen->n = n;
	return own + (waited > gone ? waited : gone);
}

void
watchdog_seen_done(struct watchdog_seen *seen)
{
	free(seen->process);
	*seen = (struct watchdog_seen){ 0 };
}

bool
watchdog_measure(pid_t init, const struct cgroup_leaf *leaf, struct watchdog_seen *seen,
		 struct watchdog_usage *usage_r)
{
	struct usage_answer answer;

	if (!watchdog_ask(USAGE_ALL, init, leaf, &answer)) {
		*usage_r = seen->last;
		return false;
	}
	*usage_r = (struct watchdog_usage){
		.memory_bytes = answer.kept_bytes + answer.memory_bytes,
		.kept_bytes = answer.kept_bytes,
		.tasks = answer.tasks,
		.cpu_us = leaf == NULL ? all_cpu_us(&answer, seen) : 0,
		.sockets = answer.sockets,
		.protocol_bytes = answer.protocol_bytes,
	};
	seen->last = *usage_r;
	return true;
}

void
watchdog_measure_sockets(pid_t init, struct watchdog_usage *usage_r)
{
	struct usage_answer answer;

	(void)ask_one(USAGE_SOCKETS, init, &answer);
	*usage_r = (struct watchdog_usage){
		.sockets = answer.sockets, .protocol_bytes = answer.protocol_bytes,
	};
}

uint64_t
watchdog_private_memory(pid_t init, const struct cgroup_leaf *leaf)
{
	struct usage_answer members, one;
	uint64_t bytes = 0;

	if (!watchdog_ask(USAGE_MEMBERS, init, leaf, &members))
		return 0;
	for (uint32_t i = 0; i < members.n; i++) {
		if (!ask_one(USAGE_ONE, members.process[i].pid, &one))
			return 0;
		bytes += one.private_bytes;
	}
	return bytes;
}

uint64_t
watchdog_memory_since(const struct watchdog_usage *before, const struct watchdog_usage *usage)
{
	return usage->memory_bytes > before->memory_bytes
	       ? usage->memory_bytes - before->memory_bytes : 0;
}

/* ---- the timer ---- */

/* The elapsed time, and the CPU time of this thread and of the usage helper. The pause between
 * checks does not depend on elapsed time alone: on a busy machine checks take longer than their CPU
 * time, and such a pause would grow until nothing is noticed any more. */
static struct effort
effort_now(void)
{
	struct timespec cpu = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (struct effort){ clock_us(),
				(uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000 +
				(usage_pid() > 0 ? own_cpu_us(usage_pid()) : 0) };
}

static void
effort_add(struct effort *sum, const struct effort *start)
{
	struct effort now = effort_now();

	sum->wall_us += now.wall_us - start->wall_us;
	/* A helper that was replaced meanwhile begins at 0. */
	sum->cpu_us += now.cpu_us > start->cpu_us ? now.cpu_us - start->cpu_us : 0;
}

/* The pause after some work that limits such work to a tenth of a processor's time, and to half of
 * the elapsed time. */
static uint64_t
effort_pause_us(const struct effort *effort)
{
	uint64_t us = effort->cpu_us * 10;

	return us > effort->wall_us ? us : effort->wall_us;
}

struct watchdog {
	struct event tick, reading;
	TAILQ_HEAD(, watchdog_link) links;	/* ordered by their last check, oldest first */
	TAILQ_HEAD(, watchdog_look) looks;	/* ordered by the last process that was read */
	unsigned int round;
	uint64_t interval_us;
	struct effort effort;			/* of this round so far */
};

static void
watchdog_arm(struct event *event, uint64_t us)
{
	struct timeval interval = {
		.tv_sec = (time_t)(us / 1000000),
		.tv_usec = (suseconds_t)(us % 1000000),
	};

	/* Otherwise the pause would begin with this turn of the loop, and include the work. */
	event_base_update_cache_time(event_get_base(event));
	event_add(event, &interval);
}

static void
watchdog_on_tick(evutil_socket_t, short, void *arg)
{
	struct watchdog *watchdog = arg;
	const struct effort start = effort_now();
	uint64_t took = 0, pause;
	struct watchdog_link *link;

	while ((link = TAILQ_FIRST(&watchdog->links)) != NULL && link->round != watchdog->round &&
	       took < PIECE_US) {
		TAILQ_REMOVE(&watchdog->links, link, link);
		TAILQ_INSERT_TAIL(&watchdog->links, link, link);
		link->round = watchdog->round;
		link->check(link->arg);
		took = clock_us() - start.wall_us;
	}
	effort_add(&watchdog->effort, &start);
	link = TAILQ_FIRST(&watchdog->links);
	if (link == NULL)
		return;
	if (link->round != watchdog->round) {
		watchdog_arm(&watchdog->tick, took);
		return;
	}
	pause = effort_pause_us(&watchdog->effort);
	watchdog->round++;
	watchdog->effort = (struct effort){ 0 };
	watchdog_arm(&watchdog->tick,
		     pause > watchdog->interval_us ? pause : watchdog->interval_us);
}

static void watchdog_on_reading(evutil_socket_t fd, short what, void *arg);

struct watchdog *
watchdog_new(struct event_base *base, unsigned int interval_ms)
{
	struct watchdog *watchdog = xcalloc(1, sizeof(*watchdog));

	watchdog->round = 1;
	watchdog->interval_us = interval_ms * 1000;
	TAILQ_INIT(&watchdog->links);
	TAILQ_INIT(&watchdog->looks);
	evtimer_assign(&watchdog->tick, base, watchdog_on_tick, watchdog);
	evtimer_assign(&watchdog->reading, base, watchdog_on_reading, watchdog);
	return watchdog;
}

void
watchdog_free(struct watchdog *watchdog)
{
	if (watchdog == NULL)
		return;
	while (!TAILQ_EMPTY(&watchdog->links))
		watchdog_forget(TAILQ_FIRST(&watchdog->links));
	while (!TAILQ_EMPTY(&watchdog->looks))
		watchdog_look_end(TAILQ_FIRST(&watchdog->looks));
	event_del(&watchdog->tick);
	event_del(&watchdog->reading);
	free(watchdog);
}

void
watchdog_watch(struct watchdog *watchdog, struct watchdog_link *link, void (*check)(void *arg),
	       void *arg)
{
	*link = (struct watchdog_link){
		.watchdog = watchdog, .check = check, .arg = arg, .round = watchdog->round - 1,
	};
	TAILQ_INSERT_HEAD(&watchdog->links, link, link);
	if (!evtimer_pending(&watchdog->tick, NULL))
		watchdog_arm(&watchdog->tick, watchdog->interval_us);
}

void
watchdog_forget(struct watchdog_link *link)
{
	if (link->watchdog == NULL)
		return;
	TAILQ_REMOVE(&link->watchdog->links, link, link);
	link->watchdog = NULL;
}

/* ---- memory with shared pages counted once ---- */

static bool
look_find_members(struct watchdog_look *look)
{
	struct usage_answer members;

	if (!watchdog_ask(USAGE_MEMBERS, look->init, look->leaf, &members))
		return false;
	look->files_seen = members.files;
	free(look->member);
	look->member = xmalloc((members.n + 1) * sizeof(*look->member));
	for (uint32_t i = 0; i < members.n; i++)
		look->member[i] = members.process[i].pid;
	look->n = members.n;
	look->at = 0;
	look->sum_bytes = 0;
	return true;
}

enum look_step {
	LOOK_HAS_MORE,
	LOOK_IS_COMPLETE,
	LOOK_WAITS,		/* nothing was measured: the helper is away or late */
};

/* Reads the next process. */
static enum look_step
look_read_next(struct watchdog_look *look)
{
	struct usage_answer one;

	if (look->at == look->n) {
		look->bytes = look->sum_bytes;
		return LOOK_IS_COMPLETE;
	}
	if (!ask_one(USAGE_ONE, look->member[look->at], &one))
		return LOOK_WAITS;
	look->at++;
	look->sum_bytes += one.table_bytes + one.private_bytes +
			   (look->files_seen ? 0 : one.shared_bytes);
	return LOOK_HAS_MORE;
}

/* Runs in the turn after the freezing, which is not complete when the write returns. */
static enum look_step
look_go_on(struct watchdog_look *look)
{
	const struct effort start = effort_now();
	enum look_step step = LOOK_WAITS;

	if (look->member != NULL || look_find_members(look))
		step = look_read_next(look);
	effort_add(&look->effort, &start);
	return step;
}

static void
watchdog_on_reading(evutil_socket_t, short, void *arg)
{
	struct watchdog *watchdog = arg;
	uint64_t start = clock_us(), took = 0;
	enum look_step step = LOOK_HAS_MORE;
	struct watchdog_look *look;

	while ((look = TAILQ_FIRST(&watchdog->looks)) != NULL && took < PIECE_US &&
	       step != LOOK_WAITS) {
		TAILQ_REMOVE(&watchdog->looks, look, link);
		TAILQ_INSERT_TAIL(&watchdog->looks, look, link);
		step = look_go_on(look);
		if (step == LOOK_IS_COMPLETE) {
			watchdog_look_end(look);
			look->done(look->arg);
		}
		took = clock_us() - start;
	}
	if (step == LOOK_WAITS && took < WAIT_US)
		took = WAIT_US;
	if (!TAILQ_EMPTY(&watchdog->looks))
		watchdog_arm(&watchdog->reading, took);
}

bool
watchdog_look(struct watchdog *watchdog, struct watchdog_look *look, pid_t init,
	      const struct cgroup_leaf *leaf, bool freezes, void (*done)(void *arg), void *arg)
{
	enum look_step step = LOOK_HAS_MORE;

	watchdog_look_end(look);
	*look = (struct watchdog_look){
		.init = init, .leaf = leaf, .bytes = look->bytes, .done = done, .arg = arg,
	};
	while (look->effort.wall_us < PIECE_US && step == LOOK_HAS_MORE)
		step = look_go_on(look);
	if (step == LOOK_IS_COMPLETE) {
		watchdog_look_end(look);
		return true;
	}
	/* The look takes longer, so it begins again, with a frozen process tree. */
	free(look->member);
	look->member = NULL;
	look->frozen = freezes && leaf != NULL && cgroup_leaf_freeze(leaf, true) == 0;
	look->watchdog = watchdog;
	TAILQ_INSERT_TAIL(&watchdog->looks, look, link);
	if (!evtimer_pending(&watchdog->reading, NULL))
		watchdog_arm(&watchdog->reading, PIECE_US);
	return false;
}

void
watchdog_look_take(struct watchdog_look *look, const struct watchdog_usage *before,
		   const struct watchdog_usage *usage)
{
	uint64_t bytes = watchdog_memory_since(before, usage);

	/* 0 would mean that nothing is known. */
	look->bytes = bytes > usage->kept_bytes ? bytes - usage->kept_bytes : 1;
}

bool
watchdog_look_rests(const struct watchdog_look *look)
{
	return look->watchdog != NULL || clock_us() < look->next_us;
}

void
watchdog_look_end(struct watchdog_look *look)
{
	if (look->frozen)
		cgroup_leaf_freeze(look->leaf, false);
	if (look->watchdog != NULL)
		TAILQ_REMOVE(&look->watchdog->looks, look, link);
	free(look->member);
	look->next_us = clock_us() + effort_pause_us(&look->effort);
	look->member = NULL;
	look->watchdog = NULL;
	look->frozen = false;
}

uint64_t
watchdog_looked_memory(const struct watchdog_look *look, const struct watchdog_usage *before,
		       const struct watchdog_usage *usage)
{
	uint64_t most = watchdog_memory_since(before, usage);
	uint64_t looked = look->bytes + usage->kept_bytes;

	return look->bytes > 0 && looked < most ? looked : most;
}
