/* SPDX-License-Identifier: Apache-2.0 */
/* The fake engine's sessions: snapshots that hold a state or not, and copies between them, which
 * are told of from a later turn of the loop. */
#include "tests/unit/tools/fake_engine.h"

#include <errno.h>
#include <stdlib.h>

#include <event2/event.h>

#include "base/why.h"
#include "engine/repl.h"

struct copy {
	struct repl *repl;
	struct copy *next;
	struct event *soon;
	int error;
	void (*on_copied)(void *arg, int error);
	void *arg;
};

struct repl {
	struct tenant *tenant;
	struct event_base *base;
	uint32_t snapshots;
	struct copy *first;
};

static unsigned int n_open, n_copies, copy_ms;

unsigned int
fake_repls_open(void)
{
	return n_open;
}

bool
fake_repls_copying(void)
{
	return n_copies > 0;
}

void
fake_repls_copy_in(unsigned int ms)
{
	copy_ms = ms;
}

int
repl_open(struct engine *engine, struct tenant *tenant, const struct repl_options *options,
	  const struct repl_watcher *watcher, struct repl **repl_r, struct why *why_r)
{
	struct repl *repl;

	(void)watcher;
	if (n_open >= options->sessions_max)
		return why_say(why_r, -EDQUOT, NULL, "too many");
	repl = calloc(1, sizeof(*repl));
	repl->tenant = tenant;
	repl->base = fake_engine_base(engine);
	repl->snapshots = 1;
	n_open++;
	tenant_hold(tenant);
	*repl_r = repl;
	return 0;
}

static void
forget(struct copy *copy)
{
	event_free(copy->soon);
	free(copy);
	n_copies--;
}

void
repl_close(struct repl *repl)
{
	struct copy *copy;

	if (!repl)
		return;
	while ((copy = repl->first)) {
		repl->first = copy->next;
		forget(copy);
	}
	n_open--;
	tenant_release(repl->tenant);
	free(repl);
}

static void
on_soon(evutil_socket_t fd, short what, void *arg)
{
	struct copy *copy = arg, done = *copy, **at = &copy->repl->first;

	(void)fd;
	(void)what;
	while (*at != copy)
		at = &(*at)->next;
	*at = copy->next;
	forget(copy);
	if (done.on_copied)
		done.on_copied(done.arg, done.error);
}

int
repl_raise(struct repl *repl, uint64_t memory_bytes, struct why *why_r)
{
	(void)repl;
	return memory_bytes <= FAKE_MEMORY_MOST ? 0
		: why_say(why_r, -ERANGE, "memory_mb", "more than its processes can have");
}

void
repl_copy(struct repl *repl, unsigned int from, unsigned int to,
	  void (*on_copied)(void *arg, int error), void *arg)
{
	const struct timeval wait = { .tv_usec = copy_ms * 1000 };
	struct copy *copy = calloc(1, sizeof(*copy));

	*copy = (struct copy){ .repl = repl, .next = repl->first, .on_copied = on_copied,
			       .arg = arg };
	repl->first = copy;
	n_copies++;
	if (!(repl->snapshots & (1u << from)))
		copy->error = -ENOENT;
	else
		repl->snapshots |= 1u << to;
	copy->soon = evtimer_new(repl->base, on_soon, copy);
	evtimer_add(copy->soon, &wait);
}

void
repl_forget(struct repl *repl, const void *arg)
{
	for (struct copy *copy = repl->first; copy; copy = copy->next)
		if (copy->arg == arg)
			copy->on_copied = NULL;
}

void
repl_drop(struct repl *repl, unsigned int snapshot)
{
	repl->snapshots &= ~(1u << snapshot);
}

bool
repl_runs_on(const struct repl *repl)
{
	(void)repl;
	return false;
}

bool
repl_is_frozen(const struct repl *repl)
{
	(void)repl;
	return false;
}

bool
repl_runs_other(const struct repl *repl, const struct execution *cell)
{
	(void)repl;
	(void)cell;
	return false;
}

bool
repl_holds(const struct repl *repl, unsigned int snapshot)
{
	return repl->snapshots & (1u << snapshot);
}

void
repl_usage(struct repl *repl, struct repl_usage *usage_r)
{
	*usage_r = (struct repl_usage){ .snapshots = repl->snapshots, .memory_bytes = 10 << 20 };
}

int
repl_mount(struct repl *repl, const char *environment, void (*mounted)(void *arg, int error),
	   void *arg, struct mounting **mounting_r)
{
	(void)repl;
	(void)environment;
	(void)mounted;
	(void)arg;
	(void)mounting_r;
	return -EAGAIN;
}
