/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Gauges, from the current state of other modules; metrics.c has the counters. */
#include "supervisor/operate/operation_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/ready.h"
#include "engine/survey.h"
#include "govern/alarms.h"
#include "govern/approvals.h"
#include "govern/audit.h"
#include "govern/gate.h"
#include "govern/metrics.h"
#include "govern/openmetrics.h"
#include "host/helper.h"
#include "http/server.h"
#include "policy/config.h"
#include "supervisor/operate/governance.h"
#include "supervisor/stream.h"
#include "tools/job/background.h"

#define NAME(name) METRICS_PREFIX name

/* One sample without labels. */
static void
gauge(FILE *out, const char *name, const char *unit, const char *help, uint64_t value)
{
	openmetrics_family(out, name, "gauge", unit, help);
	openmetrics_uint(out, name, value, NULL);
}

static void
write_service(const struct operation *o, FILE *out)
{
	struct engine_enforcement how;

	engine_enforcement(o->from.engine, &how);
	openmetrics_family(out, NAME("build"), "info", NULL, "The service.");
	openmetrics_uint(out, NAME("build_info"), 1, "version", PACKAGE_VERSION, NULL);
	openmetrics_family(out, NAME("enforcement"), "info", NULL, "What keeps the limits.");
	openmetrics_uint(out, NAME("enforcement_info"), 1, "memory", engine_enforced_by(how.memory_controller),
			 "pids", engine_enforced_by(how.pids_controller), "cpu", engine_enforced_by(how.cpu_controller),
			 "landlock", how.landlock ? "yes" : "no", "own_uids",
			 how.own_uids ? "yes" : "no", NULL);
	gauge(out, NAME("start_time_seconds"), "seconds", "When it began, since the epoch.",
	      (uint64_t)o->started);
	gauge(out, NAME("uptime_seconds"), "seconds", "Since then.", operation_uptime_s(o));
}

static void
write_helpers(FILE *out)
{
	openmetrics_family(out, NAME("helper_up"), "gauge", NULL,
			   "1: the helper process works; 0: it was lost, and is being made again.");
	for (unsigned int kind = 0; kind < HELPER_KIND_COUNT; kind++) {
		const struct helper_state state = helper_state(kind);

		if (state.up > 0 || state.away > 0)
			openmetrics_uint(out, NAME("helper_up"), state.away == 0, "helper",
					 helper_name(kind), NULL);
	}
	openmetrics_family(out, NAME("helper_losses"), "counter", NULL,
			   "How often a helper process was lost.");
	for (unsigned int kind = 0; kind < HELPER_KIND_COUNT; kind++)
		openmetrics_uint(out, NAME("helper_losses_total"), helper_state(kind).lost,
				 "helper", helper_name(kind), NULL);
}

static void
operation_metrics_write_profiles(const struct operation *o, FILE *out)
{
	struct survey_profile profile[CONFIG_PROFILES_MAX];
	size_t n = survey_profiles(o->from.engine, profile);

	openmetrics_family(out, NAME("workers"), "gauge", NULL,
			   "Workers, by profile and state.");
	for (size_t i = 0; i < n; i++) {
		const struct survey_profile *p = &profile[i];
		const struct {
			const char *state;
			unsigned int count;
		} states[] = {
			{ "starting", p->starting }, { "warm", p->warm }, { "busy", p->running },
			{ "session", p->sessions }, { "spent", p->spent },
			{ "ending", p->ending },
		};

		for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
			openmetrics_uint(out, NAME("workers"), states[k].count, "profile",
					 p->name, "state", states[k].state, NULL);
	}
	openmetrics_family(out, NAME("zygote_ready"), "gauge", NULL,
			   "1: workers of the profile can be made.");
	for (size_t i = 0; i < n; i++)
		openmetrics_uint(out, NAME("zygote_ready"), profile[i].ready, "profile",
				 profile[i].name, NULL);
	openmetrics_family(out, NAME("waiting"), "gauge", NULL,
			   "Executions and sessions that wait for a worker.");
	for (size_t i = 0; i < n; i++)
		openmetrics_uint(out, NAME("waiting"), profile[i].waiting, "profile",
				 profile[i].name, NULL);
}

