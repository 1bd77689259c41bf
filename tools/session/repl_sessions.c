/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: handles, the turns in them, and the engine's sessions behind
 * them.
 * Reads:   handles from clients, which are compared and never parsed. */
#include "tools/session/repl_sessions_parts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/named.h"
#include "base/own.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "mcp/tool.h"
#include "policy/config.h"

#define MIB (1024 * 1024)
#define IDLE_BYTES 128		/* bytes of a clause about a session */
#define ENDED_MAX 4096		/* sessions that have ended and whose end is told */
#define ENDED_OF_ONE_MAX 64	/* the same, of one principal */

static void *sessions, *accounts;	/* by handle; by principal (base/named.h) */
static LIST_HEAD(, origin) origins = LIST_HEAD_INITIALIZER(origins);

/* A session that has ended, and why. It may have ended while no call waited for it. */
struct ended {
	TAILQ_ENTRY(ended) link, of_account;
	struct repl_account *account;
	char *handle, *text;
};

static TAILQ_HEAD(, ended) all_ended = TAILQ_HEAD_INITIALIZER(all_ended);	/* oldest first */
static size_t n_ended;

/* ---- accounts ---- */

/* The caller adds a session or an origin. */
static struct repl_account *
account_of(const struct tenant *tenant)
{
	struct repl_account *account = named_find(&accounts, tenant_principal(tenant));

	if (!account) {
		account = xcalloc(1, sizeof(*account));
		account->principal = xstrdup(tenant_principal(tenant));
		TAILQ_INIT(&account->sessions);
		TAILQ_INIT(&account->ended);
		named_add(&accounts, account);
	}
	return account;
}

/* To be called when something was taken from it. */
static void
release_account(struct repl_account *account)
{
	if (account->n_sessions == 0 && account->n_origins == 0 && account->n_ended == 0) {
		named_remove(&accounts, account);
		free(account->principal);
		free(account);
	}
}

/* ---- the end of a session ---- */

static void
origin_set_packages(struct origin *origin, const struct repl_packages *packages)
{
	char *environment = xstrdup(packages->environment);
	json_t *set = json_incref((json_t *)packages->set);

	free((char *)origin->packages.environment);
	json_decref((json_t *)origin->packages.set);
	origin->packages = (struct repl_packages){ environment, set };
}

/* The last head closes the engine's session. */
static void
leave_origin(struct repl_session *session)
{
	struct origin *origin = session->origin;

	session->origin = NULL;
	if (!origin)
		return;
	if (--origin->heads == 0) {
		repl_close(origin->repl);
		LIST_REMOVE(origin, link);
		origin->account->n_origins--;
		origin->account->memory_bytes -= origin->limits.memory_bytes;
		release_account(origin->account);
		free(origin->profile);
		free((char *)origin->packages.environment);
		json_decref((json_t *)origin->packages.set);
		free(origin);
	} else {
		repl_snapshot_give(origin, session->snapshot);
		for (size_t i = 0; i < session->n_checkpoints; i++)
			repl_snapshot_give(origin, session->checkpoint[i].snapshot);
		if (session->reserved)
			repl_snapshot_give(origin, (unsigned int)__builtin_ctz(session->reserved));
	}
}

/* The time until the session is closed, if it stays unused. */
static uint64_t
repl_sessions_left_ms(const struct repl_session *session)
{
	uint64_t end = session->born_ms + session->age_ms, now = clock_ms();

	if (session->used_ms + session->idle_ms < end)
		end = session->used_ms + session->idle_ms;
	return end > now ? end - now : 0;
}

const char *
repl_session_end_text(const struct tenant *tenant, const char *handle)
{
	const struct repl_account *account = named_find(&accounts, tenant_principal(tenant));
	const struct ended *ended;

	if (account)
		TAILQ_FOREACH(ended, &account->ended, of_account)
			if (strcmp(ended->handle, handle) == 0)
				return ended->text;
	return NULL;
}

