/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the zygote's processes.
 * Reads:   frames from the zygote, which runs no client's code. */
#include "engine/zygote.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "host/child.h"
#include "policy/learnable.h"
#include "proto/frame.h"

#define START_SECONDS 30
#define LEARN_SECONDS 300	/* more than worker/learned.py takes for trials; nobody waits */
#define LAUNCHER_TRIES 30	/* so often calls wait until a lost launcher is there again */
#define STALE_LOOK_MS 1000	/* how often a stale process is looked at: it is renewed once its
				 * predecessor has ended */
#define WRITER_MAX (2 * FRAME_MAX)

struct process {
	struct zygote *zygote;
	struct child child;
	uint64_t generation;
	bool said_hello;
	bool was_used;			/* has been asked for a worker */
	bool is_stale;			/* the host has changed since it started, or it is bare */
	uint64_t asked;			/* modules that it is to learn */
	bool tries;			/* it tries each of them first */
	unsigned int spawns;		/* how many are unanswered */
};

struct zygote {
	struct zygote_options options;
	struct process process[2];
	struct process *now;		/* makes the workers, or will once it is ready */
	uint64_t generations;
	bool stopping, rests;
	uint64_t wanted, learned, refused;	/* modules */
	bool tries;			/* the next process tries them first */
	char *reason[LEARNABLE_MAX];	/* of each module that was not learned: "NAME: reason" */
	uint32_t landlock_abi;
	char packages[PACKAGES_TEXT_MAX + 1];
	char platform[129], extension[65];
};

static struct process *
other_than(struct zygote *z, const struct process *p)
{
	return p == &z->process[0] ? &z->process[1] : &z->process[0];
}

/* The process of this generation. NULL: it is gone. */
static struct process *
of_generation(const struct zygote *z, uint64_t generation)
{
	for (size_t i = 0; i < 2; i++)
		if (z->process[i].generation == generation && child_is_up(&z->process[i].child))
			return (struct process *)&z->process[i];
	return NULL;
}

/* ---- life ---- */

static void
zygote_start(struct process *p)
{
	const struct zygote_options *options = &p->zygote->options;

	p->said_hello = p->was_used = false;
	p->generation = ++p->zygote->generations;
	p->is_stale = options->early && p->generation == 1;
	p->asked = p->zygote->wanted & ~p->zygote->refused;
	p->tries = p->zygote->tries && p->asked != 0;
	child_start(&p->child, options->launcher, options->index,
		    p->is_stale ? LEARNABLE_BARE
				: p->asked | (p->tries ? LEARNABLE_TRIALS : 0));
}

static void
arm_renewal(struct zygote *z)
{
	if (z->now->is_stale)
		child_arm(&z->now->child, STALE_LOOK_MS);
	else if (z->options.renew_seconds > 0)
		child_arm(&z->now->child, z->options.renew_seconds * 1000);
}

/* Starts a successor, if one is needed. A process that has made no worker stays: no other process
 * knows its secrets. */
static void
zygote_replace(struct zygote *z)
{
	struct process *other = other_than(z, z->now);

	if ((!z->now->was_used && !z->now->is_stale) || other->child.state != CHILD_DOWN) {
		arm_renewal(z);
		return;
	}
	if (!z->now->is_stale)
		z->refused = 0;		/* it is time for a new verdict */
	zygote_start(other);
}

/* Ends a process that was replaced, once it owes no answer. */
static void
end_if_idle(struct process *p)
{
	if (p != p->zygote->now && p->child.state == CHILD_SERVING && p->spawns == 0)
		child_end(&p->child);
}

static void
take_over(struct process *p)
{
	struct zygote *z = p->zygote;
	struct process *old = z->now;

	log_line(LOG_INFO, "zygote-renewed", "profile=%s", z->options.profile->name);
	event_del(&old->child.timer);
	z->now = p;
	z->options.watcher.on_renewed(z->options.watcher.arg);
	end_if_idle(old);
}

