/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: check_environment calls that wait for a worker. */
#include "tools/check/check_environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/member.h"
#include "base/own.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "govern/advisories.h"
#include "govern/gate.h"
#include "mcp/jsonrpc.h"
#include "policy/advisory.h"
#include "policy/config.h"
#include "policy/packages.h"
#include "policy/rules.h"
#include "tools/check/schema/check_environment_input.h"
#include "tools/check/schema/check_environment_output.h"
#include "tools/packages/consent.h"
#include "tools/session/repl_sessions.h"
#include "tools/shared/argument_map.h"
#include "tools/shared/environment.h"
#include "tools/shared/schema.h"

#define MIB (1024 * 1024)
#define JSON_INTEGER_MAX ((UINT64_C(1) << 53) - 1)
#define ADVISORIES_SHOWN 20	/* in the text */
#define RULES_SHOWN 32		/* of [network] allow */
#define VERSIONS_TEXT_MAX 1400	/* bytes: a longer list of packages has no versions in the text */

struct arguments {
	const char *profile;		/* NULL: not given */
	bool modules;
};

struct tool_run {
	struct tool_host host;
	struct environment_ask *ask;
	const char *profile;
	size_t candidate;		/* its index, if another one may do */
	bool modules;			/* all of it is wanted */
	char *requires_python;		/* NULL: the profile is meant */
	check_environment_answer *answer;
};

static const char *
state_of(const struct repl_session_info *info)
{
	return info->busy ? "busy" : info->frozen ? "frozen" : "idle";
}

static void
write_repl_session(struct jsonout *out, const struct repl_session *session,
		   const struct config *config)
{
	struct repl_session_info info;
	const char *name;

	repl_session_look(session, &info);
	jsonout_open(out, '{');
	jsonout_member_text(out, "session", info.handle);
	jsonout_member_text(out, "state", state_of(&info));
	jsonout_member_bool(out, "kept", info.kept);
	jsonout_member_text(out, "profile", info.profile ? info.profile : config->profile[0].name);
	jsonout_member_uint(out, "cells", info.cells);
	jsonout_member_known(out, "memory_bytes", info.memory_bytes, info.memory_bytes);
	jsonout_member_known(out, "snapshot_bytes", info.snapshot_bytes, info.snapshot_bytes);
	jsonout_member_real(out, "memory_mb", (double)info.memory_limit / MIB);
	jsonout_member_uint(out, "idle_seconds", info.idle_ms / 1000);
	jsonout_member_text(out, "expires", info.expires);
	jsonout_member_open(out, "checkpoints", '[');
	for (size_t i = 0; (name = repl_session_checkpoint_name(session, i)); i++)
		jsonout_text(out, name, strlen(name));
	jsonout_close(out, ']');
	jsonout_close(out, '}');
}

/* The facts that are reported beside the environment itself. */
struct state {
	const struct tool_host *host;
	const char *profile;
	bool modules;
	struct engine_enforcement how;
	struct tenant_counts counts;
	const json_t *advisories;	/* NULL: none are known */
};

/* Tools whose calls policy may want approved; of other tool sets, those that run code by them. */
static const char *const governed[] = { "run_script", "run_repl" };

static const char description[] =
	"What scripts find here: the Python version, profiles, all installed packages, the hosts "
	"that can be reached, whether packages can be installed and who has to agree, limits, and "
	"your sessions of run_repl.";

static char *
make_input_schema(const struct config *config)
{
	json_t *schema = schema_load(check_environment_input_schema);

	schema_set_profiles(schema, "profile", config);
	return schema_take(schema);
}

static void
check_environment_describe(const struct config *config, struct tool_description *description_r)
{
	*description_r = (struct tool_description){
		.name = check_environment_tool.name,
		.title = "What scripts find here",
		.icon = ICON_ENVIRONMENT,
		.description = xstrdup(description),
		.input_schema = make_input_schema(config),
		.output_schema = xstrdup(check_environment_output_schema),
		.read_only = true,
		.idempotent = true,
	};
}

/* ---- structuredContent ---- */

/* May the tenant use this profile? */
static bool
is_offered(const struct tool_host *host, const struct config_profile *profile)
{
	const char *only = tenant_profile(host->tenant);

	return *only == '\0' || strcmp(only, profile->name) == 0;
}

