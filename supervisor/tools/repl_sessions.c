/* Runs in: the supervisor.   Owns: handles, what their names mean, and the engine's sessions
 * behind them.   Reads: handles and names of clients; they are compared, never taken apart. */
#include "supervisor/tools/repl_sessions.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "policy/config.h"
#include "supervisor/engine/engine.h"
#include "supervisor/engine/repl.h"
#include "supervisor/tools/tool.h"
#include "supervisor/xalloc.h"

#define MIB (1024 * 1024)

/* An engine's session, and which of its places are taken. */
struct origin {
	LIST_ENTRY(origin) link;
	struct repl *repl;
	struct tenant *tenant;		/* held by repl */
	struct limits limits;
	char *profile;			/* NULL: the default one */
	unsigned int heads;
	uint32_t places;		/* bit n: place n is somebody's */
};

struct checkpoint {
	char name[REPL_NAME_MAX + 1];
	unsigned int place;
};

struct repl_session {
	TAILQ_ENTRY(repl_session) link;
	struct origin *origin;		/* NULL: a reset failed, and it is about to be closed */
	struct tenant *tenant;
	char handle[HANDLE_MAX + 1];
	unsigned int place, cells;
	bool has_state;
	struct checkpoint checkpoint[REPL_PLACES_MAX];
	size_t n_checkpoints;
	uint64_t age_ms, idle_ms;	/* that it may have */
	uint64_t born_ms, used_ms;
	char *note;
	struct repl_turn *holder;	/* NULL: nobody has the turn */
	TAILQ_HEAD(, repl_turn) waiting;
	size_t n_waiting;
	struct event *next;		/* gives the turn to the next one */
	struct event *expiry;
};

static TAILQ_HEAD(session_list, repl_session) sessions = TAILQ_HEAD_INITIALIZER(sessions);
static LIST_HEAD(, origin) origins = LIST_HEAD_INITIALIZER(origins);

static uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- places ---- */

static int
take_place(struct origin *origin)
{
	for (unsigned int i = 0; i < REPL_PLACES_MAX; i++)
		if (!(origin->places & (1u << i))) {
			origin->places |= 1u << i;
			return (int)i;
		}
	return -ENOSPC;
}

static void
give_place(struct origin *origin, unsigned int place)
{
	repl_drop(origin->repl, place);
	origin->places &= ~(1u << place);
}

/* With the last head the engine's session goes. */
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
		free(origin->profile);
		free(origin);
	} else {
		give_place(origin, session->place);
		for (size_t i = 0; i < session->n_checkpoints; i++)
			give_place(origin, session->checkpoint[i].place);
	}
}

/* ---- the end of a session ---- */

/* How long it may still be there, if it is not used. */
static uint64_t
left_ms(const struct repl_session *session)
{
	uint64_t end = session->born_ms + session->age_ms, now = now_ms();

	if (session->used_ms + session->idle_ms < end)
		end = session->used_ms + session->idle_ms;
	return end > now ? end - now : 0;
}

static bool
is_too_old(const struct repl_session *session)
{
	return now_ms() >= session->born_ms + session->age_ms;
}

