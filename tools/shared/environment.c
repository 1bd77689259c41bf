/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: the remembered environment of each profile.
 * Reads:   a worker's description of it; every value is checked once, before it is kept. */
#include "tools/shared/environment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "policy/rules.h"
#include "policy/version.h"
#include "proto/message.h"
#include "tools/shared/inside.h"
#include "tools/shared/look_environment.h"

#define EXTRAS_DEPTH_MAX 8	/* extras that require extras */
#define EXTRAS_LOOKS_MAX 2000	/* for one requirement, before it counts as missing */
#define PACKAGES_MAX 2000

struct remembered {
	const struct engine *engine;
	char profile[65];
	uint64_t until_ms;
	uint64_t generation;	/* of the profile, when it was asked for */
	json_t *environment;	/* NULL: a free slot */
};

static struct remembered remembered[CONFIG_PROFILES_MAX];
static char named[PACKAGES_TEXT_MAX + 1];	/* environment_name's */
static char python[32] = PYTHON_VERSION;

struct environment_ask {
	struct inside *inside;
	const struct engine *engine;
	char profile[65];
	uint64_t generation;
	environment_known *known;
	void *arg;
};

/* ---- remembered environments ---- */

static struct remembered *
environment_find(const struct engine *engine, const char *profile)
{
	for (size_t i = 0; i < CONFIG_PROFILES_MAX; i++)
		if (remembered[i].environment && remembered[i].engine == engine &&
		    strcmp(remembered[i].profile, profile) == 0)
			return &remembered[i];
	return NULL;
}

/* A process has one engine, and an engine has no more profiles than there are slots. */
static void
environment_remember(const struct environment_ask *ask, const json_t *environment)
{
	struct remembered *place = environment_find(ask->engine, ask->profile);

	for (size_t i = 0; !place && i < CONFIG_PROFILES_MAX; i++)
		if (!remembered[i].environment || remembered[i].engine != ask->engine)
			place = &remembered[i];
	if (!place)
		return;
	json_decref(place->environment);
	place->engine = ask->engine;
	place->until_ms = clock_ms() + ENVIRONMENT_AGE_MS;
	place->generation = ask->generation;
	place->environment = json_incref((json_t *)environment);
	snprintf(place->profile, sizeof(place->profile), "%s", ask->profile);
}

void
environment_forget(void)
{
	for (size_t i = 0; i < CONFIG_PROFILES_MAX; i++) {
		json_decref(remembered[i].environment);
		remembered[i].environment = NULL;
	}
	named[0] = '\0';
}

bool
environment_name(const char *modules, const char *platform)
{
	const char *version = strchr(platform, '-');
	bool changed = strcmp(named, modules) != 0;
	char was[sizeof(python)];

	memcpy(was, python, sizeof(was));
	snprintf(named, sizeof(named), "%s", modules);
	snprintf(python, sizeof(python), "%s", version ? version + 1 : PYTHON_VERSION);
	python[strcspn(python, "-")] = '\0';
	return changed || strcmp(was, python) != 0;
}

const char *
environment_version(void)
{
	return python;
}

