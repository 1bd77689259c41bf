/* Runs in: the supervisor.   Owns: check_environment calls that wait for a worker. */
#include "tools/check/check_environment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonout.h"
#include "base/why.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "policy/config.h"
#include "tools/check/schema/check_environment_input.h"
#include "tools/check/schema/check_environment_output.h"
#include "tools/session/repl_sessions.h"
#include "tools/shared/environment.h"
#include "tools/shared/schema.h"

#define MIB (1024 * 1024)
#define JSON_INTEGER_MAX ((UINT64_C(1) << 53) - 1)

struct tool_run {
	struct tool_host host;
	struct environment_ask *ask;
	const char *profile;
	check_environment_answer *answer;
};

static const char *
state_of(const struct repl_session_info *info)
{
	return info->busy ? "busy" : info->frozen ? "frozen" : "idle";
}

static const char *
profile_of(const struct repl_session_info *info, const struct config *config)
{
	return info->profile ? info->profile : config->profile[0].name;
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
	jsonout_member_text(out, "profile", profile_of(&info, config));
	jsonout_member_uint(out, "cells", info.cells);
	jsonout_key(out, "memory_bytes");
	if (info.memory_bytes)
		jsonout_uint(out, info.memory_bytes);
	else
		jsonout_null(out);
	jsonout_key(out, "memory_mb");
	jsonout_real(out, (double)info.memory_limit / MIB);
	jsonout_member_uint(out, "idle_seconds", info.idle_ms / 1000);
	jsonout_member_text(out, "expires", info.expires);
	jsonout_key(out, "checkpoints");
	jsonout_open(out, '[');
	for (size_t i = 0; (name = repl_session_checkpoint_name(session, i)); i++)
		jsonout_text(out, name, strlen(name));
	jsonout_close(out, ']');
	jsonout_close(out, '}');
}

static void
write_repl_sessions(struct jsonout *out, const struct tool_host *host)
{
	const struct repl_session *session = NULL;

	jsonout_key(out, "repl_sessions");
	jsonout_open(out, '[');
	while ((session = repl_session_next(host->tenant, session)))
		write_repl_session(out, session, host->config);
	jsonout_close(out, ']');
	jsonout_member_uint(out, "repl_sessions_most", host->config->repl.sessions_max);
}

/* The facts that are reported beside the environment itself. */
struct state {
	const struct tool_host *host;
	const char *profile;
	struct engine_enforcement how;
	struct tenant_counts counts;
};

static const char description[] =
	"Tells what scripts find here, before one is written: the Python version, the profiles, "
	"the installed packages with their versions, the limits (time, memory, processes, "
	"output) with the most that may be asked for, what enforces them, how many of your "
	"scripts run or wait, and your sessions of run_repl. Runs nothing of yours.";

static char *
make_input_schema(const struct config *config)
{
	json_t *schema = schema_load(check_environment_input_schema);

	schema_set_profiles(schema, "profile", config);
	return schema_take(schema);
}

static void
describe(const struct config *config, struct tool_description *description_r)
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

static const char *
marker(const json_t *environment, const char *name)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(environment, "markers"), name));

	return text ? text : "";
}

/* May the tenant use this profile? */
static bool
is_offered(const struct tool_host *host, const struct config_profile *profile)
{
	const char *only = tenant_profile(host->tenant);

	return *only == '\0' || strcmp(only, profile->name) == 0;
}

static void
write_profiles(struct jsonout *out, const struct tool_host *host)
{
	const struct config *config = host->config;
	bool is_only = *tenant_profile(host->tenant) != '\0';

	jsonout_key(out, "profiles");
	jsonout_open(out, '[');
	for (size_t i = 0; i < config->n_profiles; i++) {
		const struct config_profile *profile = &config->profile[i];

		if (!is_offered(host, profile))
			continue;
		jsonout_open(out, '{');
		jsonout_member_text(out, "name", profile->name);
		jsonout_member_bool(out, "default", i == 0 || is_only);
		jsonout_key(out, "interpreter");
		if (profile->interpreter)
			jsonout_text(out, profile->interpreter, strlen(profile->interpreter));
		else
			jsonout_null(out);
		jsonout_key(out, "preloaded");
		jsonout_open(out, '[');
		for (size_t k = 0; k < profile->modules.n; k++)
			jsonout_text(out, profile->modules.item[k],
				     strlen(profile->modules.item[k]));
		jsonout_close(out, ']');
		jsonout_member_uint(out, "disk_bytes", profile->disk_bytes);
		jsonout_close(out, '}');
	}
	jsonout_close(out, ']');
}

