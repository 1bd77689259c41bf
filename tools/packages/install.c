/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: installations from the request to the answer.
 * Reads:   answers of the resolver's worker, checked in set.c.
 *
 * A worker resolves: it downloads packages, and reports them. Policy decides about exactly these,
 * and exactly these become a set (install_make.c), unless that set exists already. */
#include "tools/packages/install_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/keeper.h"
#include "govern/gate.h"
#include "policy/chain.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "policy/rules.h"
#include "policy/version.h"
#include "tools/packages/collect.h"
#include "tools/packages/consent.h"
#include "tools/packages/program.h"
#include "tools/packages/resolve_packages.h"
#include "tools/sets/owned.h"
#include "tools/sets/store.h"
#include "tools/shared/environment.h"

#define NO_PIP "this Python has no pip: install python3-pip, or for a Python of its own its pip"

#define LINK_MAX 8192		/* bytes of the URL of a file */

static const char *const status_names[] = {
	[INSTALL_OK] = "ok",
	[INSTALL_APPROVAL_PENDING] = "approval_pending",
	[INSTALL_DENIED] = "denied",
	[INSTALL_ERROR] = "error",
};

const char *
install_status_name(enum install_status status)
{
	return status_names[status];
}

int
install_is_configured(const struct config *config, struct why *why_r)
{
	if (config->packages.index && config->packages.store)
		return 0;
	return why_say(why_r, -ENOSYS, "packages", "packages cannot be installed here: no %s "
		       "of packages is configured",
		       config->packages.index ? "store" : "index");
}

/* ---- the end ---- */

static void
free_install(struct install *install)
{
	event_free(install->begin);
	install_build_done(install);
	json_decref(install->requirements);
	json_decref(install->has);
	json_decref(install->indexes);
	json_decref(install->urls);
	json_decref(install->links);
	json_decref(install->set);
	json_decref(install->advisories);
	consent_free(install->consent);
	free(install->reason);
	free(install->platform);
	free(install->python);
	free(install->words);
	free(install->take_text);
	free(install);
}

static void
stop_all(struct install *install, enum cancel_reason reason)
{
	if (install->ask)
		environment_cancel(install->ask, reason);
	if (install->program)
		program_cancel(install->program, reason);
	if (install->taking)
		keeper_forget(install->taking);
	if (install->compiler >= 0)
		close(install->compiler);
	install->ask = NULL;
	install->program = NULL;
	install->taking = NULL;
	install->compiler = -1;
}

void
install_finish(struct install *install, const struct install_result *result)
{
	stop_all(install, CANCEL_BY_CLIENT);
	install->done(install->arg, result);
	free_install(install);
}