static void
log_failure(const struct process *p, const char *event)
{
	struct log_quoted quoted;

	if (!child_is_told(&p->child))
		return;
	log_line(LOG_WARNING, event, "profile=%s text=%s", p->zygote->options.profile->name,
		 log_quote(&quoted, p->child.text, strlen(p->child.text)));
}

static void
on_now_down(struct process *p)
{
	struct zygote *z = p->zygote;
	const struct zygote_watcher *watcher = &z->options.watcher;
	struct process *other = other_than(z, p);
	struct child *c = &p->child;

	p->spawns = 0;
	log_failure(p, c->has_served ? "zygote-lost" : "zygote-failed");
	if (other->child.state == CHILD_STARTING)
		z->now = other;
	else
		child_arm(c, c->has_served ? 0 : child_backoff_ms(c));
	if (c->has_served)
		watcher->on_lost(watcher->arg, p->generation);
	else if (c->error != -ENOTCONN || c->lost_orders > LAUNCHER_TRIES)
		watcher->on_failed(watcher->arg, c->error, c->text);
}

/* The process has ended while it learned, perhaps because of a module. The next one tries each
 * module first. False: it has ended for another reason. */
static bool
try_modules(struct process *p)
{
	struct zygote *z = p->zygote;

	if (p->asked == 0 || p->tries || p->child.has_served ||
	    other_than(z, p)->child.state == CHILD_STARTING)
		return false;
	log_failure(p, "zygote-tries-modules");
	z->tries = true;
	child_arm(&p->child, 0);
	return true;
}

static void
zygote_on_down(void *arg)
{
	struct process *p = arg;
	struct zygote *z = p->zygote;

	if (z->stopping) {
		if (other_than(z, p)->child.state == CHILD_DOWN)
			z->options.watcher.on_stopped(z->options.watcher.arg);
	} else if (z->rests) {
		p->spawns = 0;
	} else if (try_modules(p)) {
		return;
	} else if (p == z->now) {
		on_now_down(p);
	} else {
		const struct zygote_watcher *watcher = &p->zygote->options.watcher;
		bool owed = p->spawns > 0;

		/* The process that is not "now" is down: a successor that did not get ready, or a
		 * predecessor. */
		p->spawns = 0;
		if (!p->child.has_served) {
			log_failure(p, "zygote-not-renewed");
			child_arm(&p->child, child_backoff_ms(&p->child));
		} else if (owed) {
			log_failure(p, "zygote-lost");
			watcher->on_lost(watcher->arg, p->generation);
		}
	}
}

/* The timer of a process: a process that is down is started, one that serves is renewed. */
static void
zygote_on_due(void *arg)
{
	struct process *p = arg;
	struct zygote *z = p->zygote;

	if (p == z->now && p->child.state == CHILD_DOWN)
		zygote_start(p);
	else if (z->now->child.state == CHILD_SERVING)
		zygote_replace(z);
}

/* ---- messages ---- */

static int
on_hello(struct process *p, const struct msg_hello *hello)
{
	if (p->said_hello)
		return -EBADMSG;
	if (!child_is_of_build(&p->child, &hello->build))
		return -EPROTO;
	p->said_hello = true;
	return 0;
}

/* Keeps the names of packages. Models read them, so a text with anything but names is dropped. */
static void
keep_packages(struct zygote *z, const struct msg_str *names)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_, ";

	memcpy(z->packages, names->at, names->len);
	z->packages[names->len] = '\0';
	if (strspn(z->packages, plain) != names->len)
		z->packages[0] = '\0';
}

/* Notes what the process has learned. A module that is refused is not tried again before the next
 * renewal, so the reason is logged once. The reasons are in the order of the modules. */
