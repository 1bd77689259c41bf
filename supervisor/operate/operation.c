/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: its start time.
 * Collects the state of the other modules. */
#include "supervisor/operate/operation_parts.h"

#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/ready.h"
#include "engine/survey.h"
#include "engine/upstream.h"
#include "govern/approvals.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "govern/metrics.h"
#include "host/fence_files.h"
#include "host/helper.h"
#include "http/server.h"
#include "policy/config.h"
#include "policy/finite_table.h"
#include "policy/learnable.h"
#include "supervisor/operate/governance.h"
#include "supervisor/stream.h"
#include "tools/job/background.h"
#include "tools/session/repl_sessions.h"

#define SESSIONS_MAX 1024	/* listed sessions; all are counted */
#define TENANTS_MAX 4096	/* listed tenants */
#define ALARMS_MAX 1024		/* listed alarms */

struct operation *
operation_new(const struct operation_sources *sources)
{
	struct operation *operation = xcalloc(1, sizeof(*operation));

	operation->from = *sources;
	clock_gettime(CLOCK_BOOTTIME, &operation->began);
	operation->started = time(NULL);
	return operation;
}

void
operation_free(struct operation *operation)
{
	free(operation);
}

uint64_t
operation_uptime_s(const struct operation *operation)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)(now.tv_sec - operation->began.tv_sec);
}

/* ---- parts of the answer ---- */

static void
operation_put(json_t *object, const char *key, json_t *value)
{
	xassert(json_object_set_new(object, key, xalloc_check(value)) == 0);
}

static void
put_uint(json_t *object, const char *key, uint64_t number)
{
	operation_put(object, key, json_integer((json_int_t)number));
}

