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

static void
write_service(const struct operation *o, struct openmetrics *to)
{
	struct engine_enforcement how;

	engine_enforcement(o->from.engine, &how);
	openmetrics_family(to, "build", "info", NULL, "The service.");
	openmetrics_uint(to, 1, "version", PACKAGE_VERSION, NULL);
	openmetrics_family(to, "enforcement", "info", NULL, "What keeps the limits.");
	openmetrics_uint(to, 1, "memory", engine_enforced_by(how.memory_controller), "pids",
			 engine_enforced_by(how.pids_controller), "cpu",
			 engine_enforced_by(how.cpu_controller), "landlock",
			 how.landlock ? "yes" : "no", "own_uids", how.own_uids ? "yes" : "no", NULL);
	openmetrics_one(to, "start_time_seconds", "gauge", "seconds",
			"When it began, since the epoch.", (uint64_t)o->started);
	openmetrics_one(to, "uptime_seconds", "gauge", "seconds", "Since then.",
			operation_uptime_s(o));
}

static void
write_helpers(struct openmetrics *to)
{
	openmetrics_family(to, "helper_up", "gauge", NULL,
			   "1: the helper process works; 0: it was lost, and is being made again.");
	for (unsigned int kind = 0; kind < HELPER_KIND_COUNT; kind++) {
		const struct helper_state state = helper_state(kind);

		if (state.up > 0 || state.away > 0)
			openmetrics_uint(to, state.away == 0, "helper", helper_name(kind), NULL);
	}
	openmetrics_family(to, "helper_losses", "counter", NULL,
			   "How often a helper process was lost.");
	for (unsigned int kind = 0; kind < HELPER_KIND_COUNT; kind++)
		openmetrics_uint(to, helper_state(kind).lost, "helper", helper_name(kind), NULL);
}

static void
operation_metrics_write_profiles(const struct operation *o, struct openmetrics *to)
{
	struct survey_profile profile[CONFIG_PROFILES_MAX], *end, *p;

	end = profile + survey_profiles(o->from.engine, profile);
	openmetrics_family(to, "workers", "gauge", NULL, "Workers, by profile and state.");
	for (p = profile; p < end; p++) {
		const struct {
			const char *state;
			unsigned int count;
		} states[] = {
			{ "starting", p->starting }, { "warm", p->warm }, { "busy", p->running },
			{ "session", p->sessions }, { "spent", p->spent },
			{ "ending", p->ending },
		};

		for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
			openmetrics_uint(to, states[k].count, "profile", p->name, "state",
					 states[k].state, NULL);
	}
	openmetrics_family(to, "zygote_ready", "gauge", NULL,
			   "1: workers of the profile can be made.");
	for (p = profile; p < end; p++)
		openmetrics_uint(to, p->ready, "profile", p->name, NULL);
	openmetrics_family(to, "waiting", "gauge", NULL,
			   "Executions and sessions that wait for a worker.");
	for (p = profile; p < end; p++)
		openmetrics_uint(to, p->waiting, "profile", p->name, NULL);
	openmetrics_family(to, "learned_modules", "gauge", NULL,
			   "Modules that the profile's learned zygote has imported.");
	for (p = profile; p < end; p++)
		openmetrics_uint(to, (uint64_t)__builtin_popcountll(p->learned), "profile", p->name,
				 NULL);
	openmetrics_family(to, "learned_scripts", "counter", NULL,
			   "Scripts and sessions that import a module that can be learned: hit, it "
			   "was learned; miss, not yet.");
	for (p = profile; p < end; p++) {
		openmetrics_uint(to, p->hits, "profile", p->name, "result", "hit", NULL);
		openmetrics_uint(to, p->misses, "profile", p->name, "result", "miss", NULL);
	}
}

