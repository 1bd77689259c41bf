/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are made ready for scripts and sessions with a set of packages. The import of a
 * set's modules is often the longest part of such a script, and the code of a set runs in a jail of
 * its tenant only. So, when a script with a set has ended and nobody waits, a warm worker of the
 * tenant is given the set, and imports the modules that the script has imported (worker/ready.py).
 * The next script of the same kind runs in it. For a session the first cell counts in place of the
 * script, and the process that imports the modules is the head of snapshot 0.
 *
 *   nothing ──ready_tend──> MAKING ──PREPARED──> READY ──ready_take──> the user's
 *      ^                      │                    │
 *      └──────────────────────┴── it is ended ─────┘
 *
 * A recipe says what a ready worker is made of. It belongs to one tenant, and fits only calls with
 * the same set, kind of workers, allowed modules and limits, without a network, whose script names
 * all modules of the recipe. A recipe whose modules do in an import what a script would notice
 * before its own import is not tried again for a while.
 *
 * A ready worker is a leased one, like that of a session, and this module is its user.
 */
#ifndef ENGINE_READY_H
#define ENGINE_READY_H

#include <stdbool.h>
#include <stdint.h>

struct config_list;
struct engine;
struct execution;
struct msg_states;
struct msg_str;
struct ready;
struct repl_needs;
struct tenant;
struct worker;

/* Counts since the start, and the workers that are ready now. */
struct ready_counts {
	unsigned int ready;
	uint64_t hits, misses;		/* scripts and sessions that a recipe fits: they have got a
					 * ready worker, or there was none */
	uint64_t refused;		/* workers that could not be made ready */
};

/* What is imported in advance for a tenant. */
struct ready_recipe {
	const struct config_list *modules;	/* borrowed, during the call */
	bool is_session;
	const char *state;		/* idle, waiting, making, ready or refused */
	uint64_t made;			/* how many workers were ready */
};

struct ready *ready_new(struct engine *engine);
void ready_free(struct ready *ready);	/* before the workers are freed. NULL is fine */

void ready_count(const struct engine *engine, struct ready_counts *counts_r);

/* Visits the recipes of a tenant: a few at most. The last used comes first. */
void ready_survey(const struct tenant *tenant,
		  void (*visit)(void *arg, const struct ready_recipe *recipe), void *arg);

/* To be called when a script or cell has reported its end: notes the modules that it has imported.
 * Of a session's cells only the first counts. */
void ready_note(struct execution *execution);

/* Takes the ready worker that fits the waiting execution. It belongs to the caller, who has to run
 * the execution in it, or to end it. NULL: there is none. */
struct worker *ready_take(const struct execution *execution);

/* As ready_take, for a session that begins, with its first cell's code; or counts a miss.
 * *states_r: what the worker's init has reported. */
struct worker *ready_take_session(const struct repl_needs *needs, const struct msg_str *code,
				  struct msg_states *states_r);

/* The execution runs in another worker: if a recipe fits it, this is counted as a miss. */
void ready_miss(const struct execution *execution);

/* To be called in quiet moments: begins to make a worker ready, one at a time. */
void ready_tend(struct engine *engine);

/* Called each second: ends what is unused, what was made by a zygote that has been replaced, and
 * what uses processor time. */
void ready_look_after(struct tenant *tenant);

/* A call waits for a worker: workers that are being made ready are ended. */
void ready_yield(struct engine *engine);

/* A call waits, and there may be no more workers: ends one that is ready. False: there is none. */
bool ready_make_room(struct engine *engine);

/* The tenant is about to be freed: ends its workers, and forgets its recipes. */
void ready_forget_of(struct tenant *tenant);

/* Ends workers and forgets recipes: of the tenant with this principal (NULL: of all), with a set
 * (NULL: any). To be called when policy has changed, and before a set is removed. */
void ready_forget(struct engine *engine, const char *principal, const char *environment);

#endif
