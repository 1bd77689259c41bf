/* SPDX-License-Identifier: Apache-2.0 */
/* Learned zygotes. A profile has a second zygote, which is started when scripts spend time on
 * imports of well-known modules of the host (policy/learnable.h), and imports these before it makes
 * workers. Scripts that name such a module get workers of it; all others keep the usual zygote.
 * Nothing waits for a learned zygote: without one, or when it fails, the usual one serves. It is
 * given up when no script has needed it for a while.
 *
 * A learned zygote is a struct pool_profile like any other (pool.h), with a kind of its own.
 */
#ifndef ENGINE_LEARNING_H
#define ENGINE_LEARNING_H

#include <stddef.h>
#include <stdint.h>

#include "policy/learnable.h"

struct engine;
struct tenant;

/* Of one profile. */
struct learning {
	uint64_t spent_us[LEARNABLE_MAX];	/* on imports; halved from time to time */
	uint64_t halved_ms;
	uint64_t used_ms;			/* when a script last named a learned module */
	uint64_t blocked_ms;			/* not started before this time: it has failed */
	uint64_t asked, asked_ms;		/* modules, and when the last was asked for */
	uint64_t kept;				/* modules in the file of learning_save */
	int64_t named_s[LEARNABLE_MAX];		/* when a script has last named them: time(2) */
	uint64_t hits, misses;			/* scripts that named learned modules only, or one
						 * that is not learned */
};

/* ---- what is worth it: no engine is needed ---- */

/* A script has named these modules, and spent import_us on imports. */
void learning_count(struct learning *l, uint64_t named, uint32_t import_us, uint64_t now_ms);

/* The modules that are worth learning now. */
uint64_t learning_worth(struct learning *l, uint64_t now_ms);

/* ---- in the engine ---- */

/* The kind of workers (pool.h) for a script or session of this profile. */
unsigned int learning_choose(struct tenant *tenant, unsigned int profile, const char *script,
			     size_t len, uint64_t *named_r);

/* To be called when the script has reported the time that its imports took. */
void learning_note(struct engine *engine, unsigned int profile, uint64_t named,
		   uint32_t import_us);

/* Starts and gives up learned zygotes. To be called in quiet moments, and each second. */
void learning_tend(struct engine *engine);

/* Over a restart: what the last service had learned, and scripts have named in the last days, is
 * worth learning from the start. The file has a line for each module: its profile, its name, and
 * when a script last named it. Other names than those of the configuration are ignored. */
void learning_load(struct engine *engine);
void learning_save(struct engine *engine);

/* The learned zygote could not be started. */
void learning_failed(struct engine *engine, unsigned int profile);

#endif
