/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: zygotes, pool, scheduler and tenants, as one object that owns them.
 *
 * main.c makes one after privilege was dropped. Carriers get tenants from it, and tools start
 * executions in it (engine/execution.h).
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/options.h"
#include "engine/tenants.h"

struct engine;
struct keeper;
struct upstream;

/* Starts the zygotes; returns at once. 0 or -errno. */
int engine_new(const struct engine_options *options, struct engine **engine_r);

/* Kills and frees everything at once, sessions too: do not call repl_close afterwards. Executions
 * that still run get no outcome: call engine_shutdown first. NULL is fine. */
void engine_free(struct engine *engine);

/* Answers every execution OUTCOME_CANCELLED (shutdown), takes no new ones (OVERLOADED), ends
 * all workers and zygotes, then calls on_done from the loop. */
void engine_shutdown(struct engine *engine, void (*on_done)(void *arg), void *arg);

/* From now on engine_shutdown does not end sessions. They come to rest, so that they can be handed
 * over (engine/repl_keep.h). engine_free ends the sessions that did not come to rest in time. */
void engine_keep_sessions(struct engine *engine);

/* Calls on_ready from the loop once the default profile's zygote is ready, or has failed for
 * the first time (error: negative errno, text: which step); at most once. */
void engine_when_ready(struct engine *engine,
		       void (*on_ready)(void *arg, int error, const char *text), void *arg);

/* The limits that the kernel enforces on this machine, and one sentence about them for people.
 * text lives as long as the engine. */
struct engine_enforcement {
	bool cgroups, memory_controller, pids_controller, cpu_controller, landlock, own_uids;
	const char *text;
};
void engine_enforcement(const struct engine *engine, struct engine_enforcement *how_r);

/* The name of what enforces a limit. */
static inline const char *
engine_enforced_by(bool controller)
{
	return controller ? "cgroup" : "watchdog";
}

/* The names of well-known modules that scripts of the default profile can import, once it is ready
 * (engine/zygote.h). */
const char *engine_packages(const struct engine *engine);
/* The platform and the ending of extension modules of the same profile's Python (engine/zygote.h).
 * "": not known. */
const char *engine_platform(const struct engine *engine);
const char *engine_extension(const struct engine *engine);

/* The generation of the profile's zygote (engine/zygote.h). It grows when a new process takes the
 * old one's place. What was learned from workers of an earlier generation may not hold for later
 * ones. 0: there is no such profile. */
uint64_t engine_generation(const struct engine *engine, const char *profile);

/* To be called when processes may exist of which nobody knows, because their launcher was lost.
 * They are killed and reaped. */
void engine_adopt_strays(struct engine *engine);

/* To be called when files of credentials and secrets may have changed. */
void engine_renew_credentials(struct engine *engine);

/* To be called when the profile with this number has changed in the configuration, or was added as
 * the last one. Workers of a changed profile are made as before until its new zygote is ready. */
void engine_take_profile(struct engine *engine, unsigned int profile);

/* The client of other MCP servers; NULL: none is configured (engine/upstream.h). */
struct upstream *engine_upstream(const struct engine *engine);

/* The keeper of installed packages; NULL: no store is configured (engine/keeper.h). */
struct keeper *engine_keeper(const struct engine *engine);

/* Is this environment of the store used by an execution that runs or waits, or by a session? */
bool engine_uses(const struct engine *engine, const char *environment);

/* Counts for status lines and tests. */
struct engine_counts {
	unsigned int zygotes_ready, workers, warm, running, queued, tenants;
	uint64_t executions;
};
void engine_count(const struct engine *engine, struct engine_counts *counts_r);

#endif