static void
write_packages(struct jsonout *out, const json_t *environment)
{
	const char *key;
	json_t *package;

	jsonout_key(out, "packages");
	jsonout_open(out, '[');
	json_object_foreach(json_object_get(environment, "packages"), key, package) {
		jsonout_open(out, '{');
		jsonout_member_text(out, "name",
				    json_string_value(json_object_get(package, "name")));
		jsonout_member_text(out, "version",
				    json_string_value(json_object_get(package, "version")));
		jsonout_close(out, '}');
	}
	jsonout_close(out, ']');
}

/* A value without a cap, as a number that every client can read. */
static uint64_t
readable(uint64_t most)
{
	return most < JSON_INTEGER_MAX ? most : JSON_INTEGER_MAX;
}

static void
write_limits(struct jsonout *out, const char *key, const struct limits *limits)
{
	jsonout_key(out, key);
	jsonout_open(out, '{');
	jsonout_key(out, "timeout_seconds");
	jsonout_real(out, limits->wall_ms / 1000.0);
	jsonout_key(out, "cpu_seconds");
	jsonout_real(out, limits->cpu_ms / 1000.0);
	jsonout_key(out, "memory_mb");
	jsonout_real(out, (double)limits->memory_bytes / MIB);
	jsonout_member_uint(out, "pids", limits->pids);
	jsonout_member_uint(out, "output_bytes", readable(limits->output_bytes));
	jsonout_member_uint(out, "output_total_bytes", readable(limits->output_total));
	jsonout_close(out, '}');
}

static const char *
by(bool controller)
{
	return controller ? "cgroup" : "watchdog";
}

static void
write_enforcement(struct jsonout *out, const struct engine_enforcement *how)
{
	jsonout_key(out, "enforcement");
	jsonout_open(out, '{');
	jsonout_member_text(out, "memory", by(how->memory_controller));
	jsonout_member_text(out, "pids", by(how->pids_controller));
	jsonout_member_text(out, "cpu", by(how->cpu_controller));
	jsonout_member_bool(out, "landlock", how->landlock);
	jsonout_member_bool(out, "own_uids", how->own_uids);
	jsonout_member_text(out, "summary", how->text);
	jsonout_close(out, '}');
}

static void
write_tenant(struct jsonout *out, const struct tenant_counts *counts)
{
	jsonout_key(out, "yours");
	jsonout_open(out, '{');
	jsonout_member_uint(out, "sessions", counts->sessions);
	jsonout_member_uint(out, "running", counts->running);
	jsonout_member_uint(out, "running_most", counts->running_max);
	jsonout_member_uint(out, "queued", counts->queued);
	jsonout_member_uint(out, "queued_most", counts->queued_max);
	jsonout_close(out, '}');
}

static void
write_structured(struct jsonout *out, const struct state *state, const json_t *environment)
{
	const struct limits_policy *limits = &state->host->config->limits;

	jsonout_open(out, '{');
	jsonout_member_text(out, "python_version", environment_python(environment));
	jsonout_member_text(out, "implementation", marker(environment, "implementation_name"));
	jsonout_member_text(out, "platform", marker(environment, "sys_platform"));
	jsonout_member_text(out, "profile", state->profile);
	write_profiles(out, state->host);
	write_packages(out, environment);
	jsonout_key(out, "limits");
	jsonout_open(out, '{');
	write_limits(out, "default", &limits->standard);
	write_limits(out, "most", &limits->cap);
	jsonout_close(out, '}');
	write_enforcement(out, &state->how);
	write_tenant(out, &state->counts);
	write_repl_sessions(out, state->host);
	jsonout_close(out, '}');
}

/* ---- the text ---- */