static void
note_learned(struct process *p, const struct msg_zygote_ready *ready)
{
	struct zygote *z = p->zygote;
	struct log_quoted quoted;
	const struct msg_strs *reasons = &ready->unlearned;
	size_t said = 0;

	z->tries = false;
	z->learned = p->asked & ready->learned;
	z->refused |= p->asked & ~ready->learned & ~ready->untried;
	for (size_t i = 0; i < LEARNABLE_MAX; i++) {
		if (p->asked & UINT64_C(1) << i)
			free(give_ptr(z->reason[i]));
		if ((p->asked & ~z->learned & UINT64_C(1) << i) == 0 || said == reasons->n)
			continue;
		const struct msg_str *text = &reasons->item[said++];

		log_line(LOG_NOTICE, "module-not-learned", "profile=%s text=%s",
			 z->options.profile->name, log_quote(&quoted, text->at, text->len));
		z->reason[i] = xmemdup0(text->at, text->len);
	}
	if (p->asked != 0)
		log_line(LOG_INFO, "zygote-learned", "profile=%s modules=%d",
			 z->options.profile->name, __builtin_popcountll(z->learned));
}

static int
on_zygote_ready(struct process *p, const struct msg_zygote_ready *ready)
{
	struct zygote *z = p->zygote;
	struct log_quoted quoted;

	if (!p->said_hello || p->child.state != CHILD_STARTING)
		return -EBADMSG;
	for (size_t i = 0; i < ready->missing.n; i++)
		log_line(LOG_WARNING, "zygote-misses", "profile=%s what=%s",
			 z->options.profile->name,
			 log_quote(&quoted, ready->missing.item[i].at,
				   ready->missing.item[i].len));
	z->landlock_abi = ready->landlock_abi;
	note_learned(p, ready);
	keep_packages(z, &ready->packages);
	snprintf(z->platform, sizeof(z->platform), "%.*s", (int)ready->platform.len,
		 ready->platform.at);
	snprintf(z->extension, sizeof(z->extension), "%.*s", (int)ready->extension.len,
		 ready->extension.at);
	child_is_ready(&p->child);
	p->child.failed_starts = 0;
	if (p != z->now)
		take_over(p);
	arm_renewal(z);
	z->options.watcher.on_ready(z->options.watcher.arg);
	return 0;
}

static int
on_zygote_failed(struct process *p, const struct msg_zygote_failed *failed)
{
	if (p->child.state == CHILD_SERVING)
		return -EBADMSG;
	child_note(&p->child, -(int)failed->error, "%.*s: %s", (int)failed->what.len,
		     failed->what.at, strerror((int)failed->error));
	return -ECHILD;
}

static int
on_spawned(struct process *p, struct frame *frame)
{
	const struct zygote_watcher *watcher = &p->zygote->options.watcher;
	const struct msg_spawned *spawned = &frame->msg.spawned;

	if (p->child.state != CHILD_SERVING || p->spawns == 0)
		return -EBADMSG;
	(void)child_expect(&p->child, --p->spawns);
	watcher->on_spawned(watcher->arg, spawned->worker, (pid_t)spawned->pid,
			    frame_take_fd(frame, 0));
	end_if_idle(p);
	return 0;
}

static int
on_spawn_failed(struct process *p, const struct msg_spawn_failed *failed)
{
	const struct zygote_watcher *watcher = &p->zygote->options.watcher;
	char text[1200];

	if (p->child.state != CHILD_SERVING || p->spawns == 0)
		return -EBADMSG;
	(void)child_expect(&p->child, --p->spawns);
	snprintf(text, sizeof(text), "%.*s: %s", (int)failed->what.len, failed->what.at,
		 strerror((int)failed->error));
	watcher->on_spawn_failed(watcher->arg, failed->worker, -(int)failed->error,
				 text);
	end_if_idle(p);
	return 0;
}