void
install_fail(struct install *install, const char *format, ...)
{
	struct install_result result = { .status = INSTALL_ERROR,
					 .packages = install->set };
	char message[INSTALL_MESSAGE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	result.message = message;
	install_finish(install, &result);
}

/* If the worker ended abnormally, such as at a limit, the outcome says more than the installer's
 * words, and comes first. */
void
install_fail_of_outcome(struct install *install, const struct outcome *outcome,
			const char *what, const char *words)
{
	const char *said = strstr(words, "No module named 'pip") ? NO_PIP
			   : *words ? words : outcome->status != OUTCOME_OK && outcome->message
						    ? outcome->message
						    : "the installer's answer is none";
	struct install_result result = { .status = INSTALL_ERROR,
					 .packages = install->set,
					 .trouble = outcome };
	char message[INSTALL_MESSAGE_MAX];

	if (outcome->status == OUTCOME_ERROR || outcome->status == OUTCOME_OK) {
		result.trouble = NULL;
		snprintf(message, sizeof(message), "%s: %s", what, said);
	} else {
		snprintf(message, sizeof(message), "%s: %s%s%s", what,
			 outcome->message ? outcome->message : "", *words ? "; " : "", words);
	}
	result.message = message;
	install_finish(install, &result);
}

void
install_record(const struct install *install, enum audit_event event, const char *why)
{
	install_record_more(install, event,
			    json_pack("{s:s,s:O,s:O*,s:s*}", "environment", install->name,
				      "packages", install->set, "advisories", install->advisories,
				      "why", why));
}

void
install_record_more(const struct install *install, enum audit_event event, json_t *more)
{
	(void)audit_write(gate_audit(install->host.gate), event,
			  tenant_principal(install->host.tenant), NULL, xalloc_check(more));
}

/* Lists the names that are easily mistaken for well-known ones. */
static void
warn_look_alikes(const json_t *set, char *text, size_t size)
{
	const json_t *package;
	size_t i, used = 0;

	*text = '\0';
	json_array_foreach(set, i, package) {
		const char *name = json_string_value(json_object_get(package, "name"));
		const char *known = packages_look_alike(name);

		if (known && used < size)
			used += (size_t)snprintf(text + used, size - used,
						 "; warning: %s is not the well-known %s", name,
						 known);
	}
}

void
install_succeed(struct install *install, bool cached)
{
	const struct config *config = install->host.config;
	size_t n = json_array_size(install->set);
	struct install_result result = {
		.status = INSTALL_OK,
		.packages = install->set,
		.advisories = install->advisories,
		.environment = install->name,
	};
	char message[1000];
	size_t used;

	used = (size_t)snprintf(message, sizeof(message),
				cached ? "%zu package%s, already installed"
				       : "installed %zu package%s", n, n == 1 ? "" : "s");
	warn_look_alikes(install->set, message + used, sizeof(message) - used);
	result.message = message;
	if (!cached) {
		install_record(install, AUDIT_PACKAGE_INSTALLED, NULL);
		store_remember(config->packages.store, install->request, install->name);
	}
	collect_note_use(config->packages.store, install->name);
	owned_note(config->packages.store, tenant_principal(install->host.tenant), install->name);
	collect(install->host.engine, config, install->name, cached);
	install_finish(install, &result);
}

/* ---- resolving ---- */

/* The argument of a program, beside its sources and the built wheels. more is released. */
static char *
argument_of(const struct install *install, json_t *more)
{
	char *text;

	xalloc_check(more);
	json_object_set(more, "indexes", install->indexes);
	json_object_set_new(more, "seconds", json_integer(INSTALL_INDEX_SECONDS));
	json_object_set_new(more, "built", install_built(install));
	text = json_dumps(more, JSON_COMPACT);
	json_decref(more);
	return xalloc_check(text);
}

static bool
is_link(const json_t *url)
{
	const char *text = json_string_value(url);

	if (!text || json_string_length(url) > LINK_MAX ||
	    (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0))
		return false;
	for (size_t i = 0; i < json_string_length(url); i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

/* The URLs of the wheels, by name. Only the worker that fetches them uses them. NULL: the answer
 * has none. */
static json_t *
links_of(const struct install *install, const json_t *packages)
{
	json_t *links = xalloc_check(json_object()), *url;
	const json_t *package;
	size_t i;

	json_array_foreach(packages, i, package) {
		url = json_object_get(package, "url");
		if (is_link(url)) {
			json_object_set(links, json_string_value(json_object_get(package, "name")),
					url);
		} else if (!install_was_built(install, package)) {
			json_decref(links);
			return NULL;
		}
	}
	return links;
}

/* Reads the set and the URLs of its wheels. False: they are missing or not valid. */
static bool
install_read_answer(struct install *install, const json_t *answer)
{
	const json_t *packages = json_object_get(answer, "packages");
	json_t *origins = xalloc_check(json_copy(install->indexes));

	json_array_extend(origins, install->urls);
	install->set = set_read(packages, origins);
	json_decref(origins);
	if (install->set && install_knows_built(install))
		install->links = links_of(install, packages);
	return install->links != NULL;
}

static void
on_resolved(void *arg, const json_t *answer, const char *words,
	    const struct outcome *outcome)
{
	struct install *install = arg;

	install->program = NULL;
	if (json_object_get(answer, "source")) {
		install_build(install, json_object_get(answer, "source"), outcome);
		return;
	}
	if (!answer || !install_read_answer(install, answer)) {
		install_fail_of_outcome(install, outcome, "the packages could not be resolved",
					words);
		return;
	}
	set_name(install->platform, install->set, install->name);
	install_decide(install);
}

void
install_resolve(struct install *install)
{
	const struct config *config = install->host.config;
	bool build = install_may_build(install);
	struct program_request request = { .text = resolve_packages,
					   .profile = install->profile };
	struct keeper *keeper = engine_keeper(install->host.engine);
	struct why why = { .field = "" };
	int channel = -1, r;

	if (!keeper || !keeper_is_there(keeper)) {
		install_fail(install, "packages cannot be installed now: %s",
		     keeper ? keeper_trouble(keeper) : "there is no store");
		return;
	}
	r = build ? install_build_channel(install, &channel) : 0;
	if (r < 0) {
		install_fail(install, "packages cannot be installed now: %s", strerror(-r));
		return;
	}
	request.channel = build ? &channel : NULL;
	request.argument = argument_of(install, json_pack("{s:O,s:{},s:O,s:b,s:b,s:b,s:I}",
		"requirements", install->requirements, "ties", "urls", install->urls, "require_hashes",
		(int)config->packages.require_hashes, "build", (int)build, "fills",
		(int)install->fills, "max_bytes",
		(json_int_t)config->packages.max_bytes));
	r = program_start(&install->host, &request, on_resolved, install, &install->program,
			  &why);
	free(request.argument);
	if (r < 0)
		install_fail(install, "%s", why.text);
}

/* ---- beginning ---- */

static json_t *
hash_of(const json_t *environment)
{
	own_mem char *text = xalloc_check(json_dumps(environment, JSON_COMPACT | JSON_SORT_KEYS));
	char hash[CHAIN_DIGITS + 1];

	chain_hash(text, strlen(text), hash);
	return xalloc_check(json_string(hash));
}

/* The conditions of a request. environment: the set may depend on what the profile has; NULL: it
 * does not. An existing set is used only for a request with the same conditions.
 * If policy may refuse the set, the tenant itself is one of them: with another tenant's set the
 * answer would come sooner, and would reveal, before the decision, that the other tenant has it. */
static json_t *
conditions_of(const struct install *install, const json_t *environment)
{
	const struct config *config = install->host.config;
	json_t *conditions = xalloc_check(json_copy(install->indexes));

	/* A result without hashes does not answer a request with hashes, and a result with built
	 * packages does not answer one for wheels only. */
	if (config->packages.require_hashes)
		json_array_append_new(conditions, json_string("hashes"));
	if (install_may_build(install))
		json_array_append_new(conditions, json_string("build"));
	if (environment)
		json_array_append_new(conditions, hash_of(environment));
	if (!packages_allows_all(config))
		json_array_append_new(conditions,
				      json_string(tenant_principal(install->host.tenant)));
	return conditions;
}

/* The manifest of the set that was made for such a request earlier; NULL: there is none. The name
 * of the request is kept for the set that is made. */
static json_t *
find_set(struct install *install, const json_t *environment)
{
	json_auto_t *conditions = conditions_of(install, environment);

	set_request(install->platform, conditions, install->requirements, install->request);
	return store_find(install->host.config->packages.store, install->request, install->name);
}

/* The version that satisfies a requirement: in the session's set, or else in the profile; NULL:
 * there is none. Extras of a package in the set are not known. */
static const char *
version_there(const struct install *install, const json_t *environment, const char *text)
{
	const char *version = NULL;
	struct requirement asked;
	const json_t *package;
	bool contained = true;

	if (requirement_read(text, strlen(text), &asked) < 0)
		return NULL;
	package = set_find(install->has, asked.name);
	if (!package && environment_satisfies(environment, &asked))
		package = json_object_get(json_object_get(environment, "packages"), asked.name);
	else if (package && (*asked.extras || asked.url ||
			     (*asked.specifiers &&
			      specifiers_check(asked.specifiers, strlen(asked.specifiers),
					       member_text(package, "version"), &contained) < 0)))
		contained = false;
	if (package && contained)
		version = member_text(package, "version");
	requirement_done(&asked);
	return version;
}

/* Ends the installation if all that was asked for is there. False: it is not. */
static bool
install_is_there(struct install *install, const json_t *environment)
{
	struct install_result result = { .status = INSTALL_OK };
	char message[1000] = "already there, so nothing was installed:";
	size_t i, len = strlen(message);
	const json_t *text;

	if (install->fills)
		return false;
	json_array_foreach(install->requirements, i, text) {
		const char *asked = json_string_value(text);
		const char *version = version_there(install, environment, asked);

		if (!version)
			return false;
		if (len < sizeof(message))
			len += (size_t)snprintf(message + len, sizeof(message) - len,
						"%s %.*s %s", i ? "," : "",
						(int)strcspn(asked, " ;[<>=!~"), asked, version);
	}
	result.message = message;
	install_finish(install, &result);
	return true;
}

static void
install_look_up(struct install *install, const json_t *environment)
{
	json_t *manifest;

	if (install_is_there(install, environment))
		return;
	install->platform = set_platform(environment);
	install->python = xstrdup(json_string_value(json_object_get(environment, "program")));
	manifest = find_set(install, NULL);
	if (!manifest && install->fills)
		manifest = find_set(install, environment);
	if (!manifest) {
		install_resolve(install);
		return;
	}
	install->set = json_incref(set_of_manifest(manifest));
	json_decref(manifest);
	/* Policy may have changed since. */
	install_decide(install);
}

static void
install_on_environment(void *arg, const json_t *environment, const struct outcome *outcome)
{
	struct install *install = arg;

	install->ask = NULL;
	if (environment)
		install_look_up(install, environment);
	else
		install_fail_of_outcome(install, outcome,
					"the environment could not be examined", "");
}

static void
install_on_begin(evutil_socket_t, short, void *arg)
{
	struct install *install = arg;
	struct why why = { .field = "" };
	json_t *environment;
	int r = environment_get(&install->host, install->profile, install_on_environment, install,
				&environment, &install->ask, &why);

	if (r < 0) {
		install_fail(install, "%s", why.text);
	} else if (r > 0) {
		install_look_up(install, environment);
		json_decref(environment);
	}
}

/* Refuses requirements that policy refuses before they are resolved. Direct references are added to
 * urls. */
static int
check_requirements(const struct config *config, const json_t *requirements, json_t *urls,
		   struct why *why_r)
{
	const json_t *text;
	size_t i;
	int r = 0;

	json_array_foreach(requirements, i, text) {
		struct requirement requirement;

		r = requirement_read(json_string_value(text), json_string_length(text),
				     &requirement);
		if (r < 0)
			return why_say(why_r, r, "packages", "item %zu is not a requirement", i);
		r = packages_check_requirement(config, &requirement, why_r);
		if (requirement.url)
			json_array_append_new(urls, json_string(requirement.url));
		requirement_done(&requirement);
		if (r < 0)
			return r;
	}
	return policy_tool(config, "install_package") != POLICY_DENY ? 0
		: why_say(why_r, -EACCES, "packages", "policy denies install_package");
}

int
install_start(const struct tool_host *host, const struct install_request *request,
	      install_done *done, void *arg, struct install **install_r, struct why *why_r)
{
	json_t *urls = xalloc_check(json_array());
	struct install *install;
	int r = install_is_configured(host->config, why_r);

	if (r == 0)
		r = check_requirements(host->config, request->requirements, urls, why_r);
	if (r < 0) {
		json_decref(urls);
		return r;
	}
	install = xcalloc(1, sizeof(*install));
	install->host = *host;
	install_build_init(install);
	install->compiler = -1;
	install->done = done;
	install->arg = arg;
	install->profile = request->profile;
	install->fills = request->fills;
	install->has = json_incref((json_t *)request->has);
	install->reason = request->reason ? xstrdup(request->reason) : NULL;
	install->requirements = json_incref((json_t *)request->requirements);
	install->indexes = xalloc_check(json_pack("[s]", host->config->packages.index));
	for (size_t i = 0; i < host->config->packages.extra_indexes.n; i++)
		json_array_append_new(install->indexes,
				      json_string(host->config->packages.extra_indexes.item[i]));
	install->urls = urls;
	install->begin = xalloc_check(event_new(host->base, -1, 0, install_on_begin, install));
	event_active(install->begin, EV_TIMEOUT, 0);
	*install_r = install;
	return 0;
}

void
install_cancel(struct install *install, enum cancel_reason reason)
{
	stop_all(install, reason);
	free_install(install);
}