static void
write_learned(const struct operation *o, FILE *out)
{
	struct survey_profile profile[CONFIG_PROFILES_MAX];
	size_t n = survey_profiles(o->from.engine, profile);

	openmetrics_family(out, NAME("learned_modules"), "gauge", NULL,
			   "Modules that the profile's learned zygote has imported.");
	for (size_t i = 0; i < n; i++)
		openmetrics_uint(out, NAME("learned_modules"),
				 (uint64_t)__builtin_popcountll(profile[i].learned), "profile",
				 profile[i].name, NULL);
	openmetrics_family(out, NAME("learned_scripts"), "counter", NULL,
			   "Scripts and sessions that import a module that can be learned: hit, it "
			   "was learned; miss, not yet.");
	for (size_t i = 0; i < n; i++) {
		openmetrics_uint(out, NAME("learned_scripts_total"), profile[i].hits, "profile",
				 profile[i].name, "result", "hit", NULL);
		openmetrics_uint(out, NAME("learned_scripts_total"), profile[i].misses, "profile",
				 profile[i].name, "result", "miss", NULL);
	}
}

static void
write_ready(const struct operation *o, FILE *out)
{
	struct ready_counts counts;

	ready_count(o->from.engine, &counts);
	openmetrics_family(out, NAME("ready_workers"), "gauge", NULL,
			   "Workers that have imported the modules of a set, and wait for a call.");
	openmetrics_uint(out, NAME("ready_workers"), counts.ready, NULL);
	openmetrics_family(out, NAME("ready_scripts"), "counter", NULL,
			   "Scripts, and sessions that begin, with a set of packages that was used so "
			   "before: hit, a worker was ready; miss, none was.");
	openmetrics_uint(out, NAME("ready_scripts_total"), counts.hits, "result", "hit", NULL);
	openmetrics_uint(out, NAME("ready_scripts_total"), counts.misses, "result", "miss", NULL);
	openmetrics_family(out, NAME("ready_refused"), "counter", NULL,
			   "Workers that could not be made ready, because of what the modules do.");
	openmetrics_uint(out, NAME("ready_refused_total"), counts.refused, NULL);
}

struct totals {
	unsigned int sessions;
	size_t n;
	struct survey_tenant *tenant;	/* n of them; NULL: not wanted */
};

static void
operation_metrics_on_tenant(void *arg, const struct survey_tenant *tenant)
{
	struct totals *totals = arg;

	totals->sessions += tenant->sessions;
	if (totals->tenant && totals->n < METRICS_TENANTS)
		totals->tenant[totals->n++] = *tenant;
}

static void
write_now(const struct operation *o, bool tenants, FILE *out)
{
	struct survey_tenant tenant[METRICS_TENANTS];
	struct totals totals = { .tenant = tenants ? tenant : NULL };
	struct engine_counts counts;
	unsigned int running, kept;

	survey_tenants(o->from.engine, operation_metrics_on_tenant, &totals);
	engine_count(o->from.engine, &counts);
	background_count(NULL, &running, &kept);
	gauge(out, NAME("running"), NULL, "Executions that run.", counts.running);
	gauge(out, NAME("tenants"), NULL, "Tenants with something to keep.", counts.tenants);
	gauge(out, NAME("repl_sessions"), NULL, "Sessions of run_repl, branches not counted.",
	      totals.sessions);
	openmetrics_family(out, NAME("jobs"), "gauge", NULL, "Runs in the background.");
	openmetrics_uint(out, NAME("jobs"), running, "state", "running", NULL);
	openmetrics_uint(out, NAME("jobs"), kept, "state", "kept", NULL);
	openmetrics_family(out, NAME("connections"), "gauge", NULL, "Connected clients.");
	openmetrics_uint(out, NAME("connections"), stream_set_count(o->from.streams),
			 "carrier", "stream", NULL);
	openmetrics_uint(out, NAME("connections"), http_server_count(o->from.http), "carrier",
			 "http", NULL);
	gauge(out, NAME("http_sessions"), NULL, "Sessions of legacy HTTP clients.",
	      http_server_sessions(o->from.http));
	if (tenants) {
		openmetrics_family(out, NAME("tenant_running"), "gauge", NULL,
				   "Executions that run, by tenant.");
		for (size_t i = 0; i < totals.n; i++)
			openmetrics_uint(out, NAME("tenant_running"), totals.tenant[i].running,
					 "tenant", tenant_principal(totals.tenant[i].tenant), NULL);
		openmetrics_family(out, NAME("tenant_queued"), "gauge", NULL,
				   "Executions that wait, by tenant.");
		for (size_t i = 0; i < totals.n; i++)
			openmetrics_uint(out, NAME("tenant_queued"), totals.tenant[i].queued,
					 "tenant", tenant_principal(totals.tenant[i].tenant), NULL);
		openmetrics_family(out, NAME("tenant_memory_bytes"), "gauge", "bytes",
				   "Memory of a tenant's workers.");
		for (size_t i = 0; i < totals.n; i++)
			openmetrics_uint(out, NAME("tenant_memory_bytes"),
					 totals.tenant[i].memory_bytes, "tenant",
				tenant_principal(totals.tenant[i].tenant), NULL);
	}
}