static void
say_profiles(FILE *to, const struct tool_host *host)
{
	const struct config *config = host->config;

	fputs("profiles:", to);
	for (size_t i = 0; i < config->n_profiles; i++) {
		if (!is_offered(host, &config->profile[i]))
			continue;
		fprintf(to, " %s", config->profile[i].name);
		if (config->profile[i].modules.n)
			fprintf(to, " (%zu modules preloaded)", config->profile[i].modules.n);
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
say(FILE *to, const struct state *state, const json_t *environment)
{
	const json_t *packages = json_object_get(environment, "packages");
	const char *key, *before = "";
	json_t *package;

	fprintf(to, "Python %s (%s, %s), profile %s\n", environment_python(environment),
		marker(environment, "implementation_name"),
		marker(environment, "sys_platform"), state->profile);
	say_profiles(to, state->host);
	say_limits(to, &state->host->config->limits);
	fprintf(to, "enforced: %s\n", state->how.text);
	fprintf(to, "yours: %u running of %u, %u waiting of %u, %u sessions\n",
		state->counts.running, state->counts.running_max, state->counts.queued,
		state->counts.queued_max, state->counts.sessions);
	say_repl_sessions(to, state->host);
	fprintf(to, "packages (%zu): ", json_object_size(packages));
	json_object_foreach((json_t *)packages, key, package) {
		fprintf(to, "%s%s %s", before,
			json_string_value(json_object_get(package, "name")),
			json_string_value(json_object_get(package, "version")));
		before = ", ";
	}
	fputc('\n', to);
}

/* ---- the run ---- */

static void
give(const struct tool_host *host, const char *profile, const json_t *environment)
{
	struct tool_answer answer = { .is_error = false };
	struct state state = { .host = host, .profile = profile };
	struct jsonout structured;
	char *text = NULL;
	FILE *to = open_memstream(&text, &answer.text_len);

	xalloc_check(to);
	engine_enforcement(host->engine, &state.how);
	tenant_count(host->tenant, &state.counts);
	say(to, &state, environment);
	if (fclose(to) != 0)
		abort();
	jsonout_init(&structured);
	write_structured(&structured, &state, environment);
	answer.text = text;
	answer.structured = structured.at;
	answer.structured_len = structured.len;
	host->on_answer(host->arg, &answer);
	jsonout_done(&structured);
	free(text);
}

static void
on_known(void *arg, const json_t *environment, const struct outcome *outcome)
{
	struct tool_run run = *(struct tool_run *)arg;

	free(arg);
	if (environment)
		run.answer(&run.host, run.profile, environment);
	else
		tool_refuse(&run.host, outcome->message ? outcome->message
						     : "the environment could not be examined");
}

static int
read_arguments(const struct tool_host *host, const json_t *json, const char **profile_r,
	       struct why *why_r)
{
	const char *name = NULL, *key;
	json_t *value;

	json_object_foreach((json_t *)json, key, value) {
		if (strcmp(key, "profile") != 0)
			return why_say(why_r, -EINVAL, key, "%.60s is not an argument of "
				       "check_environment; there is profile", key);
		name = json_string_value(value);
		if (!name || strlen(name) != json_string_length(value))
			return why_say(why_r, -EINVAL, key,
				       "profile must be a string without NUL");
	}
	return environment_profile(host, name, profile_r, why_r);
}

struct tool_run *
check_environment_start(const struct tool_host *host, const char *profile,
			check_environment_answer *answer)
{
	struct why why = { .field = "" };
	struct tool_run *run = xcalloc(1, sizeof(*run));
	json_t *environment;
	int r;

	run->host = *host;
	run->profile = profile;
	run->answer = answer;
	r = environment_get(host, profile, on_known, run, &environment, &run->ask, &why);
	if (r == 0)
		return run;
	free(run);
	if (r > 0) {
		answer(host, profile, environment);
		json_decref(environment);
	} else {
		tool_refuse(host, why.text);
	}
	return NULL;
}

void
check_environment_cancel(struct tool_run *run, enum cancel_reason reason)
{
	environment_cancel(run->ask, reason);
	free(run);
}

static struct tool_run *
start(const struct tool_host *host, const json_t *json)
{
	struct why why = { .field = "" };
	const char *profile;

	if (read_arguments(host, json, &profile, &why) == 0)
		return check_environment_start(host, profile, give);
	tool_refuse(host, why.text);
	return NULL;
}

const struct tool check_environment_tool = {
	.name = "check_environment",
	.describe = describe,
	.start = start,
	.cancel = check_environment_cancel,
};
