/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor, at a reload.   Owns: nothing. */
#include "supervisor/profiles.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/why.h"
#include "engine/engine.h"
#include "host/launcher.h"
#include "policy/config.h"

/* The pool has other structures for zygotes of single tenants. */
static bool
needs_restart(const struct config_profile *old, const struct config_profile *profile)
{
	return old && old->zygote_per_tenant != profile->zygote_per_tenant;
}

static int
profiles_take_one(struct config *running, const struct config *read,
		  const struct config_profile *profile, struct launcher *launcher,
		  struct engine *engine, struct why *why_r)
{
	const struct config_profile *old = config_find_profile(running, profile->name);
	const size_t place = old ? (size_t)(old - running->profile) : running->n_profiles;
	unsigned int learned;
	int r;

	if (needs_restart(old, profile))
		return 0;
	r = launcher_learn(launcher, profile->name, &learned, why_r);
	if (r < 0)
		return r;
	/* Both add them in the same order, unless one has failed here before. */
	r = learned == place ? config_take_profile(running, read, profile->name) : -ENOSPC;
	if (r < 0)
		return why_say(why_r, r, "", "there can be no more of them until the next restart");
	engine_take_profile(engine, learned);
	log_line(LOG_NOTICE, "profile-taken", "profile=%s", profile->name);
	return 0;
}

void
profiles_take(struct config *running, const struct config *read, struct launcher *launcher,
	      struct engine *engine, FILE *later)
{
	bool differs[CONFIG_PROFILES_MAX];
	const char *between = "";

	/* The first profile that is taken brings its interpreter with it, and others that share
	 * the interpreter look unchanged from then on. */
	for (size_t i = 0; i < read->n_profiles; i++)
		differs[i] = !config_same_profile(running, read, read->profile[i].name);
	for (size_t i = 0; i < read->n_profiles; i++) {
		const struct config_profile *profile = &read->profile[i];
		struct why why = { .text = "" };
		struct log_quoted quoted;

		if (!differs[i] ||
		    profiles_take_one(running, read, profile, launcher, engine, &why) == 0)
			continue;
		log_line(LOG_ERR, "profile-not-taken", "profile=%s text=%s", profile->name,
			 log_quote(&quoted, why.text, strlen(why.text)));
		fprintf(later, "%s[profile %s]: %s", between, profile->name, why.text);
		between = ", ";
	}
}