/* A package lies in a folder of its name. Is it in one of the usual folders? */
static bool
is_usual(const char *name)
{
	static const char *const sites[] = {
		"/usr/local/lib/python" PYTHON_VERSION "/dist-packages",
		"/usr/local/lib/python" PYTHON_VERSION "/site-packages",
		"/usr/lib/python" PYTHON_VERSION "/site-packages",
		"/usr/lib64/python" PYTHON_VERSION "/site-packages",
		"/usr/lib/python3/dist-packages",
	};
	char path[128];
	bool found = false;

	for (size_t i = 0; !found && i < sizeof(sites) / sizeof(sites[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/__init__.py", sites[i], name);
		found = access(path, F_OK) == 0;
	}
	return found;
}

void
environment_guess(const struct config *config)
{
	/* As PACKAGES and PACKAGES_MAX in worker/bootstrap.py. */
	static const char *const known[] = {
		"numpy", "pandas", "scipy", "matplotlib", "sklearn", "statsmodels", "sympy",
		"seaborn", "plotly", "networkx", "polars", "torch", "PIL", "cv2", "requests",
		"httpx", "bs4", "lxml", "openpyxl", "docx", "pypdf", "yaml", "pydantic",
	};
	unsigned int left = config->profile[0].interpreter ? 0 : 12;
	size_t len = 0;

	named[0] = '\0';
	for (size_t i = 0; left > 0 && i < sizeof(known) / sizeof(known[0]); i++)
		if (is_usual(known[i])) {
			len += (size_t)snprintf(named + len, sizeof(named) - len, "%s%s",
						len > 0 ? ", " : "", known[i]);
			left--;
		}
}

char *
environment_names_text(const struct config *config)
{
	const char *profile = config->profile[0].name;
	bool only = config->n_profiles == 1;

	if (!*named)
		return xstrdup("");
	return xasprintf(" Installed%s%s: %s; check_environment lists all.",
			 only ? "" : " in the profile ", only ? "" : profile, named);
}

/* ---- asking ---- */

static bool
environment_is_plain(const json_t *text)
{
	return json_is_string(text) && strlen(json_string_value(text)) ==
					       json_string_length(text);
}

static bool
environment_is_package(const json_t *package)
{
	const json_t *extras = json_object_get(package, "extras"), *extra;
	size_t i;

	if (!environment_is_plain(json_object_get(package, "name")) ||
	    !environment_is_plain(json_object_get(package, "version")) || !json_is_array(extras))
		return false;
	json_array_foreach(extras, i, extra)
		if (!environment_is_plain(extra))
			return false;
	return true;
}

static bool
environment_is_environment(const json_t *environment)
{
	const json_t *markers = json_object_get(environment, "markers");
	const json_t *packages = json_object_get(environment, "packages");
	const char *key;
	json_t *value;

	if (!environment_is_plain(json_object_get(environment, "program")) ||
	    !json_is_object(markers) || !json_is_object(packages) ||
	    !json_object_get(markers, "python_full_version") ||
	    json_object_size(packages) > PACKAGES_MAX)
		return false;
	json_object_foreach((json_t *)markers, key, value)
		if (!environment_is_plain(value))
			return false;
	json_object_foreach((json_t *)packages, key, value)
		if (!environment_is_package(value))
			return false;
	return true;
}

static void
environment_answered(void *arg, const json_t *answer, const struct outcome *outcome)
{
	struct environment_ask ask = *(struct environment_ask *)arg;

	free(arg);
	if (answer && !environment_is_environment(answer))
		answer = NULL;
	if (answer)
		environment_remember(&ask, answer);
	ask.known(ask.arg, answer, outcome);
}

/* Refuses an unknown profile, and names the profiles that exist. */
static int
refuse_profile(const struct config *config, struct why *why_r)
{
	char names[sizeof(why_r->text) / 2];
	size_t len = 0;

	*names = '\0';
	for (size_t i = 0; i < config->n_profiles && len < sizeof(names); i++)
		if (policy_allows_profile(config, config->profile[i].name))
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						len ? ", " : "", config->profile[i].name);
	return why_say(why_r, -ENOENT, "profile", "there is no profile of that name; there are %s%s",
		       names, len >= sizeof(names) ? " ..." : "");
}

int
environment_profile(const struct tool_host *host, const char *name, const char **profile_r,
		    struct why *why_r)
{
	const char *only = tenant_profile(host->tenant);
	const struct config_profile *profile = &host->config->profile[0];

	if (*only && name && strcmp(name, only) != 0)
		return why_say(why_r, -EACCES, "profile",
			       "your scripts run in the profile %s alone", only);
	if (*only)
		name = only;
	if (name)
		profile = config_find_profile(host->config, name);
	if (!profile)
		return refuse_profile(host->config, why_r);
	if (!policy_allows_profile(host->config, profile->name))
		return why_say(why_r, -EACCES, "profile", "the profile %s is not among those "
			       "that policy lets you use", profile->name);
	*profile_r = profile->name;
	return 0;
}

static bool
has_same_interpreter(const struct config_profile *a, const struct config_profile *b)
{
	return a->interpreter && b->interpreter ? strcmp(a->interpreter, b->interpreter) == 0
						: a->interpreter == b->interpreter;
}

bool
environment_next_profile(const struct tool_host *host, size_t *at, const char **profile_r)
{
	const struct config *config = host->config;

	while (*at < config->n_profiles && ++*at < config->n_profiles) {
		const struct config_profile *profile = &config->profile[*at];
		struct why why;
		size_t i = 0;

		while (!has_same_interpreter(&config->profile[i], profile))
			i++;
		if (i == *at && environment_profile(host, profile->name, profile_r, &why) == 0)
			return true;
	}
	return false;
}

int
environment_get(const struct tool_host *host, const char *profile, environment_known *known,
		void *arg, json_t **environment_r, struct environment_ask **ask_r,
		struct why *why_r)
{
	const struct inside_probe probe = {
		.program = look_environment,
		.profile = profile,
	};
	const struct remembered *have = environment_find(host->engine, profile);
	const uint64_t generation = engine_generation(host->engine, profile);
	struct environment_ask *ask;
	int r;

	if (have && have->generation == generation && clock_ms() < have->until_ms) {
		*environment_r = json_incref(have->environment);
		return 1;
	}
	ask = xcalloc(1, sizeof(*ask));
	ask->engine = host->engine;
	ask->generation = generation;
	ask->known = known;
	ask->arg = arg;
	snprintf(ask->profile, sizeof(ask->profile), "%s", profile);
	r = inside_ask(host, &probe, environment_answered, ask, &ask->inside, why_r);
	if (r < 0)
		free(ask);
	else
		*ask_r = ask;
	return r;
}

void
environment_cancel(struct environment_ask *ask, enum cancel_reason reason)
{
	inside_cancel(ask->inside, reason);
	free(ask);
}

/* ---- using it ---- */

static bool
environment_may_use(const struct tool_host *host, const char *profile)
{
	const char *only = tenant_profile(host->tenant);

	return *only ? strcmp(only, profile) == 0
		     : policy_allows_profile(host->config, profile);
}

/* Finds the package of this name, or with exactly false one of a similar name. Keys of unusual form
 * are left out, because a reader sees the result. */
static const char *
package_like(const json_t *packages, const char *name, bool exactly)
{
	const json_t *package;
	const char *key;

	json_object_foreach((json_t *)packages, key, package)
		if (key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0' &&
		    strlen(key) <= 64 &&
		    (exactly ? strcmp(key, name) == 0 : packages_are_alike(name, key)))
			return key;
	return NULL;
}

const char *
environment_similar(const struct tool_host *host, const char *name, const char **profile_r)
{
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; i < CONFIG_PROFILES_MAX; i++) {
			const struct remembered *have = &remembered[i];
			const char *package = NULL;

			if (have->environment && have->engine == host->engine &&
			    environment_may_use(host, have->profile))
				package = package_like(json_object_get(have->environment,
								       "packages"),
						       name, exactly);
			*profile_r = have->profile;
			if (package)
				return package;
		}
	return NULL;
}