static void
write_profiles(struct jsonout *out, const struct tool_host *host, bool modules)
{
	const struct config *config = host->config;
	bool is_only = *tenant_profile(host->tenant) != '\0';

	jsonout_member_open(out, "profiles", '[');
	for (size_t i = 0; i < config->n_profiles; i++) {
		const struct config_profile *profile = &config->profile[i];

		if (!is_offered(host, profile))
			continue;
		jsonout_open(out, '{');
		jsonout_member_text(out, "name", profile->name);
		jsonout_member_bool(out, "default", i == 0 || is_only);
		jsonout_member_text(out, "interpreter", profile->interpreter);
		jsonout_member_uint(out, "preloaded_modules", profile->modules.n);
		if (modules)
			jsonout_member_texts(out, "preloaded", profile->modules.item,
					     profile->modules.n);
		jsonout_member_uint(out, "disk_bytes", config_disk_bytes(config, profile));
		jsonout_close(out, '}');
	}
	jsonout_close(out, ']');
}

/* ---- network, installation and input ---- */

/* The host and port in the URL of an index. The path is left out, because it may hold a token. The
 * URL has no other parts. */
static void
host_of(const char *url, const char **host_r, int *len_r)
{
	const char *at = strstr(url, "://");

	*host_r = at ? at + strlen("://") : url;
	*len_r = (int)strcspn(*host_r, "/");
}

static bool
can_install(const struct config *config)
{
	return config->packages.index && config->packages.store;
}

/* The verdict about a package that no rule names. If the tool is denied, so is the package. */
static enum policy_verdict
verdict_of_others(const struct config *config)
{
	enum policy_verdict tool = policy_tool(config, "install_package");
	enum policy_verdict others = (enum policy_verdict)config->packages.others;

	if (!can_install(config))
		return POLICY_DENY;
	if (packages_allows_all(config))
		return POLICY_ALLOW;
	return tool == POLICY_DENY || others == POLICY_UNSAID ? tool : others;
}

static bool
session_agrees(const struct tool_host *host)
{
	return (host->client & CLIENT_ELICITS) && policy_asks_session(host->config);
}

static bool
input_asks(const struct tool_host *host)
{
	return (host->client & CLIENT_ELICITS) && policy_allows_input(host->config);
}

static void
write_index(struct jsonout *out, const char *url)
{
	const char *host;
	int len;

	host_of(url, &host, &len);
	jsonout_text(out, host, (size_t)len);
}

/* May scripts use this secret: does [network] secrets name it, and does [network] allow a host? */
static bool
check_environment_may_use(const struct config *config, const char *name)
{
	const struct config_list *secrets = &config->network.secrets;

	for (size_t i = 0; i < secrets->n && config->network.allow.n > 0; i++)
		if (strcmp(secrets->item[i], "*") == 0 || strcmp(secrets->item[i], name) == 0)
			return true;
	return false;
}

static void
write_secret(struct jsonout *out, const struct config_secret *secret)
{
	jsonout_open(out, '{');
	jsonout_member_text(out, "name", secret->name);
	jsonout_member_text(out, "host", secret->host);
	jsonout_member_text(out, "header", secret->header);
	jsonout_close(out, '}');
}

static void
write_reach(struct jsonout *out, const struct tool_host *host)
{
	const struct config *config = host->config;
	const struct config_list *allow = &config->network.allow;

	jsonout_member_texts(out, "network", allow->item,
			     allow->n < RULES_SHOWN ? allow->n : RULES_SHOWN);
	jsonout_member_uint(out, "network_rules", allow->n);
	jsonout_member_open(out, "secrets", '[');
	for (size_t i = 0; i < config->n_secrets; i++)
		if (check_environment_may_use(config, config->secret[i].name))
			write_secret(out, &config->secret[i]);
	jsonout_close(out, ']');
	jsonout_member_open(out, "installs", '{');
	jsonout_member_open(out, "indexes", '[');
	if (can_install(config)) {
		write_index(out, config->packages.index);
		for (size_t i = 0; i < config->packages.extra_indexes.n; i++)
			write_index(out, config->packages.extra_indexes.item[i]);
	}
	jsonout_close(out, ']');
	jsonout_member_text(out, "policy", policy_verdict_name(verdict_of_others(config)));
	jsonout_member_bool(out, "asks_session", session_agrees(host));
	jsonout_close(out, '}');
	jsonout_member_bool(out, "input_asks", input_asks(host));
	jsonout_member_open(out, "approvals", '[');
	for (size_t i = 0; i < sizeof(governed) / sizeof(*governed); i++)
		if (policy_tool(config, governed[i]) == POLICY_APPROVE)
			jsonout_text(out, governed[i], strlen(governed[i]));
	jsonout_close(out, ']');
}

