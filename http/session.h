/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of legacy revisions over HTTP, each a conversation of several POSTs. A session is bound
 * to the tenant that opened it; other tenants cannot use its id.
 */
#ifndef HTTP_SESSION_H
#define HTTP_SESSION_H

#include <stddef.h>
#include <sys/queue.h>

struct gate;
struct http_session;
struct http_sessions;
struct http_tenant;
struct loop;
struct http_replays;
struct mcp_conversation;

struct http_sessions_options {
	struct loop *loop;		/* borrowed */
	size_t most, most_each;		/* sessions in all; of one tenant */
	struct gate *gate;		/* borrowed; NULL: no quotas */
	unsigned int idle_seconds;	/* an idle session ends after this time */
	unsigned int resume_seconds;	/* how long a stream is kept after its end; 0: not at all */
};

struct http_sessions *http_sessions_new(const struct http_sessions_options *options);

/* Ends all; NULL is fine. */
void http_sessions_free(struct http_sessions *sessions);

size_t http_sessions_count(const struct http_sessions *sessions);

/* Opens a session, which owns the conversation and holds the tenant. -EUSERS or -EDQUOT: too many;
 * else -errno. After an error the conversation is still the caller's. */
int http_session_open(struct http_sessions *sessions, struct http_tenant *tenant,
		      struct mcp_conversation *conversation, struct http_session **session_r);

/* NULL: the tenant has no session of this id. */
struct http_session *http_session_find(struct http_sessions *sessions, const char *id,
				       const struct http_tenant *tenant);

const char *http_session_id(const struct http_session *session);
struct mcp_conversation *http_session_conversation(const struct http_session *session);

/* The kept events of its streams. */
struct http_replays *http_session_replays(struct http_session *session);

/* An exchange begins (join) or stops (leave) using it. A session in use does not end for being
 * idle. */
void http_session_join(struct http_session *session);
void http_session_leave(struct http_session *session);

/* Ends it and cancels its calls. No exchange may use it any more. */
void http_session_close(struct http_session *session, const char *why);

#endif
