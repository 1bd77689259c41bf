/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the tenants' sections, and the configurations made of them.
 * The configuration of one tenant has its own values only where sections change them. It borrows
 * all others from the configuration that was read, and holds that configuration. */
#include "policy/config_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "policy/keys.h"
#include "policy/rules.h"

struct config_tenant *
config_tenant_find(struct config *config, const char *name)
{
	struct config_origin *origin = config->origin;
	struct config_tenant *tenant;

	for (size_t i = 0; i < origin->n_tenants; i++)
		if (strcmp(origin->tenant[i]->name, name) == 0)
			return origin->tenant[i];
	if (origin->n_tenants == TENANTS_MAX)
		return NULL;
	tenant = xcalloc(1, sizeof(*tenant));
	tenant->name = xstrdup(name);
	origin->tenant = xrealloc(origin->tenant,
				  (origin->n_tenants + 1) * sizeof(struct config_tenant *));
	origin->tenant[origin->n_tenants++] = tenant;
	return tenant;
}

static void
config_tenant_free(struct config_tenant *tenant)
{
	for (size_t i = 0; i < tenant->n_settings; i++)
		free(tenant->setting[i].text);
	free(tenant->setting);
	free(tenant->name);
	free(tenant);
}

void
config_tenant_say(struct config_tenant *tenant, const struct config_setting *setting)
{
	struct config_setting copy = *setting;

	copy.text = xstrdup(setting->text);
	tenant->setting = xrealloc(tenant->setting,
				   (tenant->n_settings + 1) * sizeof(*tenant->setting));
	tenant->setting[tenant->n_settings++] = copy;
}

/* ---- making one for a tenant ---- */

static bool
has_preset(const struct config_tenant *tenant)
{
	int preset = key_find("policy", "preset");

	for (size_t i = 0; i < tenant->n_settings; i++)
		if ((int)tenant->setting[i].row == preset)
			return true;
	return false;
}

static int
tenants_apply(struct config *config, const struct config_setting *setting)
{
	const struct key *key = key_at(setting->row);
	struct config_origin *origin = config->origin;
	bool more = setting->more || (key->flags & KEY_ADDS);

	if (!origin->own[setting->row]) {
		if (key->flags & KEY_ADDS)
			key_own(key, config);
		else
			memset((char *)config + key->offset, 0, key_size(key));
		origin->own[setting->row] = true;
	}
	origin->said[setting->row] = setting->said;
	return key_set(key, config, setting->text, more, NULL);
}

struct config *
config_derive(const struct config *config, const struct config_tenant *const *from, size_t n)
{
	struct config *derived = xalloc_check(malloc(sizeof(*derived)));
	struct config_origin *origin = xcalloc(1, sizeof(*origin));
	int r = 0;

	assert(!config->origin->base);
	*derived = *config;
	derived->origin = origin;
	origin->holders = 1;
	origin->base = config_hold(config);
	memcpy(origin->said, config->origin->said, sizeof(origin->said));
	origin->from = xcalloc(n + 1, sizeof(struct config_tenant *));
	for (size_t i = 0; r == 0 && i < n; i++) {
		origin->from[origin->n_from++] = from[i];
		if (has_preset(from[i])) {
			/* A preset replaces the verdicts of less specific sections. */
			derived->policy.run_script = POLICY_UNSAID;
			derived->policy.run_repl = POLICY_UNSAID;
			derived->policy.install_package = POLICY_UNSAID;
			derived->policy.input = 0;
		}
		for (size_t k = 0; r == 0 && k < from[i]->n_settings; k++)
			r = tenants_apply(derived, &from[i]->setting[k]);
	}
	if (r == 0)
		return derived;
	config_free(derived);
	return NULL;
}

/* A higher rank is more specific. */
static int
rank_of(const char *name)
{
	return strncmp(name, "group:", 6) == 0 ? 0 : strncmp(name, "user:", 5) == 0 ? 1 : 2;
}

const struct config *
config_for(const struct config *config, const struct policy_subject *subject)
{
	const struct config_origin *origin = config->origin;
	const struct config_tenant **from =
		xcalloc(origin->n_tenants + 1, sizeof(struct config_tenant *));
	const struct config *result;
	size_t n = 0;

	for (int rank = 0; rank <= 2; rank++)
		for (size_t i = 0; i < origin->n_tenants; i++)
			if (rank_of(origin->tenant[i]->name) == rank &&
			    policy_is(subject, origin->tenant[i]->name))
				from[n++] = origin->tenant[i];
	result = n ? config_derive(config, from, n) : config_hold(config);
	free(from);
	return result;
}

/* ---- holding and freeing ---- */

const struct config *
config_hold(const struct config *config)
{
	config->origin->holders++;
	return config;
}

static void
free_values(struct config *config)
{
	const struct config_origin *origin = config->origin;
	struct config_section section;
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++) {
		if (origin->base && !origin->own[i])
			continue;
		if (!key_is_named(key))
			key_clear(key, config);
		for (size_t s = 0; config_sections(config, s, &section); s++)
			for (size_t k = 0; k < section.n &&
			     strcmp(key->section, section.section) == 0; k++)
				key_clear(key, section.first + k * section.size);
	}
}

static void
free_section(const char *section, void *values)
{
	const struct key *key;

	for (size_t i = 0; (key = key_at(i)); i++)
		if (strcmp(key->section, section) == 0)
			key_clear(key, values);
	free(values);
}

void
config_free(const struct config *held)
{
	struct config *config = (struct config *)held;
	struct config_origin *origin;
	const struct config *base;

	if (!config || --config->origin->holders > 0)
		return;
	origin = config->origin;
	base = origin->base;
	free_values(config);
	for (size_t i = 0; i < origin->n_tenants; i++)
		config_tenant_free(origin->tenant[i]);
	for (size_t i = 0; i < origin->n_files; i++)
		free(origin->file[i]);
	for (size_t i = 0; i < origin->n_retired; i++)
		free_section(origin->retired[i].section, origin->retired[i].values);
	free(origin->retired);
	free(origin->tenant);
	free(origin->file);
	free(origin->from);
	free(origin);
	free(config);
	config_free(base);
}
