/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Reads:   values of a client, of any type. */
#include "tools/shared/tiers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "base/xalloc.h"
#include "policy/config.h"
#include "policy/imports.h"

const char *
tier_name(enum tier tier)
{
	static const char *const names[TIER_COUNT] = { "basic", "data_science", "network",
						       "filesystem" };

	return names[tier];
}

const struct config_list *
tier_modules(const struct config *config, enum tier tier)
{
	switch (tier) {
	case TIER_BASIC:
		return &config->tiers.basic;
	case TIER_DATA_SCIENCE:
		return &config->tiers.data_science;
	case TIER_NETWORK:
		return &config->tiers.network;
	case TIER_FILESYSTEM:
		return &config->tiers.filesystem;
	case TIER_COUNT:
		break;
	}
	xassert(false);
}

int
imports_check_asked(const json_t *value, struct why *why_r)
{
	const json_t *name;
	size_t i;

	if (!json_is_array(value) || json_array_size(value) > IMPORTS_ASKED_MAX)
		return why_say(why_r, -EINVAL, IMPORTS_ARGUMENT, IMPORTS_ARGUMENT " must be an "
			       "array of at most %d names of modules", IMPORTS_ASKED_MAX);
	json_array_foreach(value, i, name)
		if (!json_is_string(name) ||
		    !imports_is_name(json_string_value(name), json_string_length(name)))
			return why_say(why_r, -EINVAL, IMPORTS_ARGUMENT, IMPORTS_ARGUMENT
				       ": item %zu is not the name of a module", i);
	return 0;
}

void
imports_add_asked(struct import_list *list, const json_t *value)
{
	static const struct config_list nothing = { .n = 0 };
	const json_t *name;
	size_t i;

	imports_add(list, &nothing);
	json_array_foreach(value, i, name)
		imports_add_name(list, json_string_value(name));
}

int
tier_add_asked(const struct config *config, const json_t *name, struct import_list *list,
	       struct why *why_r)
{
	const char *text = json_string_value(name);
	enum tier tier = TIER_BASIC;

	while (text && tier < TIER_COUNT && strcmp(text, tier_name(tier)) != 0)
		tier++;
	if (!text || tier == TIER_COUNT || strlen(text) != json_string_length(name))
		return why_say(why_r, -EINVAL, "tier",
			       "tier must be basic, data_science, network or filesystem");
	imports_add(list, tier_modules(config, TIER_BASIC));
	if (tier != TIER_BASIC)
		imports_add(list, tier_modules(config, tier));
	return 0;
}
