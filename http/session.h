/* Sessions of legacy revisions over HTTP: what one POST says belongs to what others said.
 * Each is bound to the tenant that opened it; an id alone is worth nothing.
 */
#ifndef HTTP_SESSION_H
#define HTTP_SESSION_H

#include <stddef.h>
#include <sys/queue.h>

struct gate;
struct http_exchange;
struct http_session;
struct http_sessions;
struct http_tenant;
struct loop;
struct http_replays;
struct mcp_conversation;

struct http_sessions_options {
	struct loop *loop;		/* borrowed */
	size_t most, most_each;		/* in all; of one tenant */
	struct gate *gate;		/* borrowed; NULL: no quotas */
	unsigned int idle_seconds;	/* then a session is forgotten */
	unsigned int resume_seconds;	/* that a stream is kept after its end; 0: none is */
};

struct http_sessions *http_sessions_new(const struct http_sessions_options *options);

/* Ends all; NULL is fine. */
void http_sessions_free(struct http_sessions *sessions);

size_t http_sessions_count(const struct http_sessions *sessions);

/* Takes the conversation, and holds the tenant. -EUSERS or -EDQUOT: too many; -errno: no
 * randomness. Then the conversation is still the caller's. */
int http_session_open(struct http_sessions *sessions, struct http_tenant *tenant,
		      struct mcp_conversation *conversation, struct http_session **session_r);

/* NULL: there is none of this id, or it is another tenant's. */
struct http_session *http_session_find(struct http_sessions *sessions, const char *id,
				       const struct http_tenant *tenant);

const char *http_session_id(const struct http_session *session);
struct mcp_conversation *http_session_conversation(const struct http_session *session);

/* What its streams have said. */
struct http_replays *http_session_replays(struct http_session *session);

/* An exchange that uses it keeps it from being forgotten. */
void http_session_join(struct http_session *session);
void http_session_leave(struct http_session *session);

/* Ends it, and cancels its calls. No exchange may have joined any more. */
void http_session_close(struct http_session *session, const char *why);

#endif