static void
say_secrets(FILE *to, const struct config *config)
{
	const char *before = "secrets:";

	for (size_t i = 0; i < config->n_secrets; i++) {
		const struct config_secret *secret = &config->secret[i];

		if (!check_environment_may_use(config, secret->name))
			continue;
		fprintf(to, "%s %s for %s in %s", before, secret->name, secret->host,
			secret->header);
		before = ",";
	}
	if (*before == ',')
		fputs("; ask for http://HOST/ with {{secret:NAME}} in that header\n", to);
}

static void
say_reach(FILE *to, const struct tool_host *host)
{
	const struct config *config = host->config;
	const struct config_list *allow = &config->network.allow;

	fputs(allow->n ? "network: only" : "network: none", to);
	for (size_t i = 0; i < allow->n && i < RULES_SHOWN; i++)
		fprintf(to, " %s", allow->item[i]);
	if (allow->n > RULES_SHOWN)
		fprintf(to, " and %zu more", allow->n - RULES_SHOWN);
	fputs(allow->n ? ", through the HTTP proxy in the environment\n" : "\n", to);
	say_secrets(to, config);
	if (input_asks(host))
		fputs("input(): asks the user\n", to);
	else
		fputs("input(): reads stdin of the call; no person is asked\n", to);
}

static void
say_installs(FILE *to, const struct tool_host *host)
{
	const struct config *config = host->config;
	enum policy_verdict verdict = verdict_of_others(config);
	const char *name;
	int len;

	if (!can_install(config) || policy_tool(config, "install_package") == POLICY_DENY) {
		fputs("installing packages: not possible here\n", to);
		return;
	}
	host_of(config->packages.index, &name, &len);
	fprintf(to, "installing packages: from %.*s", len, name);
	for (size_t i = 0; i < config->packages.extra_indexes.n; i++) {
		host_of(config->packages.extra_indexes.item[i], &name, &len);
		fprintf(to, ", %.*s", len, name);
	}
	if (verdict == POLICY_DENY)
		fputs("; only those that the operator's rules name", to);
	else if (verdict == POLICY_APPROVE)
		fprintf(to, "; %s has to agree", session_agrees(host) ? "your user"
								       : "an operator");
	if (config->packages.advisories_deny != ADVISORY_NEVER)
		fprintf(to, "; none with an advisory that is %s or worse",
			advisory_severity_name(config->packages.advisories_deny));
	fputc('\n', to);
}

static void
say_approvals(FILE *to, const struct config *config)
{
	const char *before = "each call waits for the approval of a person:";

	for (size_t i = 0; i < sizeof(governed) / sizeof(*governed); i++)
		if (policy_tool(config, governed[i]) == POLICY_APPROVE) {
			fprintf(to, "%s %s", before, governed[i]);
			before = ",";
		}
	if (*before == ',')
		fputc('\n', to);
}

/* ---- packages ---- */

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of the packages, sorted; malloc'd, the texts are the environment's. */
static const char **
sorted_packages(const json_t *packages)
{
	const char **name = xcalloc(json_object_size(packages) + 1, sizeof(*name)), *key;
	size_t n = 0;
	json_t *package;

	json_object_foreach((json_t *)packages, key, package)
		name[n++] = key;
	qsort(name, n, sizeof(*name), compare_names);
	return name;
}

/* Those about the packages that are there; NULL: none are known. */
static json_t *
advisories_about(const struct tool_host *host, const json_t *environment)
{
	json_auto_t *set = xalloc_check(json_array());
	const char *name;
	json_t *package;

	json_object_foreach(json_object_get(environment, "packages"), name, package)
		json_array_append_new(set, json_pack("{s:s,s:O}", "name", name, "version",
						     json_object_get(package, "version")));
	return consent_advisories(host, set);
}

static const char *
advisories_missing(const struct tool_host *host)
{
	return host->gate ? advisories_trouble(gate_advisories(host->gate)) : NULL;
}

