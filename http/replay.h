/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the events of a stream for a while, so that a client that has lost the stream can ask for
 * the events after the last one that it has seen. Each stream has a buffer. The buffers belong to a
 * session, which belongs to a principal. An event's id is valid only in its own session.
 *
 * A buffer is bounded, and so are all buffers of a tenant together. If a buffer is full, its news
 * (progress, log lines) are dropped, the oldest first. If the tenant's bound is reached, ended
 * streams of the session are dropped first, then news of the stream that gets an event. A stream
 * that still does not fit is not kept, and cannot be resumed.
 */
#ifndef HTTP_REPLAY_H
#define HTTP_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct evbuffer;
struct event_base;
struct http_exchange;
struct http_replay;
struct http_tenant;
struct jsonout;

#define HTTP_REPLAY_STREAM_MAX (16 * 1024 * 1024)	/* bytes of one stream */
#define HTTP_REPLAY_TENANT_MAX (64 * 1024 * 1024)	/* bytes of all streams of a tenant */
#define HTTP_EVENT_ID_MAX 48				/* characters, with NUL */

/* Messages of at most this many bytes are copied into the output buffer. Longer ones are added by
 * reference; a reference costs a kibibyte of memory, which is not charged. */
#define HTTP_EVENT_COPIED 4096

/* The buffers of one session. */
struct http_replays {
	TAILQ_HEAD(http_replay_list, http_replay) list;	/* the oldest first */
	void *by_stream;		/* the same ones, in a tree (tsearch) */
	struct event_base *base;	/* borrowed, like the tenant */
	struct http_tenant *tenant;
	unsigned int seconds;		/* how long a stream is kept after its end; 0: not at all */
	uint64_t last;			/* the number of the last stream */
};

/* The buffer of one stream. Written by http/replay.c only. */
struct http_replay {
	TAILQ_ENTRY(http_replay) link;
	struct http_replays *all;
	struct http_exchange *exchange;	/* that adds to it; NULL: it has ended */
	void (*free_exchange)(void *x);
	uint64_t stream, latest;	/* numbers of the stream, and of its latest event */
	bool whole;			/* it can be resumed; if not, its exchange is treated like
					 * one without a buffer */
	TAILQ_HEAD(, kept_event) events;
	size_t bytes;			/* bytes that its tenant is charged with */
	struct event *late;		/* pending once it has ended */
};

void http_replays_init(struct http_replays *replays, struct event_base *base,
		       struct http_tenant *tenant, unsigned int seconds);

/* Frees all buffers, and the exchanges that have no connection. Nothing may refer to these
 * exchanges any more. */
void http_replays_clear(struct http_replays *replays);

/* Makes the buffer of the stream that the exchange begins. free_exchange: frees the exchange;
 * http_replays_clear calls it if the exchange has no connection. NULL: the stream cannot be kept.
 */
struct http_replay *http_replay_new(struct http_replays *replays, struct http_exchange *x,
				    void (*free_exchange)(void *x));

/* Finds the stream that has the event with this id, and the event's number. NULL: there is none, or
 * the events after it are not kept. */
struct http_replay *http_replay_find(const struct http_replays *replays, const char *event_id,
				     uint64_t *number_r);

/* Writes a message as an event to out, and keeps it. The message is taken. */
void http_replay_say(struct http_replay *replay, bool is_news, struct jsonout *message,
		     struct evbuffer *out);

/* Writes all events after the one with this number to out. */
void http_replay_write(const struct http_replay *replay, uint64_t number,
		       struct evbuffer *out);

/* The id of the event with this number. */
void http_replay_id(const struct http_replay *replay, uint64_t number,
		    char id_r[HTTP_EVENT_ID_MAX]);

/* To be called when the exchange of a buffer has ended: the buffer is freed after a while. */
void http_replay_end(struct http_replay *replay);

#endif
