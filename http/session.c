/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the sessions and their conversations. */
#include "http/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fair.h"
#include "base/hash.h"
#include "base/loop.h"
#include "base/xalloc.h"
#include "govern/gate.h"
#include "http/account.h"
#include "mcp/conversation.h"

#define BUCKETS 4096		/* a power of two */

struct http_sessions {
	struct http_sessions_options options;
	LIST_HEAD(, http_session) bucket[BUCKETS];
	TAILQ_HEAD(idle_list, http_session) idle;	/* the longest idle one first */
	size_t n;
	struct event *expiry;
};

static size_t
session_bucket_of(const char *id)
{
	/* Ids of sessions are random. Any other id matches no session, in any bucket. */
	return hash_text(HASH_BEGIN, id) % BUCKETS;
}

static void
arm_expiry(struct http_sessions *sessions)
{
	const struct http_session *first = TAILQ_FIRST(&sessions->idle);
	uint64_t now = clock_ms(), due;
	struct timeval wait;

	if (!first || evtimer_pending(sessions->expiry, NULL))
		return;
	due = first->idle_since_ms + sessions->options.idle_seconds * UINT64_C(1000);
	due = due > now ? due - now : 0;
	wait = (struct timeval){ (time_t)(due / 1000), (suseconds_t)(due % 1000 * 1000) };
	evtimer_add(sessions->expiry, &wait);
}

static void
begin_idle(struct http_session *session)
{
	session->idle_since_ms = clock_ms();
	TAILQ_INSERT_TAIL(&session->all->idle, session, when_idle);
	arm_expiry(session->all);
}

static void
session_on_expiry(evutil_socket_t, short, void *arg)
{
	struct http_sessions *sessions = arg;
	uint64_t now = clock_ms();
	struct http_session *session;

	while ((session = TAILQ_FIRST(&sessions->idle)) &&
	       now - session->idle_since_ms >= sessions->options.idle_seconds * UINT64_C(1000)) {
		if (mcp_conversation_in_flight(session->conversation) == 0) {
			http_session_close(session, "idle");
			continue;
		}
		/* The client has left; the session's calls continue up to their own limits. */
		TAILQ_REMOVE(&sessions->idle, session, when_idle);
		begin_idle(session);
	}
	arm_expiry(sessions);
}

struct http_sessions *
http_sessions_new(const struct http_sessions_options *options)
{
	struct http_sessions *sessions = xcalloc(1, sizeof(*sessions));

	sessions->options = *options;
	TAILQ_INIT(&sessions->idle);
	sessions->expiry = xalloc_check(evtimer_new(loop_base(options->loop), session_on_expiry,
						    sessions));
	return sessions;
}

void
http_sessions_free(struct http_sessions *sessions)
{
	if (!sessions)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (!LIST_EMPTY(&sessions->bucket[i]))
			http_session_close(LIST_FIRST(&sessions->bucket[i]), "shutdown");
	event_free(sessions->expiry);
	free(sessions);
}

size_t
http_sessions_count(const struct http_sessions *sessions)
{
	return sessions->n;
}

int
http_session_open(struct http_sessions *sessions, struct http_tenant *tenant,
		  struct mcp_conversation *conversation, struct http_session **session_r)
{
	struct http_session *session;
	int r = fair_take(sessions->options.most, sessions->n, tenant->sessions,
			  gate_sessions_max(sessions->options.gate, tenant->principal,
					    sessions->options.most_each));

	if (r < 0)
		return r;
	session = xcalloc(1, sizeof(*session));
	id_new(session->id);
	session->all = sessions;
	session->tenant = tenant;
	http_tenant_hold(tenant);
	session->conversation = conversation;
	http_replays_init(&session->replays, loop_base(sessions->options.loop), tenant,
			  sessions->options.resume_seconds);
	LIST_INSERT_HEAD(&sessions->bucket[session_bucket_of(session->id)], session, in_bucket);
	sessions->n++;
	tenant->sessions++;
	begin_idle(session);
	gate_session(sessions->options.gate, tenant->principal, "http", NULL);
	*session_r = session;
	return 0;
}

/* Takes the same time for a wrong id as for a right one. */
static bool
same_id(const char *a, const char *b)
{
	unsigned int differs = 0;

	for (size_t i = 0; i < ID_CHARACTERS; i++)
		differs |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return differs == 0;
}

struct http_session *
http_session_find(struct http_sessions *sessions, const char *id,
		  const struct http_tenant *tenant)
{
	struct http_session *session;

	if (strlen(id) != ID_CHARACTERS)
		return NULL;
	LIST_FOREACH(session, &sessions->bucket[session_bucket_of(id)], in_bucket)
		if (same_id(session->id, id))
			return session->tenant == tenant ? session : NULL;
	return NULL;
}

void
http_session_join(struct http_session *session)
{
	if (session->users++ == 0)
		TAILQ_REMOVE(&session->all->idle, session, when_idle);
}

void
http_session_leave(struct http_session *session)
{
	assert(session->users > 0);
	if (--session->users == 0)
		begin_idle(session);
}

void
http_session_close(struct http_session *session, const char *why)
{
	struct http_sessions *sessions = session->all;

	assert(session->users == 0);
	TAILQ_REMOVE(&sessions->idle, session, when_idle);
	LIST_REMOVE(session, in_bucket);
	sessions->n--;
	session->tenant->sessions--;
	gate_session(sessions->options.gate, session->tenant->principal, "http", why);
	mcp_conversation_free(session->conversation);
	http_replays_clear(&session->replays);
	http_tenant_let_go(session->tenant);
	free(session);
}