static void
write_advisories(struct jsonout *out, const struct state *state)
{
	const char *trouble = advisories_missing(state->host);

	if (!state->host->config->packages.advisories)
		return;
	jsonout_key(out, "advisories");
	if (state->advisories)
		jsonrpc_write_value(out, state->advisories);
	else
		jsonout_raw(out, "[]", 2);
	if (trouble)
		jsonout_member_text(out, "advisories_trouble", trouble);
}

/* The worst first. */
static void
say_advisories(FILE *to, const struct state *state)
{
	const char *trouble = advisories_missing(state->host);
	size_t n = 0, i;
	const json_t *one;

	for (unsigned int severity = ADVISORY_CRITICAL; severity > ADVISORY_NEVER; severity--)
		json_array_foreach(state->advisories, i, one)
			if (advisory_severity(one) == severity && n++ < ADVISORIES_SHOWN)
				consent_say_advisory(to, one);
	if (n > ADVISORIES_SHOWN)
		fprintf(to, "and %zu further advisories\n", n - ADVISORIES_SHOWN);
	if (trouble)
		fprintf(to, "advisories: not all is known: %s\n", trouble);
}

static void
write_packages(struct jsonout *out, const json_t *environment)
{
	const json_t *packages = json_object_get(environment, "packages"), *package;
	own_mem const char **name = sorted_packages(packages);

	jsonout_member_open(out, "packages", '[');
	for (size_t i = 0; name[i]; i++) {
		package = json_object_get(packages, name[i]);
		jsonout_open(out, '{');
		jsonout_member_text(out, "name", member_text(package, "name"));
		jsonout_member_text(out, "version", member_text(package, "version"));
		jsonout_close(out, '}');
	}
	jsonout_close(out, ']');
}

/* One line of the text. */
static void
list_packages(FILE *to, const json_t *packages, bool versions)
{
	own_mem const char **name = sorted_packages(packages);

	fprintf(to, "packages (%zu%s):", json_object_size(packages),
		versions ? "" : "; modules=true tells their versions");
	for (size_t i = 0; name[i]; i++) {
		const json_t *package = json_object_get(packages, name[i]);

		fprintf(to, "%s %s", i ? "," : "",
			member_text(package, "name"));
		if (versions)
			fprintf(to, " %s", member_text(package, "version"));
	}
	fputc('\n', to);
}

static void
say_packages(FILE *to, const json_t *packages, bool all)
{
	own_mem char *text = NULL;
	size_t len;
	FILE *memory = xalloc_check(open_memstream(&text, &len));

	list_packages(memory, packages, true);
	xassert(fclose(memory) == 0);
	if (all || len <= VERSIONS_TEXT_MAX)
		fputs(text, to);
	else
		list_packages(to, packages, false);
}

/* Returns the smaller of most and the largest integer that every client can read. (If there is no
 * cap, most is larger than that.) */
static uint64_t
check_environment_readable(uint64_t most)
{
	return most < JSON_INTEGER_MAX ? most : JSON_INTEGER_MAX;
}

static void
write_limits(struct jsonout *out, const char *key, const struct limits *limits)
{
	jsonout_member_open(out, key, '{');
	jsonout_member_real(out, "timeout_seconds", limits->wall_ms / 1000.0);
	jsonout_member_real(out, "cpu_seconds", limits->cpu_ms / 1000.0);
	jsonout_member_real(out, "memory_mb", (double)limits->memory_bytes / MIB);
	jsonout_member_uint(out, "pids", limits->pids);
	jsonout_member_uint(out, "output_bytes", check_environment_readable(limits->output_bytes));
	jsonout_member_uint(out, "output_total_bytes", check_environment_readable(limits->output_total));
	jsonout_close(out, '}');
}