static void
write_ready(const struct operation *o, struct openmetrics *to)
{
	struct ready_counts counts;

	ready_count(o->from.engine, &counts);
	openmetrics_one(to, "ready_workers", "gauge", NULL,
			"Workers that have imported the modules of a set, and wait for a call.",
			counts.ready);
	openmetrics_family(to, "ready_scripts", "counter", NULL,
			   "Scripts, and sessions that begin, with a set of packages that was used so "
			   "before: hit, a worker was ready; miss, none was.");
	openmetrics_uint(to, counts.hits, "result", "hit", NULL);
	openmetrics_uint(to, counts.misses, "result", "miss", NULL);
	openmetrics_one(to, "ready_refused", "counter", NULL,
			"Workers that could not be made ready, because of what the modules do.",
			counts.refused);
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
write_now(const struct operation *o, bool tenants, struct openmetrics *to)
{
	struct survey_tenant tenant[METRICS_TENANTS], *one;
	struct totals totals = { .tenant = tenants ? tenant : NULL };
	struct engine_counts counts;
	unsigned int running, kept;

	survey_tenants(o->from.engine, operation_metrics_on_tenant, &totals);
	engine_count(o->from.engine, &counts);
	background_count(NULL, &running, &kept);
	openmetrics_one(to, "running", "gauge", NULL, "Executions that run.", counts.running);
	openmetrics_one(to, "tenants", "gauge", NULL, "Tenants with something to keep.",
			counts.tenants);
	openmetrics_one(to, "repl_sessions", "gauge", NULL,
			"Sessions of run_repl, branches not counted.", totals.sessions);
	openmetrics_family(to, "jobs", "gauge", NULL, "Runs in the background.");
	openmetrics_uint(to, running, "state", "running", NULL);
	openmetrics_uint(to, kept, "state", "kept", NULL);
	openmetrics_family(to, "connections", "gauge", NULL, "Connected clients.");
	openmetrics_uint(to, stream_set_count(o->from.streams), "carrier", "stream", NULL);
	openmetrics_uint(to, http_server_count(o->from.http), "carrier", "http", NULL);
	openmetrics_one(to, "http_sessions", "gauge", NULL, "Sessions of legacy HTTP clients.",
			http_server_sessions(o->from.http));
	if (!tenants)
		return;
	openmetrics_family(to, "tenant_running", "gauge", NULL, "Executions that run, by tenant.");
	for (one = tenant; one < tenant + totals.n; one++)
		openmetrics_uint(to, one->running, "tenant", tenant_principal(one->tenant), NULL);
	openmetrics_family(to, "tenant_queued", "gauge", NULL, "Executions that wait, by tenant.");
	for (one = tenant; one < tenant + totals.n; one++)
		openmetrics_uint(to, one->queued, "tenant", tenant_principal(one->tenant), NULL);
	openmetrics_family(to, "tenant_memory_bytes", "gauge", "bytes",
			   "Memory of a tenant's workers.");
	for (one = tenant; one < tenant + totals.n; one++)
		openmetrics_uint(to, one->memory_bytes, "tenant", tenant_principal(one->tenant),
				 NULL);
}

static void
write_governance(const struct operation *o, struct openmetrics *to)
{
	const struct governance_reloads *reloads = governance_reloads(o->from.governance);
	const struct gate *gate = governance_gate(o->from.governance);
	const struct audit *audit = gate_audit(gate);
	struct egress_state egress;
	struct audit_counts counts;
	int64_t oldest, now = time(NULL);

	audit_count(audit, &counts);
	survey_egress(o->from.engine, &egress);
	openmetrics_one(to, "approvals_pending", "gauge", NULL, "Requests that wait for a decision.",
			approvals_pending(gate_approvals(gate)));
	oldest = approvals_oldest(gate_approvals(gate));
	openmetrics_one(to, "approvals_oldest_seconds", "gauge", "seconds",
			"How long the oldest of them has waited.",
			oldest > 0 && now > oldest ? (uint64_t)(now - oldest) : 0);
	openmetrics_one(to, "egress_executions", "gauge", NULL, "Executions that may go out.",
			egress.executions);
	openmetrics_one(to, "audit_records", "counter", NULL,
			"Records of the audit log that were written.", counts.written);
	openmetrics_one(to, "audit_lost_records", "counter", NULL,
			"Records that could not be written.", counts.lost);
	openmetrics_one(to, "audit_left_out_records", "counter", NULL,
			"Records that were left out because a tenant had its share.",
			counts.left_out);
	openmetrics_one(to, "audit_dropped_files", "counter", NULL,
			"Files that were removed to stay within keep_bytes.", counts.dropped);
	openmetrics_one(to, "audit_bytes", "gauge", "bytes",
			"Of the audit log's file and those before it.", counts.file_bytes);
	openmetrics_one(to, "audit_most_bytes", "gauge", "bytes",
			"What these may become; 0: without bound, or there is no file.",
			counts.file_bytes_max);
	openmetrics_one(to, "audit_free_bytes", "gauge", "bytes", "Free on their disk.",
			counts.disk_free_bytes);
	openmetrics_one(to, "audit_failing", "gauge", NULL,
			"1: the last record could not be written.", audit_is_failing(audit));
	openmetrics_family(to, "alarms", "counter", NULL,
			   "Alarms about what a tenant does, by what is unusual.");
	for (unsigned int i = 0; i < ALARM_PATTERNS; i++)
		openmetrics_uint(to, gate_alarms_raised(gate, i), "pattern", alarm_name(i), NULL);
	openmetrics_family(to, "reloads", "counter", NULL,
			   "How often the configuration was read again.");
	openmetrics_uint(to, reloads->succeeded, "result", "done", NULL);
	openmetrics_uint(to, reloads->failed, "result", "failed", NULL);
}

char *
operation_metrics(const struct operation *o, bool tenants, bool plain, size_t *len_r)
{
	char *text = NULL;
	struct openmetrics to = { .out = xalloc_check(open_memstream(&text, len_r)),
				  .plain = plain };

	write_service(o, &to);
	write_helpers(&to);
	operation_metrics_write_profiles(o, &to);
	write_ready(o, &to);
	write_now(o, tenants, &to);
	write_governance(o, &to);
	metrics_write(o->from.metrics, tenants, &to);
	openmetrics_end(&to);
	xassert(fclose(to.out) == 0);
	return text;
}
