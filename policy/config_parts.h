/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a configuration: the place of each setting, and the sections of tenants.
 */
#ifndef POLICY_CONFIG_PARTS_H
#define POLICY_CONFIG_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "policy/config.h"

#define KEYS_MAX 256		/* rows of keys.def */
#define TENANTS_MAX 4096	/* sections */

struct config_said {
	unsigned int file;	/* index into files */
	unsigned int line;	/* 0: a default, in no file */
};

/* One setting in a section of a tenant, SECTION.KEY = VALUE; or a line that continues its list. */
struct config_setting {
	size_t row;
	char *text;
	bool more;
	struct config_said said;
};

struct config_tenant {
	char *name;		/* "uid:1000" */
	struct config_setting *setting;
	size_t n_settings;
};

/* A section that config_take_profile has replaced. Copies by config_derive may still use it. */
struct config_retired {
	const char *section;
	void *values;		/* as config_section.first */
};

struct config_origin {
	unsigned int holders;
	struct config_retired *retired;
	size_t n_retired;
	struct config_said said[KEYS_MAX];
	/* Only of a configuration that was read. */
	char **file;
	size_t n_files;
	struct config_tenant **tenant;
	size_t n_tenants;
	/* Only of a configuration made by config_for. */
	const struct config *base;		/* what it was made from, held; NULL: it was read */
	bool own[KEYS_MAX];			/* the value belongs to this config, not to base */
	const struct config_tenant **from;	/* sections of base, in the order of their effect */
	size_t n_from;
};

/* All sections of one kind that has names, such as [profile NAME]: an array of structs with their
 * keys. Each struct begins with the name. */
struct config_section {
	const char *section;	/* the kind, "profile": the section of the keys in keys.def */
	char *first;		/* the first of n structs */
	size_t size, name_size, n;
	size_t *count;		/* n, where it is kept */
	size_t most;		/* of n */
	const char *things;	/* "profiles" */
	bool (*fits)(const char *name, size_t len);	/* is it a name of this kind? */
	const char *form;	/* what fits, in words */
};

/* Gets the kind with number i, from 0. False: there are no more kinds. */
bool config_sections(const struct config *config, size_t i, struct config_section *section_r);

/* The section of this tenant, which is made if it does not exist; NULL: there are too many. */
struct config_tenant *config_tenant_find(struct config *config, const char *name);

/* Adds a setting, whose value was checked, to a section. */
void config_tenant_say(struct config_tenant *tenant, const struct config_setting *setting);

/* Do the sections of one kind at a and b differ in their settings? */
bool config_section_differs(const char *section, const void *a, const void *b);

/* Makes a copy of config that is overridden by n sections, in their order. NULL: a list became too
 * long.
 */
struct config *config_derive(const struct config *config,
			     const struct config_tenant *const *from, size_t n);

#endif