static void
write_structured(struct jsonout *out, const struct state *state, const json_t *environment)
{
	const struct limits_policy *limits = &state->host->config->limits;
	const struct repl_session *session = NULL;

	jsonout_open(out, '{');
	jsonout_member_text(out, "python_version", environment_python(environment));
	jsonout_member_text(out, "implementation", environment_marker(environment, "implementation_name"));
	jsonout_member_text(out, "platform", environment_marker(environment, "sys_platform"));
	jsonout_member_text(out, "profile", state->profile);
	jsonout_member_text(out, "tenant", tenant_principal(state->host->tenant));
	write_profiles(out, state->host, state->modules);
	write_packages(out, environment);
	write_advisories(out, state);
	write_reach(out, state->host);
	jsonout_member_open(out, "limits", '{');
	write_limits(out, "default", &limits->standard);
	write_limits(out, "most", &limits->cap);
	jsonout_close(out, '}');
	jsonout_member_open(out, "enforcement", '{');
	jsonout_member_text(out, "memory", engine_enforced_by(state->how.memory_controller));
	jsonout_member_text(out, "pids", engine_enforced_by(state->how.pids_controller));
	jsonout_member_text(out, "cpu", engine_enforced_by(state->how.cpu_controller));
	jsonout_member_bool(out, "landlock", state->how.landlock);
	jsonout_member_bool(out, "own_uids", state->how.own_uids);
	jsonout_member_text(out, "summary", state->how.text);
	jsonout_close(out, '}');
	jsonout_member_open(out, "yours", '{');
	jsonout_member_uint(out, "sessions", state->counts.sessions);
	jsonout_member_uint(out, "running", state->counts.running);
	jsonout_member_uint(out, "running_most", state->counts.running_max);
	jsonout_member_uint(out, "queued", state->counts.queued);
	jsonout_member_uint(out, "queued_most", state->counts.queued_max);
	jsonout_close(out, '}');
	jsonout_member_open(out, "repl_sessions", '[');
	while ((session = repl_session_next(state->host->tenant, session)))
		write_repl_session(out, session, state->host->config);
	jsonout_close(out, ']');
	jsonout_member_uint(out, "repl_sessions_most", state->host->config->repl.sessions_max);
	jsonout_close(out, '}');
}

/* ---- the text ---- */

static void
say_profile(FILE *to, const struct config_profile *profile, bool modules)
{
	fprintf(to, " %s", profile->name);
	if (profile->modules.n == 0)
		return;
	fprintf(to, " (%zu modules preloaded", profile->modules.n);
	for (size_t i = 0; modules && i < profile->modules.n; i++)
		fprintf(to, "%s%s", i ? " " : ": ", profile->modules.item[i]);
	fputc(')', to);
}

static void
say_profiles(FILE *to, const struct tool_host *host, bool modules)
{
	const struct config *config = host->config;

	fputs("profiles:", to);
	for (size_t i = 0; i < config->n_profiles; i++) {
		if (is_offered(host, &config->profile[i]))
			say_profile(to, &config->profile[i], modules);
	}
	fputc('\n', to);
}

static void
say_limits(FILE *to, const struct limits_policy *limits)
{
	const struct limits *standard = &limits->standard, *cap = &limits->cap;

	fprintf(to, "limits: time %.10g s (at most %.10g), cpu %.10g s (%.10g), memory %.10g MiB "
		"(%.10g), processes and threads %u (%u), output kept %.10g MiB of each stream\n",
		standard->wall_ms / 1000.0, cap->wall_ms / 1000.0, standard->cpu_ms / 1000.0,
		cap->cpu_ms / 1000.0, (double)standard->memory_bytes / MIB,
		(double)cap->memory_bytes / MIB, standard->pids, cap->pids,
		(double)standard->output_bytes / MIB);
}

static void
say_repl_sessions(FILE *to, const struct tool_host *host)
{
	const struct repl_session *session = NULL;
	struct repl_session_info info;

	while ((session = repl_session_next(host->tenant, session))) {
		repl_session_look(session, &info);
		fprintf(to, "session of run_repl: %s, %s, %u cells, %llu MiB of %llu, until %s\n",
			info.handle, state_of(&info), info.cells,
			(unsigned long long)(info.memory_bytes / MIB),
			(unsigned long long)(info.memory_limit / MIB), info.expires);
	}
}

static void
write_environment(FILE *to, const struct state *state, const json_t *environment)
{
	fprintf(to, "Python %s (%s, %s), profile %s\n", environment_python(environment),
		environment_marker(environment, "implementation_name"),
		environment_marker(environment, "sys_platform"), state->profile);
	say_profiles(to, state->host, state->modules);
	say_reach(to, state->host);
	say_installs(to, state->host);
	say_approvals(to, state->host->config);
	say_limits(to, &state->host->config->limits);
	fprintf(to, "enforced: %s\n", state->how.text);
	/* The sessions of run_repl are listed; the others are connections, which is no use here. */
	fprintf(to, "yours: %u running of %u, %u waiting of %u\n", state->counts.running,
		state->counts.running_max, state->counts.queued, state->counts.queued_max);
	say_repl_sessions(to, state->host);
	say_packages(to, json_object_get(environment, "packages"), state->modules);
	say_advisories(to, state);
}