static void
forget_ended(struct ended *ended)
{
	struct repl_account *account = ended->account;

	TAILQ_REMOVE(&all_ended, ended, link);
	TAILQ_REMOVE(&account->ended, ended, of_account);
	account->n_ended--;
	n_ended--;
	free(ended->handle);
	free(ended->text);
	free(ended);
	release_account(account);
}

/* The session is still one of its account. */
static void
note_ended(const struct repl_session *session, const char *text)
{
	struct repl_account *account = session->account;
	struct ended *ended = xcalloc(1, sizeof(*ended));

	*ended = (struct ended){ .account = account, .handle = xstrdup(session->handle),
				 .text = xstrdup(text) };
	TAILQ_INSERT_TAIL(&all_ended, ended, link);
	TAILQ_INSERT_TAIL(&account->ended, ended, of_account);
	n_ended++;
	if (++account->n_ended > ENDED_OF_ONE_MAX)
		forget_ended(TAILQ_FIRST(&account->ended));
	else if (n_ended > ENDED_MAX)
		forget_ended(TAILQ_FIRST(&all_ended));
}

/* Tells all waiting calls, and the holder of the turn unless the holder ends it. */
void
repl_session_stop(struct repl_session *session, const char *text)
{
	struct repl_turn *turn;

	note_ended(session, text);
	named_remove(&sessions, session);
	TAILQ_REMOVE(&session->account->sessions, session, link);
	session->account->n_sessions--;
	release_account(session->account);
	if ((turn = session->holder)) {
		turn->session = NULL;
		/* The session of the engine goes on if it has other heads. */
		if (session->origin)
			repl_forget(session->origin->repl, turn->arg);
		turn->on_gone(turn->arg, text);
	}
	while ((turn = TAILQ_FIRST(&session->waiting))) {
		TAILQ_REMOVE(&session->waiting, turn, link);
		turn->session = NULL;
		turn->on_gone(turn->arg, text);
	}
	leave_origin(session);
	event_free(session->next);
	event_free(session->expiry);
	free(session->note);
	free(session->handle);
	free(session);
}

static void
on_expiry(evutil_socket_t, short, void *arg)
{
	struct repl_session *session = arg;

	/* A turn sets the clock when it ends. */
	if (!session->holder && session->n_waiting == 0)
		repl_session_stop(session, "the session has expired");
}

void
repl_session_set_clock(struct repl_session *session)
{
	uint64_t left = repl_sessions_left_ms(session);
	const struct timeval wait = { .tv_sec = (time_t)(left / 1000),
				      .tv_usec = (suseconds_t)(left % 1000 * 1000) };

	evtimer_add(session->expiry, &wait);
}

/* The next session of the account that is a head of the origin, which is only compared. */
static struct repl_session *
next_head(const struct repl_account *account, const void *origin, const struct repl_session *after)
{
	struct repl_session *session = after ? TAILQ_NEXT(after, link)
					     : TAILQ_FIRST(&account->sessions);

	while (session && session->origin != origin)
		session = TAILQ_NEXT(session, link);
	return session;
}

struct repl_session *
repl_session_of(const struct origin *origin, const struct repl_session *after)
{
	return next_head(origin->account, origin, after);
}

void
repl_origin_ended(void *origin, const char *text)
{
	struct repl_account *account = ((struct origin *)origin)->account;
	struct repl_session *session;

	/* The last session to stop frees the origin, and with it perhaps the account. */
	account->n_origins++;
	/* Begins at the first session each time: the callback for its end may close another. */
	while ((session = next_head(account, origin, NULL)))
		repl_session_stop(session, text);
	account->n_origins--;
	release_account(account);
}

void
repl_origin_add(struct origin *origin)
{
	LIST_INSERT_HEAD(&origins, origin, link);
	origin->account = account_of(origin->tenant);
	origin->account->n_origins++;
	origin->account->memory_bytes += origin->limits.memory_bytes;
}

struct origin *
repl_origin_next(const struct origin *after)
{
	return after ? LIST_NEXT(after, link) : LIST_FIRST(&origins);
}

