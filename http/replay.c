/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the past events of streams, until they are too old or too
 * many.
 * Reads:   ids of events from clients, in any form. */
#include "http/replay.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include "base/fair.h"
#include "base/jsonout.h"
#include "base/xalloc.h"
#include "http/parts.h"

struct kept_event {
	TAILQ_ENTRY(kept_event) link;
	uint64_t number;
	bool is_news;
	unsigned int holders;		/* its buffer, and the connections to which it is being
					 * sent */
	size_t len;
	char *text;
};

static int
compare_streams(const void *a, const void *b)
{
	const struct http_replay *one = a, *other = b;

	return one->stream < other->stream ? -1 : one->stream > other->stream;
}

/* ---- kept events ---- */

static void
let_go(struct kept_event *event)
{
	if (--event->holders)
		return;
	free(event->text);
	free(event);
}

static size_t
replay_charge_of(const struct kept_event *event)
{
	return sizeof(*event) + event->len;
}

/* bytes: may be negative. */
static void
replay_charge(struct http_replay *replay, size_t bytes)
{
	struct http_tenant *tenant = replay->all->tenant;

	replay->bytes += bytes;
	tenant->replay_bytes += bytes;
	tenant->all->replay_bytes += bytes;
}

static void
replay_drop(struct http_replay *replay, struct kept_event *event)
{
	replay_charge(replay, -replay_charge_of(event));
	TAILQ_REMOVE(&replay->events, event, link);
	let_go(event);
}

static void
replay_forget(struct http_replay *replay)
{
	while (!TAILQ_EMPTY(&replay->events))
		replay_drop(replay, TAILQ_FIRST(&replay->events));
	replay_charge(replay, -replay->bytes);
	TAILQ_REMOVE(&replay->all->list, replay, link);
	tdelete(replay, &replay->all->by_stream, compare_streams);
	if (replay->late)
		event_free(replay->late);
	free(replay);
}

static bool
drop_oldest_news(struct http_replay *replay)
{
	struct kept_event *event;

	TAILQ_FOREACH(event, &replay->events, link)
		if (event->is_news) {
			replay_drop(replay, event);
			return true;
		}
	return false;
}

static bool
forget_oldest(struct http_replays *replays)
{
	struct http_replay *replay;

	TAILQ_FOREACH(replay, &replays->list, link)
		if (!replay->exchange) {
			replay_forget(replay);
			return true;
		}
	return false;
}

/* Has the tenant room for so many more bytes, of its own and of its share? */
static bool
replay_fits(const struct http_tenant *tenant, size_t bytes)
{
	size_t own = tenant->replay_bytes;

	return bytes <= HTTP_REPLAY_TENANT_MAX - own &&
	       own + bytes <= fair_bytes(fair_memory(HTTP_ALL_PART),
					 tenant->all->replay_bytes, own);
}

/* Makes room for an event. If the stream's own bound is reached, drops the oldest news of the
 * stream. If the tenant's bound is reached, drops ended streams of the session first, then news of
 * the stream. replay NULL: a new stream. False: there is not enough room. */
static bool
replay_make_room(struct http_replays *replays, struct http_replay *replay, size_t bytes)
{
	while (replay && bytes > HTTP_REPLAY_STREAM_MAX - replay->bytes)
		if (bytes > HTTP_REPLAY_STREAM_MAX || !drop_oldest_news(replay))
			return false;
	while (!replay_fits(replays->tenant, bytes))
		if (!forget_oldest(replays) && !(replay && drop_oldest_news(replay)))
			return false;
	return true;
}

/* ---- events ---- */

static void
on_sent(const void *, size_t, void *arg)
{
	let_go(arg);
}

static void
replay_write_event(const struct http_replay *replay, struct kept_event *event, struct evbuffer *out)
{
	char id[HTTP_EVENT_ID_MAX];

	http_replay_id(replay, event->number, id);
	evbuffer_add_printf(out, "event: message\nid: %s\ndata: ", id);
	if (event->len <= HTTP_EVENT_COPIED) {
		evbuffer_add(out, event->text, event->len);
	} else {
		event->holders++;
		xassert(evbuffer_add_reference(out, event->text, event->len, on_sent, event) == 0);
	}
	evbuffer_add(out, "\n\n", 2);
}