/* Tells everybody who waits, and whoever has the turn unless that is who ends it. */
static void
end_session(struct repl_session *session, const char *text)
{
	struct repl_turn *turn;

	TAILQ_REMOVE(&sessions, session, link);
	if ((turn = session->holder)) {
		turn->session = NULL;
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
	free(session);
}

static void
on_expiry(evutil_socket_t fd, short what, void *arg)
{
	struct repl_session *session = arg;

	(void)fd;
	(void)what;
	/* A turn sets the clock when it is left. */
	if (!session->holder && session->n_waiting == 0)
		end_session(session, "the session has expired");
}

static void
set_clock(struct repl_session *session)
{
	uint64_t left = left_ms(session);
	const struct timeval wait = { .tv_sec = (time_t)(left / 1000),
				      .tv_usec = (suseconds_t)(left % 1000 * 1000) };

	evtimer_add(session->expiry, &wait);
}

static struct repl_session *
head_of(const struct origin *origin)
{
	struct repl_session *session;

	TAILQ_FOREACH(session, &sessions, link)
		if (session->origin == origin)
			break;
	return session;
}

static void
on_origin_end(void *arg, const char *text)
{
	struct repl_session *session;

	/* From the first one each time: whoever hears of one's end may close another. */
	while ((session = head_of(arg)))
		end_session(session, text);
}

/* ---- turns ---- */

static void
on_next(evutil_socket_t fd, short what, void *arg)
{
	struct repl_session *session = arg;
	struct repl_turn *turn = TAILQ_FIRST(&session->waiting);

	(void)fd;
	(void)what;
	if (session->holder || !turn)
		return;
	if (is_too_old(session)) {
		end_session(session, "the session has expired");
		return;
	}
	TAILQ_REMOVE(&session->waiting, turn, link);
	session->n_waiting--;
	session->holder = turn;
	turn->on_turn(turn->arg);
}

static void
wake(struct repl_session *session)
{
	static const struct timeval now;

	evtimer_add(session->next, &now);
}

int
repl_session_enter(struct repl_session *session, struct repl_turn *turn)
{
	/* Where nobody has the turn, the first of them is about to. */
	if (session->n_waiting >= REPL_WAITING_MAX + (size_t)!session->holder)
		return -EBUSY;
	turn->session = session;
	TAILQ_INSERT_TAIL(&session->waiting, turn, link);
	session->n_waiting++;
	wake(session);
	return 0;
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
		session->used_ms = now_ms();
	if (session->n_waiting > 0)
		wake(session);
	else if (!session->holder)
		set_clock(session);
}

void
repl_session_move_turn(struct repl_turn *from, struct repl_turn *to)
{
	assert(from->session->holder == from);
	*to = (struct repl_turn){ .session = from->session, .on_turn = from->on_turn,
				  .on_gone = from->on_gone, .arg = from->arg };
	to->session->holder = to;
	from->session = NULL;
}

bool
repl_session_is_open(const struct repl_session *session)
{
	return session->origin != NULL;
}

void
repl_session_close(struct repl_turn *turn)
{
	struct repl_session *session = turn->session;

	assert(session && session->holder == turn);
	turn->session = NULL;
	session->holder = NULL;
	end_session(session, "the session was closed");
}

/* ---- new ones ---- */

/* except: one that is about to be reset; NULL: none. */
static int
check_caps(const struct tool_host *host, const struct limits *limits,
	   const struct repl_session *except, struct why *why_r)
{
	const struct config *config = host->config;
	uint64_t memory = limits ? limits->memory_bytes : 0;
	const struct repl_session *session;
	const struct origin *origin;
	size_t n = 1;

	TAILQ_FOREACH(session, &sessions, link)
		n += session->tenant == host->tenant && session != except;
	if (n > config->repl.sessions_max)
		return why_say(why_r, -ENOSPC, "session",
			       "there are %zu sessions of yours, and %u are allowed: close one, or "
			       "go on in it; check_environment lists them", n - 1,
			       config->repl.sessions_max);
	LIST_FOREACH(origin, &origins, link)
		if (origin->tenant == host->tenant &&
		    !(except && except->origin == origin && origin->heads == 1))
			memory += origin->limits.memory_bytes;
	if (limits && memory > config->repl.memory_total)
		return why_say(why_r, -ENOSPC, "memory_mb",
			       "with this one the memory limits of your sessions would add up to "
			       "%" PRIu64 " MiB, and %" PRIu64 " are allowed: close one, or ask "
			       "for less memory_mb", memory / MIB,
			       config->repl.memory_total / MIB);
	return 0;
}

static int
open_origin(const struct tool_host *host, const char *profile, const struct limits *limits,
	    struct origin **origin_r, struct why *why_r)
{
	const struct repl_options options = {
		.profile = profile,
		.limits = *limits,
		.sessions_max = host->config->repl.sessions_max,
	};
	struct origin *origin = xcalloc(1, sizeof(*origin));
	const struct repl_watcher watcher = { .on_end = on_origin_end, .arg = origin };
	int r = repl_open(host->engine, host->tenant, &options, &watcher, &origin->repl,
			  why_r);

	if (r < 0) {
		free(origin);
		return r == -EDQUOT ? -ENOSPC : r;	/* the cap, not a quota */
	}
	origin->tenant = host->tenant;
	origin->limits = *limits;
	origin->profile = profile ? xstrdup(profile) : NULL;
	LIST_INSERT_HEAD(&origins, origin, link);
	*origin_r = origin;
	return 0;
}

/* The head of what was just opened. */
static void
take_origin(struct repl_session *session, struct origin *origin)
{
	session->origin = origin;
	session->place = 0;
	session->has_state = true;
	session->n_checkpoints = 0;
	origin->heads = 1;
	origin->places = 1;
}

static struct repl_session *
make(const struct tool_host *host, struct repl_turn *turn)
{
	struct repl_session *session = xcalloc(1, sizeof(*session));

	session->tenant = host->tenant;
	handle_new('r', session->handle);
	session->age_ms = (uint64_t)host->config->repl.age_seconds * 1000;
	session->idle_ms = (uint64_t)host->config->repl.idle_seconds * 1000;
	session->born_ms = session->used_ms = now_ms();
	TAILQ_INIT(&session->waiting);
	session->next = xalloc_check(evtimer_new(host->base, on_next, session));
	session->expiry = xalloc_check(evtimer_new(host->base, on_expiry, session));
	session->holder = turn;
	turn->session = session;
	TAILQ_INSERT_TAIL(&sessions, session, link);
	return session;
}

int
repl_session_new(const struct tool_host *host, const char *profile,
		 const struct limits *limits, struct repl_turn *turn,
		 struct repl_session **session_r, struct why *why_r)
{
	struct origin *origin;
	int r = check_caps(host, limits, NULL, why_r);

	if (r == 0)
		r = open_origin(host, profile, limits, &origin, why_r);
	if (r < 0)
		return r;
	*session_r = make(host, turn);
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
	int r = check_caps(host, NULL, NULL, why_r), place;

	if (r < 0)
		return r;
	place = take_place(origin);
	if (place < 0)
		return why_say(why_r, place, "branch", "a session and its branches have %d states "
			       "together, checkpoints included", REPL_PLACES_MAX);
	branch = make(host, turn);
	branch->origin = origin;
	branch->place = (unsigned int)place;
	branch->cells = session->cells;
	origin->heads++;
	*branch_r = branch;
	return 0;
}

int
repl_session_reset(struct repl_session *session, const struct tool_host *host,
		   const char *profile, const struct limits *limits, struct why *why_r)
{
	const struct limits new_limits = *limits;	/* they may be the origin's, which goes */
	char *new_profile = profile ? xstrdup(profile) : NULL;
	struct origin *origin;
	int r = check_caps(host, limits, session, why_r);

	if (r == 0) {
		/* First, so that it does not count any more. */
		leave_origin(session);
		session->has_state = false;
		session->n_checkpoints = 0;
		r = open_origin(host, new_profile, &new_limits, &origin, why_r);
		if (r == 0)
			take_origin(session, origin);
	}
	free(new_profile);
	return r;
}

struct repl_session *
repl_session_find(const struct tenant *tenant, const char *handle)
{
	struct repl_session *session;

	TAILQ_FOREACH(session, &sessions, link)
		if (session->tenant == tenant && strcmp(session->handle, handle) == 0)
			break;
	return session;
}

/* ---- checkpoints ---- */

static struct checkpoint *
find_checkpoint(const struct repl_session *session, const char *name)
{
	for (size_t i = 0; i < session->n_checkpoints; i++)
		if (strcmp(session->checkpoint[i].name, name) == 0)
			return (struct checkpoint *)&session->checkpoint[i];
	return NULL;
}

int
repl_session_checkpoint(const struct repl_session *session, const char *name)
{
	const struct checkpoint *found = find_checkpoint(session, name);

	return found ? (int)found->place : -ENOENT;
}

int
repl_session_reserve(struct repl_session *session, const char *name, struct why *why_r)
{
	const struct checkpoint *found = find_checkpoint(session, name);
	int place = found ? (int)found->place : take_place(session->origin);

	if (place < 0)
		return why_say(why_r, place, "checkpoint", "a session and its branches have %d "
			       "states together, checkpoints included; a checkpoint may take the "
			       "name of an older one", REPL_PLACES_MAX);
	return place;
}

void
repl_session_keep(struct repl_session *session, const char *name, unsigned int place)
{
	struct checkpoint *made = find_checkpoint(session, name);

	if (!made)
		made = &session->checkpoint[session->n_checkpoints++];
	*made = (struct checkpoint){ .place = place };
	memcpy(made->name, name, strnlen(name, REPL_NAME_MAX));
}

void
repl_session_unreserve(struct repl_session *session, unsigned int place)
{
	for (size_t i = 0; i < session->n_checkpoints; i++)
		if (session->checkpoint[i].place == place)
			return;
	give_place(session->origin, place);
}

/* ---- what it is ---- */

unsigned int
repl_session_number_cell(struct repl_session *session)
{
	return ++session->cells;
}

struct repl *
repl_session_repl(const struct repl_session *session)
{
	return session->origin->repl;
}

unsigned int
repl_session_place(const struct repl_session *session)
{
	return session->place;
}

const char *
repl_session_handle(const struct repl_session *session)
{
	return session->handle;
}

const char *
repl_session_profile(const struct repl_session *session)
{
	return session->origin->profile;
}

const struct limits *
repl_session_limits(const struct repl_session *session)
{
	return &session->origin->limits;
}

const char *
repl_session_checkpoint_name(const struct repl_session *session, size_t i)
{
	return i < session->n_checkpoints ? session->checkpoint[i].name : NULL;
}

bool
repl_session_has_state(const struct repl_session *session)
{
	return session->has_state;
}

void
repl_session_set_state(struct repl_session *session, bool has_state)
{
	session->has_state = has_state;
}

void
repl_session_expires(const struct repl_session *session, char text_r[REPL_TIME_MAX])
{
	time_t end = time(NULL) + (time_t)(left_ms(session) / 1000);
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

const char *
repl_session_note(const struct repl_session *session)
{
	return session->note;
}

struct repl_session *
repl_session_next(const struct tenant *tenant, const struct repl_session *after)
{
	struct repl_session *session = after ? TAILQ_NEXT(after, link)
					     : TAILQ_FIRST(&sessions);

	while (session && session->tenant != tenant)
		session = TAILQ_NEXT(session, link);
	return session;
}

void
repl_session_look(const struct repl_session *session, struct repl_session_info *info_r)
{
	struct repl_usage usage;

	repl_usage(session->origin->repl, &usage);
	*info_r = (struct repl_session_info){
		.handle = session->handle,
		.profile = session->origin->profile,
		.cells = session->cells,
		.busy = session->holder || session->n_waiting > 0,
		.frozen = usage.frozen,
		.memory_bytes = usage.memory_bytes,
		.memory_limit = session->origin->limits.memory_bytes,
		.idle_ms = now_ms() - session->used_ms,
	};
	repl_session_expires(session, info_r->expires);
}

void
repl_sessions_close_all(void)
{
	while (!TAILQ_EMPTY(&sessions))
		end_session(TAILQ_FIRST(&sessions), "the service is ending");
}
