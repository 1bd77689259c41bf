/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the event_base, signal events, objects that wait to be freed.
 * The event that frees objects waits behind all callbacks that are active already. A lower priority
 * would not do: libevent serves a lower priority only when no event of a higher one is active, so
 * the event might never come. */
#include "base/loop.h"

#include <assert.h>
#include <errno.h>

#include <event2/event.h>

#include "base/xalloc.h"

#define SIGNALS_MAX 8

struct dying {
	struct dying *next;
	void (*free_fn)(void *object);
	void *object;
};

struct signal_watch {
	struct event *event;
	void (*on_signal)(int number, void *arg);
	void *arg;
};

struct loop {
	struct event_base *base;
	struct event *free_event;
	struct dying *dying;
	struct signal_watch signals[SIGNALS_MAX];
	size_t n_signals;
};

void
loop_free_now(struct loop *loop)
{
	while (loop->dying) {
		struct dying *d = loop->dying;

		loop->dying = d->next;
		d->free_fn(d->object);
		free(d);
	}
}

static void
on_free_event(evutil_socket_t, short, void *arg)
{
	loop_free_now(arg);
}

struct loop *
loop_new(bool any_file)
{
	struct event_config *config = event_config_new();
	struct loop *loop = xcalloc(1, sizeof(*loop));

	xalloc_check(config);
	/* epoll(7) refuses regular files; poll(2) reports them as always ready. */
	if (any_file)
		event_config_require_features(config, EV_FEATURE_FDS);
	loop->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!loop->base) {
		loop_free(loop);
		return NULL;
	}
	loop->free_event = xalloc_check(event_new(loop->base, -1, 0, on_free_event, loop));
	return loop;
}

void
loop_free(struct loop *loop)
{
	if (!loop)
		return;
	loop_free_now(loop);
	for (size_t i = 0; i < loop->n_signals; i++)
		event_free(loop->signals[i].event);
	if (loop->free_event)
		event_free(loop->free_event);
	if (loop->base)
		event_base_free(loop->base);
	free(loop);
}

struct event_base *
loop_base(const struct loop *loop)
{
	return loop->base;
}

void
loop_free_later(struct loop *loop, void (*free_fn)(void *object), void *object)
{
	struct dying *d = xcalloc(1, sizeof(*d));

	d->free_fn = free_fn;
	d->object = object;
	d->next = loop->dying;
	loop->dying = d;
	event_active(loop->free_event, EV_TIMEOUT, 0);
}

static void
on_signal_event(evutil_socket_t number, short, void *arg)
{
	struct signal_watch *watch = arg;

	watch->on_signal((int)number, watch->arg);
}

int
loop_signal(struct loop *loop, int number, void (*on_signal)(int number, void *arg),
	    void *arg)
{
	struct signal_watch *watch = &loop->signals[loop->n_signals];

	assert(loop->n_signals < SIGNALS_MAX);
	watch->on_signal = on_signal;
	watch->arg = arg;
	watch->event = evsignal_new(loop->base, number, on_signal_event, watch);
	xalloc_check(watch->event);
	loop->n_signals++;
	return event_add(watch->event, NULL) < 0 ? -EINVAL : 0;
}

int
loop_run(struct loop *loop)
{
	return event_base_dispatch(loop->base) < 0 ? -EIO : 0;
}

void
loop_stop(struct loop *loop)
{
	event_base_loopbreak(loop->base);
}