/* ---- turns ---- */

static void
on_next(evutil_socket_t, short, void *arg)
{
	struct repl_session *session = arg;
	struct repl_turn *turn = TAILQ_FIRST(&session->waiting);

	if (session->holder || !turn)
		return;
	if (clock_ms() >= session->born_ms + session->age_ms) {
		repl_session_stop(session, "the session has expired");
		return;
	}
	TAILQ_REMOVE(&session->waiting, turn, link);
	session->n_waiting--;
	session->holder = turn;
	session->held_ms = clock_ms();
	turn->on_turn(turn->arg);
}

static void
repl_sessions_wake(struct repl_session *session)
{
	static const struct timeval now;

	evtimer_add(session->next, &now);
}

int
repl_session_enter(struct repl_session *session, struct repl_turn *turn)
{
	/* If no call has the turn, the first waiting one is about to get it. */
	if (session->n_waiting >= REPL_WAITING_MAX + (size_t)!session->holder)
		return -EBUSY;
	turn->session = session;
	TAILQ_INSERT_TAIL(&session->waiting, turn, link);
	session->n_waiting++;
	repl_sessions_wake(session);
	return 0;
}

void
repl_session_watch(struct repl_session *session)
{
	session->watched |= session->holder != NULL;
}

bool
repl_session_was_watched(struct repl_session *session)
{
	bool was = session->watched;

	session->watched = false;
	return was;
}

size_t
repl_session_before(const struct repl_turn *turn, const char **job_r)
{
	const struct repl_session *session = turn->session;
	size_t n = session->holder ? 1 : 0;
	const struct repl_turn *one, *first;

	/* Between two holders the first that waits is the next one. */
	first = session->holder ? session->holder : TAILQ_FIRST(&session->waiting);
	*job_r = first && first != turn ? first->job : NULL;
	if (session->holder == turn)
		return 0;
	TAILQ_FOREACH(one, &session->waiting, link) {
		if (one == turn)
			break;
		n++;
	}
	return n;
}

void
repl_session_show(struct repl_turn *turn, const struct outcome *seen)
{
	struct repl_turn *one;

	turn->seen = seen;
	turn->looks = false;
	TAILQ_FOREACH(one, &turn->session->waiting, link)
		if (one->on_seen)
			one->on_seen(one->arg);
}

const struct outcome *
repl_session_seen(const struct repl_session *session, const char **job_r)
{
	*job_r = session->holder ? session->holder->job : NULL;
	return session->holder ? session->holder->seen : NULL;
}

bool
repl_session_will_show(const struct repl_session *session)
{
	return session->holder && session->holder->looks;
}

unsigned int
repl_session_held_s(const struct repl_session *session)
{
	return session->holder ? (unsigned int)((clock_ms() - session->held_ms) / 1000) : 0;
}

const char *
repl_session_other_job(const struct repl_session *session)
{
	const struct repl_session *one = NULL;

	while ((one = repl_session_of(session->origin, one)))
		if (one != session && one->holder && one->holder->job)
			return one->holder->job;
	return NULL;
}

void
repl_session_enter_to_close(struct repl_session *session, struct repl_turn *turn)
{
	struct repl_turn *holder = session->holder;

	turn->session = session;
	turn->closes = true;
	TAILQ_INSERT_HEAD(&session->waiting, turn, link);
	session->n_waiting++;
	repl_sessions_wake(session);
	if (holder && holder->on_hurry)
		holder->on_hurry(holder->arg);
}

bool
repl_session_is_closing(const struct repl_session *session)
{
	const struct repl_turn *next = TAILQ_FIRST(&session->waiting);

	return next && next->closes;
}

