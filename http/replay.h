/* What a stream of events has said, kept for a while: a client that lost the stream asks for
 * what came after the last event that it has seen. The buffers belong to a session, which
 * belongs to a principal; the id of an event names one only to its own session.
 *
 * A buffer is bounded, and so are all of a tenant's. News (progress, log lines) make room for
 * the rest; a stream that does not fit without them is not kept, and cannot be resumed.
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

/* A message of so many bytes is copied to where it is sent from: what stands between two
 * references takes a kibibyte each time, whatever its length, and lengths are what is charged. */
#define HTTP_EVENT_COPIED 4096

/* Those of one session. */
struct http_replays {
	TAILQ_HEAD(http_replay_list, http_replay) list;	/* the oldest first */
	struct event_base *base;	/* borrowed, like the tenant */
	struct http_tenant *tenant;
	unsigned int seconds;		/* that one is kept after its end; 0: none is kept */
	uint64_t last;			/* number of a stream */
};

void http_replays_init(struct http_replays *replays, struct event_base *base,
		       struct http_tenant *tenant, unsigned int seconds);

/* Forgets all of them, and the exchanges that have no connection: nothing may use these. */
void http_replays_clear(struct http_replays *replays);

/* For the stream that the exchange begins; free_exchange is called for it when it has no connection
 * and http_replays_clear ends it. NULL: the stream cannot be kept. */
struct http_replay *http_replay_new(struct http_replays *replays, struct http_exchange *x,
				    void (*free_exchange)(void *x));

/* The one that an event id of this session belongs to, and the event's number; NULL: what
 * followed it is not kept. */
struct http_replay *http_replay_find(const struct http_replays *replays, const char *event_id,
				     uint64_t *number_r);

/* The exchange that goes on with it; NULL: it is over. */
struct http_exchange *http_replay_exchange(const struct http_replay *replay);

/* Can it be resumed? If not, its exchange is as any other. */
bool http_replay_is_whole(const struct http_replay *replay);

/* Writes a message as an event to out, and keeps it. The text is taken. */
void http_replay_say(struct http_replay *replay, bool is_news, struct jsonout *message,
		     struct evbuffer *out);

/* Writes again what came after the event of this number. */
void http_replay_write(const struct http_replay *replay, uint64_t number,
		       struct evbuffer *out);

/* The id of an event of this number; that of the latest one is http_replay_latest. */
void http_replay_id(const struct http_replay *replay, uint64_t number,
		    char id_r[HTTP_EVENT_ID_MAX]);
uint64_t http_replay_latest(const struct http_replay *replay);

/* Its exchange is done: it is forgotten after a while. */
void http_replay_end(struct http_replay *replay);

#endif