void
http_replay_say(struct http_replay *replay, bool is_news, struct jsonout *message,
		struct evbuffer *out)
{
	struct kept_event *event = xcalloc(1, sizeof(*event));

	event->number = ++replay->latest;
	event->is_news = is_news;
	event->holders = 1;
	event->len = message->len;
	event->text = jsonout_take(message);
	replay_write_event(replay, event, out);
	if (replay->whole && replay_make_room(replay->all, replay, replay_charge_of(event))) {
		TAILQ_INSERT_TAIL(&replay->events, event, link);
		replay_charge(replay, replay_charge_of(event));
		return;
	}
	let_go(event);
	if (is_news)
		return;
	replay->whole = false;
	while (!TAILQ_EMPTY(&replay->events))
		replay_drop(replay, TAILQ_FIRST(&replay->events));
}

void
http_replay_write(const struct http_replay *replay, uint64_t number, struct evbuffer *out)
{
	struct kept_event *event;

	TAILQ_FOREACH(event, &replay->events, link)
		if (event->number > number)
			replay_write_event(replay, event, out);
}

void
http_replay_id(const struct http_replay *replay, uint64_t number, char id_r[HTTP_EVENT_ID_MAX])
{
	snprintf(id_r, HTTP_EVENT_ID_MAX, "%" PRIu64 "-%" PRIu64, replay->stream, number);
}

/* ---- streams ---- */

void
http_replays_init(struct http_replays *replays, struct event_base *base,
		  struct http_tenant *tenant, unsigned int seconds)
{
	TAILQ_INIT(&replays->list);
	replays->by_stream = NULL;
	replays->base = base;
	replays->tenant = tenant;
	replays->seconds = seconds;
}

void
http_replays_clear(struct http_replays *replays)
{
	struct http_replay *replay;

	while ((replay = TAILQ_FIRST(&replays->list))) {
		if (replay->exchange)
			replay->free_exchange(replay->exchange);
		replay_forget(replay);
	}
}

struct http_replay *
http_replay_new(struct http_replays *replays, struct http_exchange *x,
		void (*free_exchange)(void *x))
{
	struct http_replay *replay;

	if (!replays->seconds || !replay_make_room(replays, NULL, sizeof(*replay)))
		return NULL;
	replay = xcalloc(1, sizeof(*replay));
	replay->all = replays;
	replay->exchange = x;
	replay->free_exchange = free_exchange;
	replay->stream = ++replays->last;
	replay->whole = true;
	TAILQ_INIT(&replay->events);
	TAILQ_INSERT_TAIL(&replays->list, replay, link);
	xalloc_check(tsearch(replay, &replays->by_stream, compare_streams));
	replay_charge(replay, sizeof(*replay));
	return replay;
}

/* Digits only, within range. */
static const char *
replay_read_number(const char *text, uint64_t *number_r)
{
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len > 19)
		return NULL;
	*number_r = strtoull(text, NULL, 10);
	return text + len;
}

struct http_replay *
http_replay_find(const struct http_replays *replays, const char *event_id,
		 uint64_t *number_r)
{
	struct http_replay asked, *const *found;
	const char *at;

	at = replay_read_number(event_id, &asked.stream);
	at = at && *at == '-' ? replay_read_number(at + 1, number_r) : NULL;
	if (!at || *at)
		return NULL;
	found = tfind(&asked, &replays->by_stream, compare_streams);
	return found && (*found)->whole && *number_r <= (*found)->latest ? *found : NULL;
}

static void
replay_on_late(evutil_socket_t, short, void *arg)
{
	replay_forget(arg);
}

void
http_replay_end(struct http_replay *replay)
{
	const struct timeval wait = { .tv_sec = replay->all->seconds };

	replay->exchange = NULL;
	if (!replay->whole) {
		replay_forget(replay);
		return;
	}
	replay->late = xalloc_check(evtimer_new(replay->all->base, replay_on_late, replay));
	evtimer_add(replay->late, &wait);
}
