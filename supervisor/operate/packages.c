/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing; the keeper removes.
 * Reads:   manifests, which the service has made; requests of local users. */
#include "supervisor/operate/packages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/ready.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "policy/config.h"
#include "tools/packages/collect.h"
#include "tools/sets/owned.h"
#include "tools/sets/store.h"

struct sets {
	json_t *owners;			/* name of a set -> who has it */
	json_t *list;			/* the one that was used last comes first */
};

static void
note_owner(void *arg, const char *principal, const struct owned *set)
{
	const struct sets *sets = arg;
	json_t *owners = json_object_get(sets->owners, set->name);

	if (!owners)
		json_object_set_new(sets->owners, set->name, owners = json_array());
	json_array_append_new(owners, json_pack("{s:s?,s:I}", "tenant", principal, "used",
						(json_int_t)set->used.tv_sec));
}

static void
note_set(void *arg, const char *name, time_t used, uint64_t bytes)
{
	const struct sets *sets = arg;

	json_array_insert_new(sets->list, 0, json_pack(
		"{s:s,s:I,s:I,s:O?}", "set", name, "used", (json_int_t)used, "bytes",
		(json_int_t)bytes, "tenants", json_object_get(sets->owners, name)));
}

/* Those of one tenant alone are looked at: who asks is any user. */
static void
note_own(struct sets *sets, const char *store, const char *principal)
{
	own_fd int directory = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct owned own[OWNED_MAX];
	uint64_t bytes;
	time_t used;

	for (size_t i = owned_list(principal, own); i-- > 0;) {
		note_owner(sets, principal, &own[i]);
		if (collect_find(directory, own[i].name, &used, &bytes))
			note_set(sets, own[i].name, own[i].used.tv_sec, bytes);
	}
}

static json_t *
packages_find(const char *store, const char *principal)
{
	struct sets sets = { json_object(), json_array() };

	if (store && principal) {
		note_own(&sets, store, principal);
	} else if (store) {
		owned_each(note_owner, &sets);
		collect_each(store, note_set, &sets);
	}
	json_decref(sets.owners);
	return sets.list;
}

json_t *
packages_list(const char *store, const char *principal)
{
	json_t *list = packages_find(store, principal), *one;
	size_t i, total = json_array_size(list);

	while (json_array_size(list) > PACKAGES_LISTED)
		json_array_remove(list, json_array_size(list) - 1);
	json_array_foreach(list, i, one) {
		json_t *manifest = store_manifest(store, json_string_value(json_object_get(one, "set")));
		json_t *names = json_array();
		const json_t *package;
		size_t at;

		json_array_foreach(set_of_manifest(manifest), at, package)
			json_array_append_new(names, set_exactly(package));
		json_object_set_new(one, "packages", names);
		json_decref(manifest);
	}
	return json_pack("{s:b,s:o,s:I}", "ok", 1, "sets", list, "total", (json_int_t)total);
}

static void
look_for_set(void *arg, const char *, const struct owned *set)
{
	const char **name = arg;

	if (*name && strcmp(*name, set->name) == 0)
		*name = NULL;
}

/* The only set whose name begins so, borrowed from list; NULL with why_r. */
static const char *
only_one(const json_t *list, const char *word, struct why *why_r)
{
	const char *found = NULL;
	const json_t *one;
	size_t i, n = 0;

	json_array_foreach(list, i, one) {
		const char *name = json_string_value(json_object_get(one, "set"));

		if (!word || strncmp(name, word, strlen(word)) != 0)
			continue;
		found = name;
		n++;
	}
	if (n != 1)
		why_say(why_r, -ENOENT, "set", n ? "%zu sets have a name that begins so; more of it "
			"is needed" : "no set has a name that begins so", n);
	return n == 1 ? found : NULL;
}

json_t *
packages_remove(struct engine *engine, struct gate *gate, const char *by, bool is_operator,
		const json_t *request, struct why *why_r)
{
	const char *store = gate_common_config(gate)->packages.store;
	const char *tenant = json_string_value(json_object_get(request, "tenant"));
	const char *word = json_string_value(json_object_get(request, "set")), *name;
	const char *unowned;
	json_t *list, *answer = NULL;
	bool is_left;
	size_t n;

	if (!is_operator && tenant && strcmp(tenant, by) != 0) {
		why_say(why_r, -EPERM, "tenant", "you are not an operator ([admin] operators)");
		return NULL;
	}
	tenant = is_operator ? tenant : by;
	list = packages_find(store, tenant);
	name = only_one(list, word && *word ? word : NULL, why_r);
	if (name && audit_write(gate_audit(gate), AUDIT_PACKAGES_REMOVED, tenant, NULL,
				json_pack("{s:s,s:s}", "by", by, "environment", name)) < 0) {
		why_say(why_r, -EIO, "", "the audit log cannot be written, so nothing was removed");
	} else if (name) {
		n = owned_remove(store, tenant, name);
		ready_forget(engine, tenant, name);
		unowned = name;
		owned_each(look_for_set, &unowned);
		is_left = !unowned || !collect_one(engine, name);
		answer = json_pack("{s:b,s:s,s:I}", "ok", 1, "removed", name, "tenants", (json_int_t)n);
		if (is_operator)	/* whether others have it, nobody else learns */
			json_object_set_new(answer, "is_left", json_boolean(is_left));
	}
	json_decref(list);
	return answer;
}