void
repl_session_leave(struct repl_turn *turn, bool used)
{
	struct repl_session *session = turn->session;

	if (!session)
		return;
	turn->session = NULL;
	if (session->holder == turn) {
		session->holder = NULL;
	} else {
		TAILQ_REMOVE(&session->waiting, turn, link);
		session->n_waiting--;
	}
	if (used)
		session->used_ms = clock_ms();
	if (session->n_waiting > 0)
		repl_sessions_wake(session);
	else if (!session->holder)
		repl_session_set_clock(session);
}

void
repl_session_move_turn(struct repl_turn *from, struct repl_turn *to)
{
	assert(from->session->holder == from);
	*to = (struct repl_turn){ .session = from->session, .on_turn = from->on_turn,
				  .on_gone = from->on_gone, .on_hurry = from->on_hurry,
				  .job = from->job, .arg = from->arg };
	to->session->holder = to;
	from->session = NULL;
}

void
repl_session_close(struct repl_turn *turn)
{
	struct repl_session *session = turn->session;

	assert(session && session->holder == turn);
	turn->session = NULL;
	session->holder = NULL;
	repl_session_stop(session, "the session was closed");
}

/* ---- new ones ---- */

/* The session that nobody has used for the longest time, for a message: "r-... was used longest ago";
 * "": there is none. */
static const char *
name_idle(const struct repl_account *account, char text_r[IDLE_BYTES])
{
	const struct repl_session *session, *idle = NULL;

	if (account)
		TAILQ_FOREACH(session, &account->sessions, link)
			if (!session->holder && (!idle || session->used_ms < idle->used_ms))
				idle = session;
	*text_r = '\0';
	if (idle)
		snprintf(text_r, IDLE_BYTES, " (%.64s was used longest ago)", idle->handle);
	return text_r;
}

/* May the tenant have so many more sessions, and sessions of the engine with limits of so many more
 * bytes together? memory_more: may be negative; 0: they get no more. */
static int
check_caps(const struct tool_host *host, size_t more, uint64_t memory_more, struct why *why_r)
{
	const struct repl_account *account = named_find(&accounts, tenant_principal(host->tenant));
	uint64_t total = host->config->repl.memory_total;
	uint64_t memory = memory_more + (account ? account->memory_bytes : 0);
	unsigned int max = host->config->repl.sessions_max;
	size_t n = account ? account->n_sessions : 0;
	char idle[IDLE_BYTES];

	if (more > 0 && n + more > max)
		return why_say(why_r, -ENOSPC, "session",
			       "there are %zu sessions of yours, and %u are allowed: close one%s, or "
			       "go on in it; check_environment lists them", n, max,
			       name_idle(account, idle));
	return memory_more == 0 || memory <= total ? 0
		: why_say(why_r, -ENOSPC, "memory_mb",
			  "with this one the memory limits of your sessions would add up to "
			  "%" PRIu64 " MiB, and %" PRIu64 " are allowed: close one%s, or ask "
			  "for less memory_mb", memory / MIB, total / MIB, name_idle(account, idle));
}

static int
open_origin(const struct tool_host *host, const char *profile, const struct limits *limits,
	    const struct repl_packages *packages, const struct repl_first *first,
	    struct origin **origin_r, struct why *why_r)
{
	const char *only = tenant_profile(host->tenant);
	const struct repl_options options = {
		.profile = profile,
		.limits = *limits,
		.memory_max = host->config->limits.cap.memory_bytes,
		.pids_max = host->config->limits.cap.pids,
		.sessions_max = host->config->repl.sessions_max,
		.environment = packages ? packages->environment : NULL,
		.alone = first->alone,
		.code = first->code,
		.code_len = first->code_len,
	};
	struct origin *origin = xcalloc(1, sizeof(*origin));
	const struct repl_watcher watcher = { .on_end = repl_origin_ended, .arg = origin };
	int r = repl_open(host->engine, host->tenant, &options, &watcher, &origin->repl,
			  why_r);