static json_t *
text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *
operation_time_text(time_t at)
{
	char text[32];
	struct tm tm;

	if (at == 0)
		return json_null();
	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

static json_t *
operation_service(const struct operation *o)
{
	return json_pack("{s:s,s:s,s:i,s:o,s:I}", "name", PACKAGE_NAME, "version",
			 PACKAGE_VERSION, "pid", (int)getpid(), "started",
			 operation_time_text(o->started), "uptime_seconds",
			 (json_int_t)operation_uptime_s(o));
}

static json_t *
operation_enforcement(const struct operation *o)
{
	struct engine_enforcement how;

	engine_enforcement(o->from.engine, &how);
	return json_pack("{s:s,s:s,s:s,s:b,s:b,s:b,s:s}", "memory", engine_enforced_by(how.memory_controller),
			 "pids", engine_enforced_by(how.pids_controller), "cpu", engine_enforced_by(how.cpu_controller),
			 "landlock", how.landlock, "own_uids", how.own_uids, "host_files_closed",
			 fence_files_entered(), "summary",
			 how.text);
}

static json_t *
operation_clients(const struct operation *o)
{
	return json_pack("{s:I,s:I,s:I}", "connections",
			 (json_int_t)stream_set_count(o->from.streams), "http_connections",
			 (json_int_t)http_server_count(o->from.http), "http_sessions",
			 (json_int_t)http_server_sessions(o->from.http));
}

/* The names of learned modules. */
static json_t *
learned_names(const struct config *config, uint64_t learned)
{
	json_t *names = json_array();

	for (size_t i = 0; i < learnable_count(config); i++)
		if (learned & UINT64_C(1) << i)
			json_array_append_new(names, json_string(learnable_name(config, i)));
	return names;
}

/* Why modules were not learned: "NAME: reason". */
static json_t *
unlearned_texts(const struct survey_profile *profile)
{
	json_t *texts = json_array();

	for (size_t i = 0; i < profile->n_unlearned; i++)
		json_array_append_new(texts, json_string(profile->unlearned[i]));
	return texts;
}

static json_t *
operation_profiles(const struct operation *o)
{
	struct survey_profile profile[CONFIG_PROFILES_MAX];
	size_t n = survey_profiles(o->from.engine, profile);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct survey_profile *p = &profile[i];
		json_t *one = json_pack("{s:s,s:s,s:o}", "profile", p->name, "zygote",
					p->ready ? "ready" : p->trouble ? "failing" : "starting",
					"trouble", text_or_null(p->trouble));

		put_uint(one, "warm", p->warm);
		put_uint(one, "starting", p->starting);
		put_uint(one, "busy", p->running);
		put_uint(one, "sessions", p->sessions);
		put_uint(one, "spent", p->spent);
		put_uint(one, "ending", p->ending);
		put_uint(one, "waiting", p->waiting);
		json_object_set_new(one, "learned", learned_names(o->from.config, p->learned));
		json_object_set_new(one, "unlearned", unlearned_texts(p));
		put_uint(one, "learned_hits", p->hits);
		put_uint(one, "learned_misses", p->misses);
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *
operation_ready(const struct operation *o)
{
	struct ready_counts counts;

	ready_count(o->from.engine, &counts);
	return json_pack("{s:I,s:I,s:I,s:I}", "workers", (json_int_t)counts.ready, "hits",
			 (json_int_t)counts.hits, "misses", (json_int_t)counts.misses, "refused",
			 (json_int_t)counts.refused);
}

/* ---- tenants, and their sessions ---- */

struct listing {
	const struct operation *operation;
	json_t *tenants, *sessions;
	size_t n_tenants, n_sessions;
	bool measured;		/* the kernel counts memory: reading it costs little */
};

static void
describe_recipe(void *arg, const struct ready_recipe *recipe)
{
	json_t *modules = json_array();

	for (size_t i = 0; i < recipe->modules->n; i++)
		json_array_append_new(modules, json_string(recipe->modules->item[i]));
	json_array_append_new(arg, json_pack("{s:o,s:b,s:s,s:I}", "modules", modules, "session",
					     recipe->is_session, "state", recipe->state, "made",
					     (json_int_t)recipe->made));
}

static json_t *
describe_tenant(const struct operation *o, const char *principal,
		const struct survey_tenant *seen)
{
	json_t *one = json_pack("{s:s}", "tenant", principal);
	unsigned int running_jobs = 0, kept_jobs = 0;
	struct metrics_tenant count;
	json_t *ready = json_array();

	metrics_tenant(o->from.metrics, principal, &count);
	if (seen->tenant) {
		background_count(seen->tenant, &running_jobs, &kept_jobs);
		ready_survey(seen->tenant, describe_recipe, ready);
	}
	operation_put(one, "ready", ready);
	put_uint(one, "running", seen->running);
	put_uint(one, "running_most", seen->running_max);
	put_uint(one, "queued", seen->queued);
	put_uint(one, "queued_most", seen->queued_max);
	put_uint(one, "sessions", seen->sessions);
	put_uint(one, "jobs", running_jobs);
	put_uint(one, "jobs_kept", kept_jobs);
	put_uint(one, "workers", seen->workers);
	put_uint(one, "volumes", seen->volumes);
	operation_put(one, "cpu_seconds", json_real((double)(count.cpu_ms + seen->cpu_ms) / 1000));
	put_uint(one, "memory_bytes", seen->memory_bytes);
	put_uint(one, "executions", count.executions);
	put_uint(one, "limits_hit", count.limits_hit);
	return one;
}

static json_t *
describe_session(const struct listing *listing, const char *principal,
		 const struct repl_session *session, bool whole_handle)
{
	const struct config *config = listing->operation->from.config;
	struct repl_session_info info;
	char handle[OPERATION_HANDLE_SHOWN + 4];
	json_t *one;

	if (listing->measured && session->origin)
		repl_session_look(session, &info);
	else
		repl_session_glance(session, &info);
	snprintf(handle, sizeof(handle), "%.*s...", OPERATION_HANDLE_SHOWN, info.handle);
	one = json_pack("{s:s,s:s,s:s,s:s,s:s}", "session", whole_handle ? info.handle : handle,
			"tenant", principal, "profile",
			info.profile ? info.profile : config->profile[0].name, "state",
			info.busy ? "busy" : info.frozen ? "frozen" : "idle", "expires",
			info.expires);
	operation_put(one, "kept", json_boolean(info.kept));
	put_uint(one, "cells", info.cells);
	put_uint(one, "age_seconds", info.age_ms / 1000);
	put_uint(one, "idle_seconds", info.idle_ms / 1000);
	operation_put(one, "memory_bytes", info.memory_bytes
				 ? json_integer((json_int_t)info.memory_bytes) : json_null());
	put_uint(one, "memory_limit_bytes", info.memory_limit);
	return one;
}

static void
list_sessions(struct listing *listing, const struct tenant *tenant, bool whole_handle)
{
	const struct repl_session *session = NULL;

	while ((session = repl_session_next(tenant, session))) {
		if (listing->n_sessions++ >= SESSIONS_MAX)
			continue;
		json_array_append_new(listing->sessions,
				      describe_session(listing, tenant_principal(tenant),
						       session, whole_handle));
	}
}

static void
operation_on_tenant(void *arg, const struct survey_tenant *seen)
{
	struct listing *listing = arg;
	const char *principal = tenant_principal(seen->tenant);

	if (listing->n_tenants++ < TENANTS_MAX)
		json_array_append_new(listing->tenants,
				      describe_tenant(listing->operation, principal, seen));
	list_sessions(listing, seen->tenant, false);
}

static void
begin_listing(const struct operation *o, struct listing *listing_r)
{
	struct engine_enforcement how;

	engine_enforcement(o->from.engine, &how);
	*listing_r = (struct listing){ .operation = o, .tenants = json_array(),
				       .sessions = json_array(),
				       .measured = how.memory_controller };
}

/* ---- the rest ---- */

static json_t *
operation_executions(const struct operation *o)
{
	struct engine_counts now;
	struct metrics_sum sum;

	engine_count(o->from.engine, &now);
	metrics_sum(o->from.metrics, &sum);
	return json_pack("{s:i,s:i,s:I,s:I,s:I}", "running", (int)now.running, "queued",
			 (int)now.queued, "ended", (json_int_t)sum.executions, "limits_hit",
			 (json_int_t)sum.limits_hit, "refused", (json_int_t)sum.refused);
}

static json_t *
operation_jobs(void)
{
	unsigned int running, kept;

	background_count(NULL, &running, &kept);
	return json_pack("{s:i,s:i}", "running", (int)running, "kept", (int)kept);
}

static json_t *
operation_egress(const struct operation *o)
{
	struct egress_state egress;

	survey_egress(o->from.engine, &egress);
	return json_pack("{s:b,s:s,s:o,s:i}", "installed", egress.installed, "state",
			 egress.state, "trouble", text_or_null(egress.trouble), "executions",
			 (int)egress.executions);
}

static json_t *
tool_servers(const struct operation *o)
{
	const struct upstream *upstream = engine_upstream(o->from.engine);
	const struct upstream_server *server;
	json_t *list = json_array();

	for (size_t i = 0; (server = upstream_server(upstream, i)); i++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s,s:I,s:I}", "server",
			server->name, "state", upstream_state_name(server->state), "trouble",
			server->text, "revision", server->revision, "tools",
			(json_int_t)server->n_tools, "left_out", (json_int_t)server->left_out));
	return list;
}

