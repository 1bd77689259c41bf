/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing for longer than an execution.
 * Reads:   names of modules, which a script chooses; manifests. A question costs some reads of the
 * store, and the number of questions is bounded, because a script can ask anything. */
#include "tools/packages/found.h"

#include <string.h>

#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/keeper.h"
#include "policy/config.h"
#include "tools/packages/collect.h"
#include "tools/packages/consent.h"
#include "tools/packages/install.h"
#include "tools/sets/owned.h"
#include "tools/sets/store.h"

#define MANIFESTS_MAX 8		/* that are read for one question */
#define PACKAGES_TOLD 100	/* of a set, in an answer */

void
found_offer(const struct tool_host *host, struct execution_request *request)
{
	const struct keeper *keeper = engine_keeper(host->engine);

	if (keeper && keeper_is_there(keeper) && install_is_configured(host->config, NULL) == 0 &&
	    owned_any(tenant_principal(host->tenant)))
		request->modules = MODULES_OF_RUN_MAX;
}

/* May this set, which has the module, be mounted? */
static bool
found_fits(const struct tool_host *host, const json_t *manifest, const char *platform,
	   const json_t *has)
{
	const char *made_for = json_string_value(json_object_get(manifest, "platform"));
	const json_t *set = set_of_manifest(manifest);

	return made_for && strcmp(made_for, platform) == 0 && set_keeps(set, has) &&
	       !json_equal(set, has) && consent_allows(host, set);
}

bool
found_has(const struct tool_host *host, const char *module)
{
	const char *store = host->config->packages.store;
	const char *extension = engine_extension(host->engine);
	struct owned owned[OWNED_MAX];
	size_t n = 0;

	if (install_is_configured(host->config, NULL) == 0 && *extension)
		n = owned_list(tenant_principal(host->tenant), owned);
	for (size_t i = 0; i < n; i++)
		if (store_has_module(store, owned[i].name, module, extension))
			return true;
	return false;
}

static void
found_put_first(struct owned *owned, size_t n, const char *name)
{
	for (size_t i = 1; name && i < n; i++)
		if (strcmp(owned[i].name, name) == 0) {
			struct owned first = owned[i];

			memmove(owned + 1, owned, i * sizeof(*owned));
			owned[0] = first;
			return;
		}
}

/* True: it is in found. */
static bool
found_choose(struct found *found, const struct tool_host *host,
	     const struct execution_module *module, const json_t *has)
{
	const char *store = host->config->packages.store;
	struct owned owned[OWNED_MAX];
	size_t n = owned_list(tenant_principal(host->tenant), owned), read = 0;
	bool chosen = false;

	found_put_first(owned, n, module->mounted);
	for (size_t i = 0; i < n && read < MANIFESTS_MAX && !chosen; i++) {
		json_t *manifest;

		if (!store_has_module(store, owned[i].name, module->name, module->extension))
			continue;
		read++;
		manifest = store_manifest(store, owned[i].name);
		chosen = manifest && found_fits(host, manifest, module->platform, has);
		if (chosen) {
			json_decref(found->set);
			found->set = json_incref(set_of_manifest(manifest));
			memcpy(found->name, owned[i].name, sizeof(found->name));
		}
		json_decref(manifest);
	}
	return chosen;
}

void
found_answer(struct found *found, const struct tool_host *host, struct execution *execution,
	     const struct execution_module *module, const json_t *has)
{
	const char *store = host->config->packages.store;

	if (!found_choose(found, host, module, has)) {
		execution_answer_module(execution, NULL);
		return;
	}
	collect_note_use(store, found->name);
	owned_note(store, tenant_principal(host->tenant), found->name);
	execution_answer_module(execution, found->name);
}

bool
found_would_be(const struct tool_host *host, const struct execution_module *module,
	       const char *environment)
{
	struct found found = { .set = NULL };
	bool would = found_choose(&found, host, module, NULL) &&
		     strcmp(found.name, environment) == 0;

	found_done(&found);
	return would;
}

void
found_done(struct found *found)
{
	json_decref(found->set);
	found->set = NULL;
}

json_t *
found_describe(const struct tool_host *host, const struct outcome *outcome)
{
	json_t *manifest, *modules, *packages;
	const json_t *package;
	size_t i;

	if (!outcome->environment)
		return NULL;
	manifest = store_manifest(host->config->packages.store, outcome->environment);
	modules = xalloc_check(json_array());
	packages = xalloc_check(json_array());
	for (i = 0; i < outcome->n_found_modules; i++)
		json_array_append_new(modules, json_string(outcome->found_module[i]));
	json_array_foreach(set_of_manifest(manifest), i, package)
		if (i < PACKAGES_TOLD)
			json_array_append_new(packages, set_exactly(package));
	json_decref(manifest);
	return xalloc_check(json_pack("{s:o,s:s,s:o}", "modules", modules, "set",
				      outcome->environment, "packages", packages));
}