static void
write_governance(const struct operation *o, FILE *out)
{
	const struct governance_reloads *reloads = governance_reloads(o->from.governance);
	const struct gate *gate = governance_gate(o->from.governance);
	const struct audit *audit = gate_audit(gate);
	struct egress_state egress;
	struct audit_counts counts;
	int64_t oldest, now = time(NULL);

	audit_count(audit, &counts);
	survey_egress(o->from.engine, &egress);
	gauge(out, NAME("approvals_pending"), NULL, "Requests that wait for a decision.",
	      approvals_pending(gate_approvals(gate)));
	oldest = approvals_oldest(gate_approvals(gate));
	gauge(out, NAME("approvals_oldest_seconds"), "seconds",
	      "How long the oldest of them has waited.",
	      oldest > 0 && now > oldest ? (uint64_t)(now - oldest) : 0);
	gauge(out, NAME("egress_executions"), NULL, "Executions that may go out.",
	      egress.executions);
	openmetrics_family(out, NAME("audit_records"), "counter", NULL,
			   "Records of the audit log that were written.");
	openmetrics_uint(out, NAME("audit_records_total"), counts.written, NULL);
	openmetrics_family(out, NAME("audit_lost_records"), "counter", NULL,
			   "Records that could not be written.");
	openmetrics_uint(out, NAME("audit_lost_records_total"), counts.lost, NULL);
	openmetrics_family(out, NAME("audit_left_out_records"), "counter", NULL,
			   "Records that were left out because a tenant had its share.");
	openmetrics_uint(out, NAME("audit_left_out_records_total"), counts.left_out, NULL);
	openmetrics_family(out, NAME("audit_dropped_files"), "counter", NULL,
			   "Files that were removed to stay within keep_bytes.");
	openmetrics_uint(out, NAME("audit_dropped_files_total"), counts.dropped, NULL);
	gauge(out, NAME("audit_bytes"), "bytes", "Of the audit log's file and those before it.",
	      counts.file_bytes);
	gauge(out, NAME("audit_most_bytes"), "bytes",
	      "What these may become; 0: without bound, or there is no file.",
	      counts.file_bytes_max);
	gauge(out, NAME("audit_free_bytes"), "bytes", "Free on their disk.",
	      counts.disk_free_bytes);
	gauge(out, NAME("audit_failing"), NULL, "1: the last record could not be written.",
	      audit_is_failing(audit));
	openmetrics_family(out, NAME("alarms"), "counter", NULL,
			   "Alarms about what a tenant does, by what is unusual.");
	for (unsigned int i = 0; i < ALARM_PATTERNS; i++)
		openmetrics_uint(out, NAME("alarms_total"), gate_alarms_raised(gate, i), "pattern",
				 alarm_name(i), NULL);
	openmetrics_family(out, NAME("reloads"), "counter", NULL,
			   "How often the configuration was read again.");
	openmetrics_uint(out, NAME("reloads_total"), reloads->succeeded, "result", "done", NULL);
	openmetrics_uint(out, NAME("reloads_total"), reloads->failed, "result", "failed", NULL);
}

char *
operation_metrics(const struct operation *o, bool tenants, size_t *len_r)
{
	char *text = NULL;
	FILE *out = xalloc_check(open_memstream(&text, len_r));

	write_service(o, out);
	write_helpers(out);
	operation_metrics_write_profiles(o, out);
	write_learned(o, out);
	write_ready(o, out);
	write_now(o, tenants, out);
	write_governance(o, out);
	metrics_write(o->from.metrics, tenants, out);
	openmetrics_end(out);
	xassert(fclose(out) == 0);
	return text;
}