static int
zygote_on_message(void *arg, struct frame *frame)
{
	struct process *p = arg;

	switch ((unsigned int)frame->msg.type) {
	case MSG_HELLO:
		return on_hello(p, &frame->msg.hello);
	case MSG_ZYGOTE_READY:
		return on_zygote_ready(p, &frame->msg.zygote_ready);
	case MSG_ZYGOTE_FAILED:
		return on_zygote_failed(p, &frame->msg.zygote_failed);
	case MSG_SPAWNED:
		return on_spawned(p, frame);
	case MSG_SPAWN_FAILED:
		return on_spawn_failed(p, &frame->msg.spawn_failed);
	default:
		return -EBADMSG;
	}
}

#define ZYGOTE_KIND(seconds) { \
	.name = "the zygote", \
	.launch = LAUNCH_ZYGOTE, \
	.from = FROM_ZYGOTE, \
	.passes = true, \
	.writer_max = WRITER_MAX, \
	.start_seconds = (seconds), \
	.on_message = zygote_on_message, \
	.on_down = zygote_on_down, \
	.on_due = zygote_on_due, \
}

static const struct child_kind zygote_kind = ZYGOTE_KIND(START_SECONDS);
static const struct child_kind learning_kind = ZYGOTE_KIND(LEARN_SECONDS);

int
zygote_new(const struct zygote_options *options, struct zygote **zygote_r)
{
	struct zygote *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return -ENOMEM;
	z->options = *options;
	z->now = &z->process[0];
	for (size_t i = 0; i < 2; i++) {
		z->process[i].zygote = z;
		child_init(&z->process[i].child, options->rests ? &learning_kind : &zygote_kind,
			   options->base, &z->process[i]);
	}
	z->rests = options->rests;
	/* The start comes from the loop, so that no callback is called before this returns. */
	if (!z->rests)
		child_arm(&z->now->child, 0);
	*zygote_r = z;
	return 0;
}

static void
make_stale(struct zygote *z)
{
	for (size_t i = 0; i < 2; i++)
		z->process[i].is_stale = child_is_up(&z->process[i].child);
	if (z->now->child.state == CHILD_SERVING)
		zygote_replace(z);
}

void
zygote_renew(struct zygote *z)
{
	z->refused = 0;
	make_stale(z);
}

void
zygote_learn(struct zygote *z, uint64_t modules)
{
	assert(zygote_may_learn(z));
	z->wanted = modules;
	if (z->rests)
		child_arm(&z->now->child, 0);
	else
		make_stale(z);
	z->rests = false;
}

bool
zygote_may_learn(const struct zygote *z)
{
	const enum child_state a = z->process[0].child.state, b = z->process[1].child.state;

	return z->rests ? a == CHILD_DOWN && b == CHILD_DOWN
			: a + b == CHILD_DOWN + CHILD_SERVING;
}

uint64_t
zygote_learned(const struct zygote *z)
{
	return zygote_is_ready(z) ? z->learned : 0;
}

uint64_t
zygote_refused(const struct zygote *z)
{
	return z->refused;
}

const char *
zygote_reason(const struct zygote *z, size_t module)
{
	return z->reason[module];
}

void
zygote_rest(struct zygote *z)
{
	z->rests = true;
	for (size_t i = 0; i < 2; i++) {
		event_del(&z->process[i].child.timer);
		child_end(&z->process[i].child);
	}
}

void
zygote_stop(struct zygote *z)
{
	bool down = true;

	z->stopping = true;
	for (size_t i = 0; i < 2; i++) {
		struct child *c = &z->process[i].child;

		event_del(&c->timer);
		child_end(c);
		down = down && c->state == CHILD_DOWN;
	}
	if (down)
		z->options.watcher.on_stopped(z->options.watcher.arg);
}

void
zygote_free(struct zygote *z)
{
	if (z == NULL)
		return;
	for (size_t i = 0; i < 2; i++)
		child_done(&z->process[i].child);
	for (size_t i = 0; i < LEARNABLE_MAX; i++)
		free(z->reason[i]);
	free(z);
}