	if (r < 0) {
		free(origin);
		return r == -EDQUOT ? -ENOSPC : r;	/* the cap, not a quota */
	}
	origin->tenant = host->tenant;
	origin->limits = *limits;
	/* A bound tenant's default is its own, and its name is kept: the tenant may be bound to
	 * another one later. */
	if (!profile && *only)
		profile = only;
	origin->profile = profile ? xstrdup(profile) : NULL;
	origin->alone = first->alone;
	if (packages)
		origin_set_packages(origin, packages);
	repl_origin_add(origin);
	*origin_r = origin;
	return 0;
}

/* Makes the session the head of the origin that was just opened. */
static void
take_origin(struct repl_session *session, struct origin *origin)
{
	session->origin = origin;
	session->snapshot = 0;
	session->n_checkpoints = 0;
	origin->heads = 1;
	origin->snapshots = 1;
}

struct repl_session *
repl_session_make(struct tenant *tenant, struct event_base *base, const char *handle)
{
	struct repl_session *session = xcalloc(1, sizeof(*session));

	session->handle = xstrdup(handle);
	session->tenant = tenant;
	session->account = account_of(tenant);
	session->account->n_sessions++;
	TAILQ_INIT(&session->waiting);
	session->next = xalloc_check(evtimer_new(base, on_next, session));
	session->expiry = xalloc_check(evtimer_new(base, on_expiry, session));
	TAILQ_INSERT_TAIL(&session->account->sessions, session, link);
	named_add(&sessions, session);
	return session;
}

static struct repl_session *
repl_sessions_make(const struct tool_host *host, struct repl_turn *turn)
{
	char handle[HANDLE_MAX + 1];
	struct repl_session *session;

	handle_new('r', handle);
	session = repl_session_make(host->tenant, host->base, handle);
	session->age_ms = (uint64_t)host->config->repl.age_seconds * 1000;
	session->idle_ms = (uint64_t)host->config->repl.idle_seconds * 1000;
	session->born_ms = session->used_ms = clock_ms();
	session->holder = turn;
	turn->session = session;
	return session;
}

int
repl_session_new(const struct tool_host *host, const char *profile,
		 const struct limits *limits, const struct repl_packages *packages,
		 const struct repl_first *first, struct repl_turn *turn,
		 struct repl_session **session_r, struct why *why_r)
{
	struct origin *origin;
	int r = check_caps(host, 1, limits->memory_bytes, why_r);

	if (r == 0)
		r = open_origin(host, profile, limits, packages, first, &origin, why_r);
	if (r < 0)
		return r;
	*session_r = repl_sessions_make(host, turn);
	take_origin(*session_r, origin);
	return 0;
}

int
repl_session_branch(struct repl_session *session, const struct tool_host *host,
		    struct repl_turn *turn, struct repl_session **branch_r,
		    struct why *why_r)
{
	struct origin *origin = session->origin;
	struct repl_session *branch;
	int r = check_caps(host, 1, 0, why_r), snapshot;

	if (r < 0)
		return r;
	snapshot = repl_snapshot_take(origin);
	if (snapshot < 0)
		return why_say(why_r, snapshot, "branch", "a session and its branches have %d states "
			       "together, checkpoints included", REPL_SNAPSHOTS_MAX);
	branch = repl_sessions_make(host, turn);
	branch->origin = origin;
	branch->snapshot = (unsigned int)snapshot;
	branch->cells = session->cells;
	origin->heads++;
	*branch_r = branch;
	return 0;
}

int
repl_session_reset(struct repl_session *session, const struct tool_host *host,
		   const char *profile, const struct limits *limits,
		   const struct repl_packages *packages, const struct repl_first *first,
		   struct why *why_r)
{
	const struct limits new_limits = *limits;	/* they may belong to the origin, which
							 * is closed */
	own_mem char *environment = packages ? xstrdup(packages->environment) : NULL;
	const struct repl_packages new_packages = {
		environment, packages ? json_incref((json_t *)packages->set) : NULL,
	};
	own_mem char *new_profile = profile ? xstrdup(profile) : NULL;
	struct origin *origin = session->origin;
	bool ends = origin && origin->heads == 1;
	int r = check_caps(host, 0, limits->memory_bytes -
			   (ends ? origin->limits.memory_bytes : 0), why_r);

