/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers: groups of modules that scripts may import (policy/imports.h). The configuration lists the
 * modules of each tier; calls name a tier.
 */
#ifndef TOOLS_SHARED_TIERS_H
#define TOOLS_SHARED_TIERS_H

#include <jansson.h>

struct config;
struct config_list;
struct import_list;
struct why;

enum tier { TIER_BASIC, TIER_DATA_SCIENCE, TIER_NETWORK, TIER_FILESYSTEM, TIER_COUNT };

const char *tier_name(enum tier tier);
const struct config_list *tier_modules(const struct config *config, enum tier tier);

/* An argument that names modules. */
#define IMPORTS_ARGUMENT "allowed_imports"
#define IMPORTS_ASKED_MAX 512		/* in one call */

/* Checks a client's list. 0, or -EINVAL with why_r filled. */
int imports_check_asked(const json_t *value, struct why *why_r);

/* Adds the names of a list that imports_check_asked has accepted. They are borrowed. */
void imports_add_asked(struct import_list *list, const json_t *value);

/* Adds the modules of the tier basic and of the tier with this name. 0, or -EINVAL with why_r. */
int tier_add_asked(const struct config *config, const json_t *name, struct import_list *list,
		   struct why *why_r);

#endif