bool
zygote_is_ready(const struct zygote *z)
{
	return z->now->child.state == CHILD_SERVING;
}

pid_t
zygote_pid(const struct zygote *z)
{
	return z->now->child.launch.pid;
}

uint64_t
zygote_generation(const struct zygote *z)
{
	return z->now->generation;
}

bool
zygote_is_alive(const struct zygote *z, uint64_t generation)
{
	const struct process *p = of_generation(z, generation);
	struct pollfd line;
	siginfo_t info = { 0 };

	if (p == NULL)
		return false;
	/* A zygote that is ending closes its socket some time before it can be reaped. */
	line = (struct pollfd){ .fd = p->child.launch.control };
	return poll(&line, 1, 0) == 0 &&
	       waitid(P_PIDFD, (id_t)p->child.launch.pidfd, &info,
		      WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

bool
zygote_kill(struct zygote *z, uint64_t generation)
{
	struct process *p = of_generation(z, generation);

	if (p != NULL)
		child_end(&p->child);
	return p != NULL;
}

bool
zygote_owes(const struct zygote *z)
{
	return z->process[0].spawns > 0 || z->process[1].spawns > 0;
}

const char *
zygote_trouble(const struct zygote *z)
{
	const struct child *c = &z->now->child;

	return (c->failed_starts > 0 || c->lost_orders > LAUNCHER_TRIES) &&
	       c->state == CHILD_DOWN ? c->text : NULL;
}

const char *
zygote_packages(const struct zygote *z)
{
	return z->packages;
}

uint32_t
zygote_landlock_abi(const struct zygote *z)
{
	return z->landlock_abi;
}

const char *
zygote_platform(const struct zygote *z)
{
	return z->platform;
}

const char *
zygote_extension(const struct zygote *z)
{
	return z->extension;
}

unsigned int
zygote_room(const struct zygote *z)
{
	return z->now->child.state == CHILD_SERVING ? ZYGOTE_SPAWNS_MAX - z->now->spawns : 0;
}

int
zygote_spawn(struct zygote *z, uint64_t worker, uint64_t owner, uint32_t uid,
	     const int *fd, size_t n_fds)
{
	struct msg msg = { .type = MSG_SPAWN, .spawn = {
		.worker = worker, .uid = uid, .into_cgroup = n_fds == 4, .owner = owner,
	} };
	int sent[4], r = child_expect(&z->now->child, z->now->spawns + 1);

	assert(n_fds == 3 || n_fds == 4);
	assert(zygote_room(z) > 0);
	memcpy(sent, fd, n_fds * sizeof(*fd));
	if (r == 0 && n_fds == 4 && (sent[3] = fcntl(fd[3], F_DUPFD_CLOEXEC, 3)) < 0)
		r = -errno;
	if (r < 0) {
		(void)child_expect(&z->now->child, z->now->spawns);
		for (size_t i = 0; i < 3; i++)
			close(fd[i]);
		return r;
	}
	z->now->was_used = true;
	r = child_send(&z->now->child, &msg, sent, n_fds);
	if (r == 0)
		z->now->spawns++;
	return r;
}

/* If the message cannot be sent, the zygote is lost, and its networks with it. */
void
zygote_free_network(struct zygote *z, uint64_t generation, uint64_t worker, bool keep)
{
	struct msg msg = { .type = MSG_NETWORK_FREE,
			   .network_free = { .worker = worker, .keep = keep } };
	struct process *p = of_generation(z, generation);

	if (p != NULL && p->child.state == CHILD_SERVING)
		(void)child_send(&p->child, &msg, NULL, 0);
}

void
zygote_drop_networks(struct zygote *z, uint64_t owner)
{
	struct msg msg = { .type = MSG_NETWORK_DROP, .network_drop.owner = owner };

	for (size_t i = 0; i < 2; i++)
		if (z->process[i].child.state == CHILD_SERVING)
			(void)child_send(&z->process[i].child, &msg, NULL, 0);
}
