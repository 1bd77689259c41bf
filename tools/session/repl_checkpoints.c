/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the record of which sessions use which snapshots of an engine,
 * and the names of checkpoints.
 * Reads:   names from clients, which are compared and never parsed. */
#include "tools/session/repl_sessions_parts.h"

#include <errno.h>
#include <string.h>

/* ---- snapshots ---- */

int
repl_snapshot_take(struct origin *origin)
{
	for (unsigned int i = 0; i < REPL_SNAPSHOTS_MAX; i++)
		if (!(origin->snapshots & (1u << i))) {
			origin->snapshots |= 1u << i;
			return (int)i;
		}
	return -ENOSPC;
}

void
repl_snapshot_give(struct origin *origin, unsigned int snapshot)
{
	repl_drop(origin->repl, snapshot);
	origin->snapshots &= ~(1u << snapshot);
}

/* ---- checkpoints ---- */

static struct checkpoint *
find_checkpoint(struct repl_session *session, const char *name)
{
	size_t n = 0;

	/* Forgets the names of states that were lost. */
	for (size_t i = 0; i < session->n_checkpoints; i++)
		if (repl_holds(session->origin->repl, session->checkpoint[i].snapshot))
			session->checkpoint[n++] = session->checkpoint[i];
		else
			repl_snapshot_give(session->origin, session->checkpoint[i].snapshot);
	session->n_checkpoints = n;
	for (size_t i = 0; i < session->n_checkpoints; i++)
		if (strcmp(session->checkpoint[i].name, name) == 0)
			return &session->checkpoint[i];
	return NULL;
}

int
repl_session_checkpoint(struct repl_session *session, const char *name)
{
	const struct checkpoint *found = find_checkpoint(session, name);

	return found ? (int)found->snapshot : -ENOENT;
}

int
repl_session_reserve(struct repl_session *session, const char *name, struct why *why_r)
{
	const struct checkpoint *found = find_checkpoint(session, name);
	int snapshot = found ? (int)found->snapshot : repl_snapshot_take(session->origin);

	if (snapshot < 0)
		return why_say(why_r, snapshot, "checkpoint", "a session and its branches have %d "
			       "states together, checkpoints included; a checkpoint may take the "
			       "name of an older one", REPL_SNAPSHOTS_MAX);
	session->reserved = found ? 0 : 1u << snapshot;
	return snapshot;
}

void
repl_session_keep(struct repl_session *session, const char *name, unsigned int snapshot)
{
	struct checkpoint *made = find_checkpoint(session, name);

	session->reserved = 0;
	if (!made)
		made = &session->checkpoint[session->n_checkpoints++];
	*made = (struct checkpoint){ .snapshot = snapshot };
	memcpy(made->name, name, strnlen(name, REPL_NAME_MAX));
}

void
repl_session_unreserve(struct repl_session *session, unsigned int snapshot)
{
	session->reserved = 0;
	for (size_t i = 0; i < session->n_checkpoints; i++)
		if (session->checkpoint[i].snapshot == snapshot)
			return;
	repl_snapshot_give(session->origin, snapshot);
}

const char *
repl_session_checkpoint_name(const struct repl_session *session, size_t i)
{
	for (size_t k = 0; k < session->n_checkpoints; k++)
		if (repl_holds(session->origin->repl, session->checkpoint[k].snapshot) && i-- == 0)
			return session->checkpoint[k].name;
	return NULL;
}