static json_t *
operation_audit(const struct operation *o)
{
	const struct audit *log = gate_audit(governance_gate(o->from.governance));
	struct audit_counts counts;

	audit_count(log, &counts);
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b}",
			 "written", (json_int_t)counts.written, "lost", (json_int_t)counts.lost,
			 "left_out", (json_int_t)counts.left_out,
			 "dropped_files", (json_int_t)counts.dropped,
			 "bytes", (json_int_t)counts.file_bytes,
			 "most_bytes", (json_int_t)counts.file_bytes_max,
			 "free_bytes", (json_int_t)counts.disk_free_bytes,
			 "failing", audit_is_failing(log));
}

static void
put_alarm(void *arg, const struct gate_alarm *alarm)
{
	if (json_array_size(arg) < ALARMS_MAX)
		json_array_append_new(arg, json_pack("{s:s,s:s,s:I,s:I,s:I}", "tenant",
			alarm->principal, "pattern", alarm->pattern, "count",
			(json_int_t)alarm->count, "usual", (json_int_t)alarm->usual,
			"seconds_ago", (json_int_t)alarm->seconds_ago));
}

static json_t *
operation_alarms(const struct operation *o)
{
	json_t *list = json_array();

	gate_each_alarm(governance_gate(o->from.governance), put_alarm, list);
	return list;
}

