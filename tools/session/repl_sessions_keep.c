/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at its start and its end.   Owns: nothing: what it makes belongs to
 * repl_sessions.c.
 * Reads:   a table that was checked as a whole; this file compares it with what exists. */
#include "tools/session/repl_sessions_keep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "policy/config.h"
#include "tools/session/repl_sessions_parts.h"
#include "tools/sets/store.h"

#define NOTE_MAX 1024	/* bytes, of KEPT_HANDLE */

/* ---- giving ---- */

static void
describe_handle(const struct repl_session *session, struct handover_handle *handle_r)
{
	*handle_r = (struct handover_handle){ .is = {
		.handle = msg_str(session->handle),
		.snapshot = session->snapshot,
		.cells = session->cells,
		.age_ms = session->age_ms,
		.idle_ms = session->idle_ms,
		.born_ms = session->born_ms,
		.used_ms = session->used_ms,
		.has_note = session->note && strlen(session->note) <= NOTE_MAX,
		.checkpoints = (uint32_t)session->n_checkpoints,
	} };
	if (handle_r->is.has_note)
		handle_r->is.note = msg_str(session->note);
	for (size_t i = 0; i < session->n_checkpoints; i++)
		handle_r->checkpoint[i] = (struct msg_kept_checkpoint){
			.name = msg_str(session->checkpoint[i].name),
			.snapshot = session->checkpoint[i].snapshot,
		};
}

static void
describe_limits(const struct origin *origin, struct msg_kept *kept)
{
	kept->wall_ms = origin->limits.wall_ms;
	kept->cpu_ms = origin->limits.cpu_ms;
	kept->pids = origin->limits.pids;
	kept->output_bytes = origin->limits.output_bytes;
	kept->output_total = origin->limits.output_total;
	kept->chosen = origin->profile != NULL;
	kept->alone = origin->alone;
	kept->taken = origin->snapshots;
	kept->handles = origin->heads;
}

static int
give_origin(const struct repl_giving *giving, struct origin *origin, struct why *why_r)
{
	struct handover_handle handle[REPL_SNAPSHOTS_MAX];
	struct handover_session given = { .handle = handle };
	struct repl_session *session = NULL;
	int fd[REPL_FDS], r;
	size_t n = 0;

	while ((session = repl_session_of(origin, session))) {
		if (session->holder || session->n_waiting > 0)
			return why_say(why_r, -EBUSY, NULL, "a call was going on in it");
		describe_handle(session, &handle[n++]);
	}
	r = repl_describe(origin->repl, &given.is, fd, why_r);
	if (r < 0)
		return r;
	describe_limits(origin, &given.is);
	r = giving->give(giving->arg, &given, fd);
	if (r < 0)
		return why_say(why_r, r, NULL, "it could not be handed over: %s", strerror(-r));
	repl_part(origin->repl);
	return 0;
}

void
repl_sessions_give(const struct repl_giving *giving)
{
	struct origin *origin = NULL;

	while ((origin = repl_origin_next(origin))) {
		struct repl_session *session = NULL;
		struct why why = { .field = "" };

		if (give_origin(giving, origin, &why) == 0)
			continue;
		while ((session = repl_session_of(origin, session)))
			giving->lose(giving->arg, tenant_principal(origin->tenant),
				     session->handle, why.text);
	}
}

/* ---- taking ---- */

static void
repl_sessions_keep_copy(char *to, const struct msg_str *text)
{
	memcpy(to, text->at, text->len);
	to[text->len] = '\0';
}

static void
make_handle(struct origin *origin, struct event_base *base,
	    const struct handover_handle *handle)
{
	char text[HANDLE_MAX + 1];
	struct repl_session *session;

	repl_sessions_keep_copy(text, &handle->is.handle);
	session = repl_session_make(origin->tenant, base, text);
	session->origin = origin;
	session->snapshot = handle->is.snapshot;
	session->cells = handle->is.cells;
	session->age_ms = handle->is.age_ms;
	session->idle_ms = handle->is.idle_ms;
	session->born_ms = handle->is.born_ms;
	session->used_ms = handle->is.used_ms;
	if (handle->is.has_note)
		session->note = xmemdup0(handle->is.note.at, handle->is.note.len);
	for (uint32_t i = 0; i < handle->is.checkpoints; i++) {
		struct checkpoint *made = &session->checkpoint[session->n_checkpoints++];

		repl_sessions_keep_copy(made->name, &handle->checkpoint[i].name);
		made->snapshot = handle->checkpoint[i].snapshot;
	}
	repl_session_set_clock(session);
}

static bool
is_of_the_past(const struct handover_session *session)
{
	uint64_t now = clock_ms();

	if (session->is.idle_since_ms > now)
		return false;
	for (uint32_t i = 0; i < session->is.handles; i++)
		if (session->handle[i].is.used_ms > now)
			return false;
	return true;
}

/* Reads from the store what the mounted environment holds; the caller releases packages_r->set.
 * 0, also without an environment, or -ENOENT. */
static int
find_packages(const struct config *config, const struct msg_kept *kept,
	      char name_r[ENVIRONMENT_NAME + 1], struct repl_packages *packages_r,
	      struct why *why_r)
{
	json_t *manifest;

	*packages_r = (struct repl_packages){ .environment = NULL };
	if (!kept->has_environment)
		return 0;
	repl_sessions_keep_copy(name_r, &kept->environment);
	manifest = config->packages.store ? store_manifest(config->packages.store, name_r) : NULL;
	if (!manifest)
		return why_say(why_r, -ENOENT, NULL, "its packages are not in the store any more");
	*packages_r = (struct repl_packages){ name_r, json_incref(set_of_manifest(manifest)) };
	json_decref(manifest);
	return 0;
}

int
repl_session_adopt(struct engine *engine, struct event_base *base,
		   const struct config *config, const struct handover_session *session,
		   const int fd[REPL_FDS], struct why *why_r)
{
	const struct msg_kept *kept = &session->is;
	struct origin *origin = xcalloc(1, sizeof(*origin));
	const struct repl_watcher watcher = { .on_end = repl_origin_ended, .arg = origin };
	char environment[ENVIRONMENT_NAME + 1];
	struct repl_packages packages = { .environment = NULL };
	int r = is_of_the_past(session) ? 0
		: why_say(why_r, -EINVAL, NULL, "its times are not of this clock");

	if (r == 0)
		r = find_packages(config, kept, environment, &packages, why_r);
	if (r == 0)
		r = repl_adopt(engine, kept, fd, &watcher, &origin->repl, why_r);
	if (r < 0) {
		json_decref((json_t *)packages.set);
		free(origin);
		return r;
	}
	origin->tenant = repl_tenant(origin->repl);
	origin->limits = (struct limits){
		.wall_ms = kept->wall_ms, .cpu_ms = kept->cpu_ms,
		.memory_bytes = kept->memory_bytes, .pids = kept->pids,
		.output_bytes = kept->output_bytes, .output_total = kept->output_total,
		.results = config->limits.standard.results,
	};
	origin->alone = kept->alone;
	if (kept->chosen)
		origin->profile = xmemdup0(kept->profile.at, kept->profile.len);
	origin->heads = kept->handles;
	origin->snapshots = kept->taken;
	origin->kept = true;
	repl_origin_add(origin);
	for (uint32_t i = 0; i < kept->handles; i++)
		make_handle(origin, base, &session->handle[i]);
	if (packages.environment)
		repl_session_set_packages(repl_session_of(origin, NULL), &packages);
	json_decref((json_t *)packages.set);
	return 0;
}
