/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of legacy revisions over HTTP. A session is a conversation of several POSTs. It belongs
 * to the tenant that has opened it; other tenants cannot use its id.
 */
#ifndef HTTP_SESSION_H
#define HTTP_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/id.h"
#include "http/replay.h"

struct gate;
struct http_sessions;
struct http_tenant;
struct loop;
struct mcp_conversation;

struct http_sessions_options {
	struct loop *loop;		/* borrowed */
	size_t most, most_each;		/* the most sessions, in total and of one tenant */
	struct gate *gate;		/* borrowed; NULL: no quotas */
	unsigned int idle_seconds;	/* an idle session ends after this time */
	unsigned int resume_seconds;	/* how long a stream is kept after its end; 0: not at all */
};

/* Written by http/session.c only. */
struct http_session {
	LIST_ENTRY(http_session) in_bucket;
	TAILQ_ENTRY(http_session) when_idle;	/* while it is idle */
	struct http_sessions *all;
	char id[ID_CHARACTERS + 1];
	struct http_tenant *tenant;
	struct mcp_conversation *conversation;
	struct http_replays replays;	/* the kept events of its streams */
	size_t users;
	uint64_t idle_since_ms;
};

struct http_sessions *http_sessions_new(const struct http_sessions_options *options);

/* Ends all; NULL is fine. */
void http_sessions_free(struct http_sessions *sessions);

size_t http_sessions_count(const struct http_sessions *sessions);

/* Opens a session, which owns the conversation and holds the tenant. 0; -EUSERS: too many sessions
 * in total; -EDQUOT: too many of the tenant; or another -errno. After an error the conversation
 * still belongs to the caller. */
int http_session_open(struct http_sessions *sessions, struct http_tenant *tenant,
		      struct mcp_conversation *conversation, struct http_session **session_r);

/* The tenant's session with this id. NULL: there is none. */
struct http_session *http_session_find(struct http_sessions *sessions, const char *id,
				       const struct http_tenant *tenant);

/* To be called when an exchange begins (join) and ends (leave) to use the session. A session in use
 * is not idle. */
void http_session_join(struct http_session *session);
void http_session_leave(struct http_session *session);

/* Ends the session and cancels its calls. No exchange may use it any more. why: a word for the
 * audit log.
 */
void http_session_close(struct http_session *session, const char *why);

#endif