static json_t *
operation_reloads(const struct operation *o)
{
	const struct governance_reloads *told = governance_reloads(o->from.governance);

	return json_pack("{s:o,s:o,s:o,s:I,s:I}", "last", operation_time_text(told->last), "done",
			 told->last ? json_boolean(told->last_done) : json_null(), "text",
			 text_or_null(told->text), "succeeded", (json_int_t)told->succeeded,
			 "failed", (json_int_t)told->failed);
}

/* One member for each kind of helper that this service has, or has lost. */
static json_t *
operation_helpers(void)
{
	json_t *list = json_array();

	for (unsigned int kind = 0; kind < HELPER_KIND_COUNT; kind++) {
		const struct helper_state state = helper_state(kind);

		if (state.up == 0 && state.away == 0)
			continue;
		json_array_append_new(list, json_pack("{s:s,s:s,s:o,s:I}", "helper",
			helper_name(kind), "state", state.away > 0 ? "away" : "up", "trouble",
			text_or_null(state.away > 0 ? helper_without(kind) : NULL), "lost",
			(json_int_t)state.lost));
	}
	return list;
}

/* All that is finite for the service, and how tenants share it. */
static json_t *
operation_finite(void)
{
	json_t *list = xalloc_check(json_loads(finite_table, 0, NULL)), *row;
	size_t i;

	json_array_foreach(list, i, row)
		json_object_del(row, "test");
	return list;
}

json_t *
operation_status(const struct operation *o)
{
	const struct gate *gate = governance_gate(o->from.governance);
	json_t *answer = json_object();
	struct listing listing;

	operation_put(answer, "service", operation_service(o));
	operation_put(answer, "enforcement", operation_enforcement(o));
	operation_put(answer, "clients", operation_clients(o));
	operation_put(answer, "profiles", operation_profiles(o));
	operation_put(answer, "ready", operation_ready(o));
	begin_listing(o, &listing);
	survey_tenants(o->from.engine, operation_on_tenant, &listing);
	operation_put(answer, "tenants", listing.tenants);
	put_uint(answer, "tenants_total", listing.n_tenants);
	operation_put(answer, "sessions", listing.sessions);
	put_uint(answer, "sessions_total", listing.n_sessions);
	operation_put(answer, "executions", operation_executions(o));
	operation_put(answer, "jobs", operation_jobs());
	operation_put(answer, "approvals", json_pack("{s:I}", "pending",
		(json_int_t)approvals_pending(gate_approvals(gate))));
	operation_put(answer, "egress", operation_egress(o));
	operation_put(answer, "tool_servers", tool_servers(o));
	operation_put(answer, "helpers", operation_helpers());
	operation_put(answer, "finite", operation_finite());
	operation_put(answer, "audit", operation_audit(o));
	operation_put(answer, "alarms", operation_alarms(o));
	operation_put(answer, "reload", operation_reloads(o));
	return answer;
}

json_t *
operation_status_of(const struct operation *o, const char *principal)
{
	json_t *answer = json_object();
	struct survey_tenant seen;
	struct listing listing;

	begin_listing(o, &listing);
	if (survey_tenant(o->from.engine, principal, &seen))
		list_sessions(&listing, seen.tenant, true);
	operation_put(answer, "service", operation_service(o));
	operation_put(answer, "enforcement", operation_enforcement(o));
	json_array_append_new(listing.tenants, describe_tenant(o, principal, &seen));
	operation_put(answer, "tenants", listing.tenants);
	operation_put(answer, "sessions", listing.sessions);
	put_uint(answer, "sessions_total", listing.n_sessions);
	return answer;
}