/* ---- the run ---- */

static void
check_environment_give(const struct tool_host *host, const char *profile, bool modules,
		       const json_t *environment)
{
	json_auto_t *advisories = advisories_about(host, environment);
	struct state state = { .host = host, .profile = profile, .modules = modules,
			       .advisories = advisories };
	struct tool_writer w;

	tool_write(&w, host);
	engine_enforcement(host->engine, &state.how);
	tenant_count(host->tenant, &state.counts);
	write_environment(w.text, &state, environment);
	if (w.for_programs)
		write_structured(&w.structured, &state, environment);
	tool_give(&w);
}

static void
check_environment_free_run(struct tool_run *run)
{
	free(run->requires_python);
	free(run);
}

static environment_known on_known;

/* Gives the answer, or asks about the next profile. True: the run continues. */
static bool
check_environment_take(struct tool_run *run, const json_t *environment)
{
	json_t *next = NULL;
	struct why why;
	bool fits;
	int r;

	for (;;) {
		fits = !run->requires_python ||
		       environment_fits(environment, run->requires_python);
		if (fits || !environment_next_profile(&run->host, &run->candidate, &run->profile))
			break;
		json_decref(next);
		next = NULL;
		r = environment_get(&run->host, run->profile, on_known, run, &next, &run->ask,
				    &why);
		if (r == 0)
			return true;
		environment = next;
		if (r < 0) {
			tool_refuse(&run->host, why.text);
			return false;
		}
	}
	if (fits) {
		run->answer(&run->host, run->profile, run->modules, environment);
	} else {
		why_say(&why, -ENOENT, "", "no profile that could be had has Python %s",
			run->requires_python);
		tool_refuse(&run->host, why.text);
	}
	json_decref(next);
	return false;
}

static void
on_known(void *arg, const json_t *environment, const struct outcome *outcome)
{
	struct tool_run *run = arg;

	run->ask = NULL;
	if (environment) {
		if (check_environment_take(run, environment))
			return;
	} else {
		tool_refuse(&run->host, outcome->message ? outcome->message
							 : "the environment could not be examined");
	}
	check_environment_free_run(run);
}

struct tool_run *
check_environment_start(const struct tool_host *host, const char *profile, bool modules,
			const char *requires_python, check_environment_answer *answer)
{
	struct why why = { .field = "" };
	struct tool_run *run = xcalloc(1, sizeof(*run));
	json_t *environment;
	bool goes_on;
	int r;

	run->host = *host;
	run->profile = profile;
	run->modules = modules;
	run->answer = answer;
	if (requires_python)
		run->requires_python = xstrdup(requires_python);
	if (*tenant_profile(host->tenant))
		run->candidate = host->config->n_profiles;	/* there is no other one */
	r = environment_get(host, profile, on_known, run, &environment, &run->ask, &why);
	if (r == 0)
		return run;
	if (r < 0) {
		tool_refuse(host, why.text);
		check_environment_free_run(run);
		return NULL;
	}
	goes_on = check_environment_take(run, environment);
	json_decref(environment);
	if (goes_on)
		return run;
	check_environment_free_run(run);
	return NULL;
}

void
check_environment_cancel(struct tool_run *run, enum cancel_reason reason)
{
	environment_cancel(run->ask, reason);
	check_environment_free_run(run);
}

static struct tool_run *
check_environment_start_run(const struct tool_host *host, const json_t *json)
{
	static const struct argument map[] = {
		{ "profile", argument_string, .at = offsetof(struct arguments, profile) },
		{ "modules", argument_flag, .at = offsetof(struct arguments, modules) },
	};
	struct why why = { .field = "" };
	struct arguments arguments = { .profile = NULL };
	struct reading in = { "check_environment", .to = &arguments, .why = &why };
	const char *profile;

	if (argument_map_read(map, 2, json, &in) == 0 &&
	    environment_profile(host, arguments.profile, &profile, &why) == 0)
		return check_environment_start(host, profile, arguments.modules, NULL,
					       check_environment_give);
	tool_refuse(host, why.text);
	return NULL;
}

const struct tool check_environment_tool = {
	.name = "check_environment",
	.describe = check_environment_describe,
	.start = check_environment_start_run,
	.cancel = check_environment_cancel,
};