	if (r == 0) {
		/* First, so that it does not count any more. */
		leave_origin(session);
		session->n_checkpoints = 0;
		r = open_origin(host, new_profile, &new_limits,
				packages ? &new_packages : NULL, first, &origin, why_r);
		if (r == 0)
			take_origin(session, origin);
	}
	json_decref((json_t *)new_packages.set);
	return r;
}

int
repl_session_raise(struct repl_session *session, const struct tool_host *host,
		   uint64_t memory_bytes, struct why *why_r)
{
	struct origin *origin = session->origin;
	int r = check_caps(host, 0, memory_bytes - origin->limits.memory_bytes, why_r);

	if (r == 0)
		r = repl_raise(origin->repl, memory_bytes, why_r);
	if (r == 0) {
		origin->account->memory_bytes += memory_bytes - origin->limits.memory_bytes;
		origin->limits.memory_bytes = memory_bytes;
	}
	return r;
}

struct repl_session *
repl_session_find(const struct tenant *tenant, const char *handle)
{
	struct repl_session *session = named_find(&sessions, handle);

	return session && session->tenant == tenant ? session : NULL;
}

/* ---- properties of a session ---- */

unsigned int
repl_session_number_cell(struct repl_session *session, bool is_empty)
{
	return is_empty ? session->cells + 1 : ++session->cells;
}

bool
repl_session_is_alone(const struct repl_session *session)
{
	return session->origin && session->origin->alone;
}

const struct repl_packages *
repl_session_packages(const struct repl_session *session)
{
	return session->origin->packages.environment ? &session->origin->packages : NULL;
}

void
repl_session_set_packages(struct repl_session *session, const struct repl_packages *packages)
{
	origin_set_packages(session->origin, packages);
}

bool
repl_session_has_state(const struct repl_session *session)
{
	return repl_holds(session->origin->repl, session->snapshot);
}

void
repl_session_expires(const struct repl_session *session, char text_r[REPL_TIME_MAX])
{
	time_t end = time(NULL) + (time_t)(repl_sessions_left_ms(session) / 1000);
	struct tm parts;

	gmtime_r(&end, &parts);
	strftime(text_r, REPL_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

void
repl_session_set_note(struct repl_session *session, const char *text)
{
	free(session->note);
	session->note = text ? xstrdup(text) : NULL;
}

struct repl_session *
repl_session_next(const struct tenant *tenant, const struct repl_session *after)
{
	const struct repl_account *account = named_find(&accounts, tenant_principal(tenant));

	return after ? TAILQ_NEXT(after, link) : account ? TAILQ_FIRST(&account->sessions) : NULL;
}

void
repl_session_glance(const struct repl_session *session, struct repl_session_info *info_r)
{
	const struct origin *origin = session->origin;

	*info_r = (struct repl_session_info){
		.handle = session->handle,
		.profile = origin ? origin->profile : NULL,
		.cells = session->cells,
		.busy = session->holder || session->n_waiting > 0,
		.frozen = origin && repl_is_frozen(origin->repl),
		.runs_on = origin && repl_runs_on(origin->repl),
		.kept = origin && origin->kept,
		.memory_limit = origin ? origin->limits.memory_bytes : 0,
		.age_ms = clock_ms() - session->born_ms,
		.idle_ms = clock_ms() - session->used_ms,
	};
	repl_session_expires(session, info_r->expires);
}

void
repl_session_look(const struct repl_session *session, struct repl_session_info *info_r)
{
	struct repl_usage usage;

	repl_session_glance(session, info_r);
	repl_usage(session->origin->repl, &usage);
	info_r->memory_bytes = usage.memory_bytes;
	info_r->snapshot_bytes = usage.spare_bytes;
}

void
repl_sessions_close_all(void)
{
	while (sessions)	/* a node of a tree points to its object */
		repl_session_stop(*(struct repl_session **)sessions, "the service is ending");
}