static const char *
marker_value(void *arg, const char *variable)
{
	return json_string_value(json_object_get(arg, variable));
}

static struct marker_environment
markers_of(const json_t *environment)
{
	return (struct marker_environment){ marker_value,
					    json_object_get(environment, "markers") };
}

const char *
environment_marker(const json_t *environment, const char *name)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(environment, "markers"), name));

	return text ? text : "";
}

const char *
environment_python(const json_t *environment)
{
	return marker_value(json_object_get(environment, "markers"), "python_full_version");
}

bool
environment_fits(const json_t *environment, const char *requires_python)
{
	bool contained;

	return specifiers_check(requires_python, strlen(requires_python),
				environment_python(environment), &contained) == 0 &&
	       contained;
}

/* The search for one requirement and those that its extras add. */
struct look {
	const json_t *environment;
	unsigned int depth, left;
};

static bool is_there(struct look *look, const struct requirement *requirement);

/* Does the environment have everything that a package requires for this extra? */
static bool
has_extra(struct look *look, const json_t *package, const char *extra)
{
	const struct marker_environment markers = markers_of(look->environment);
	const json_t *extras = json_object_get(package, "extras"), *text;
	bool all = true;
	size_t i;

	json_array_foreach(extras, i, text) {
		struct requirement needed;

		if (requirement_read(json_string_value(text), json_string_length(text),
				     &needed) < 0)
			continue;
		if (requirement_applies(&needed, &markers, extra))
			all = all && is_there(look, &needed);
		requirement_done(&needed);
	}
	return all;
}

static bool
has_extras(struct look *look, const json_t *package, const char *extras)
{
	bool all = look->depth < EXTRAS_DEPTH_MAX;

	look->depth++;
	while (*extras && all) {
		size_t len = strcspn(extras, ",");
		char *extra = xmemdup0(extras, len);

		all = has_extra(look, package, extra);
		free(extra);
		extras += len + (extras[len] == ',');
	}
	look->depth--;
	return all;
}

static bool
is_there(struct look *look, const struct requirement *requirement)
{
	const json_t *package = json_object_get(json_object_get(look->environment, "packages"),
						requirement->name);
	const char *version = json_string_value(json_object_get(package, "version"));
	bool contained;

	/* The origin is unknown, so a package from a URL cannot be told from others. */
	if (!package || requirement->url || look->left == 0)
		return false;
	look->left--;
	if (*requirement->specifiers &&
	    (specifiers_check(requirement->specifiers, strlen(requirement->specifiers),
			      version, &contained) < 0 || !contained))
		return false;
	return has_extras(look, package, requirement->extras);
}

bool
environment_satisfies(const json_t *environment, const struct requirement *requirement)
{
	const struct marker_environment markers = markers_of(environment);
	struct look look = { environment, 0, EXTRAS_LOOKS_MAX };

	return !requirement_applies(requirement, &markers, "") ||
	       is_there(&look, requirement);
}
