/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: counters and histograms.
 * Reads:   verdicts and outcomes of the engine; no data of a client. */
#include "govern/metrics.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "engine/execution.h"
#include "engine/observer.h"
#include "govern/openmetrics.h"

#define VERDICTS_MAX 16		/* verdicts about connections */
#define STAYS_MS 3600000	/* a tenant that was active within this time keeps its slot */

struct slot {
	char *principal;		/* NULL: free */
	struct metrics_tenant count;
	uint64_t heard_ms;
};

/* Calls of a tool of another server. */
struct tool_slot {
	char *server;			/* NULL: free */
	char *tool;			/* NULL: those that were not sent to the server */
	uint64_t ended[TOOL_ENDS], ms, bytes;
};

struct metrics {
	struct engine_observer observer;
	const struct engine_observer *next;
	uint64_t refused_by_quota, refused;	/* before they became executions */
	struct histogram waited, ran[OUTCOME_STATUS_COUNT];
	uint64_t over[OUTCOME_STATUS_COUNT];
	struct slot tenant[METRICS_TENANTS];
	struct metrics_tenant others;
	struct {
		const char *verdict;		/* a static string */
		uint64_t count;
	} connection[VERDICTS_MAX];
	uint64_t sent, received;
	uint64_t input[INPUT_COUNT];
	uint64_t imports_refused;
	struct tool_slot tool[METRICS_TOOLS + 1];	/* the last one: all others */
};

/* ---- tenants ---- */

static struct slot *
metrics_find(const struct metrics *metrics, const char *principal)
{
	for (size_t i = 0; i < METRICS_TENANTS && metrics->tenant[i].principal; i++)
		if (strcmp(metrics->tenant[i].principal, principal) == 0)
			return (struct slot *)&metrics->tenant[i];
	return NULL;
}

/* Returns a free slot. If there is none, frees the slot that was idle for longest, if that is at
 * least STAYS_MS. NULL: there is no such slot. */
static struct slot *
metrics_make_room(struct metrics *metrics)
{
	struct slot *slot = metrics->tenant;

	for (size_t i = 0; i < METRICS_TENANTS; i++) {
		if (!metrics->tenant[i].principal)
			return &metrics->tenant[i];
		if (metrics->tenant[i].heard_ms < slot->heard_ms)
			slot = &metrics->tenant[i];
	}
	if (clock_ms() - slot->heard_ms < STAYS_MS)
		return NULL;
	metrics->others.executions += slot->count.executions;
	metrics->others.cpu_ms += slot->count.cpu_ms;
	metrics->others.limits_hit += slot->count.limits_hit;
	metrics->others.imports_refused += slot->count.imports_refused;
	free(slot->principal);
	*slot = (struct slot){ .principal = NULL };
	return slot;
}

static struct metrics_tenant *
count_of(struct metrics *metrics, const char *principal)
{
	struct slot *slot = metrics_find(metrics, principal);

	if (!slot) {
		slot = metrics_make_room(metrics);
		if (!slot)
			return &metrics->others;
		slot->principal = xstrdup(principal);
	}
	slot->heard_ms = clock_ms();
	return &slot->count;
}

bool
metrics_tenant(const struct metrics *metrics, const char *principal,
	       struct metrics_tenant *tenant_r)
{
	const struct slot *slot = metrics_find(metrics, principal);

	*tenant_r = slot ? slot->count : (struct metrics_tenant){ .executions = 0 };
	return slot;
}

void
metrics_sum(const struct metrics *metrics, struct metrics_sum *sum_r)
{
	*sum_r = (struct metrics_sum){
		.refused = metrics->refused_by_quota + metrics->refused,
	};
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++) {
		sum_r->executions += metrics->over[i];
		if (outcome_is_limit((enum outcome_status)i))
			sum_r->limits_hit += metrics->over[i];
	}
}

/* ---- events of the engine ---- */

static int
metrics_on_start(void *arg, const struct engine_event *event, struct why *why_r)
{
	struct metrics *metrics = arg;
	int r = metrics->next ? metrics->next->on_start(metrics->next->arg, event, why_r) : 0;

	if (r == -EDQUOT)
		metrics->refused_by_quota++;
	else if (r < 0)
		metrics->refused++;
	return r;
}

static void
metrics_on_end(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	struct metrics *metrics = arg;
	struct metrics_tenant *count = count_of(metrics, tenant_principal(event->tenant));

	metrics->over[outcome->status]++;
	if (event->ran_us > 0) {
		histogram_add(&metrics->waited, event->waited_us);
		histogram_add(&metrics->ran[outcome->status], event->ran_us);
	}
	count->executions++;
	count->limits_hit += outcome_is_limit(outcome->status);
	count->imports_refused += outcome->n_refused_imports > 0;
	metrics->imports_refused += outcome->n_refused_imports > 0;
	if (metrics->next)
		metrics->next->on_end(metrics->next->arg, event, outcome);
}

static void
metrics_on_answered(void *arg, const struct engine_event *event, const struct outcome *outcome)
{
	const struct metrics *metrics = arg;

	if (metrics->next)
		metrics->next->on_answered(metrics->next->arg, event, outcome);
}

static uint64_t
metrics_on_cpu(void *arg, const struct tenant *tenant, uint64_t cpu_ms)
{
	struct metrics *metrics = arg;

	if (cpu_ms > 0)
		count_of(metrics, tenant_principal(tenant))->cpu_ms += cpu_ms;
	return metrics->next ? metrics->next->on_cpu(metrics->next->arg, tenant, cpu_ms)
			     : UINT64_MAX;
}

static void
metrics_on_connection(void *arg, const struct engine_connection *connection)
{
	struct metrics *metrics = arg;
	size_t i = 0;

	while (i < VERDICTS_MAX - 1 && metrics->connection[i].verdict &&
	       strcmp(metrics->connection[i].verdict, connection->verdict) != 0)
		i++;
	metrics->connection[i].verdict = connection->verdict;
	metrics->connection[i].count++;
	metrics->sent += connection->sent;
	metrics->received += connection->received;
	if (metrics->next && metrics->next->on_connection)
		metrics->next->on_connection(metrics->next->arg, connection);
}

static void
metrics_on_input(void *arg, enum engine_input what)
{
	struct metrics *metrics = arg;

	metrics->input[what]++;
	if (metrics->next && metrics->next->on_input)
		metrics->next->on_input(metrics->next->arg, what);
}

static bool
is_slot_of(const struct tool_slot *slot, const struct engine_tool_call *call)
{
	return strcmp(slot->server, call->server) == 0 && !slot->tool == !call->tool &&
	       (!slot->tool || strcmp(slot->tool, call->tool) == 0);
}

static struct tool_slot *
tool_of(struct metrics *metrics, const struct engine_tool_call *call)
{
	struct tool_slot *others = &metrics->tool[METRICS_TOOLS], *slot = metrics->tool;

	while (slot < others && slot->server && !is_slot_of(slot, call))
		slot++;
	if (!slot->server) {
		slot->server = xstrdup(slot < others ? call->server : "other");
		slot->tool = slot < others && call->tool ? xstrdup(call->tool) : NULL;
	}
	return slot;
}

static void
on_tool_call(void *arg, const struct engine_tool_call *call)
{
	struct metrics *metrics = arg;
	struct tool_slot *slot = tool_of(metrics, call);

	slot->ended[call->end]++;
	slot->ms += call->ms;
	slot->bytes += call->bytes;
	if (metrics->next && metrics->next->on_tool_call)
		metrics->next->on_tool_call(metrics->next->arg, call);
}

const struct engine_observer *
metrics_observer(struct metrics *metrics, const struct engine_observer *next)
{
	metrics->next = next;
	return &metrics->observer;
}

struct metrics *
metrics_new(void)
{
	struct metrics *metrics = xcalloc(1, sizeof(*metrics));

	metrics->observer = (struct engine_observer){ .on_start = metrics_on_start,
						      .on_end = metrics_on_end,
						      .on_answered = metrics_on_answered,
						      .on_cpu = metrics_on_cpu,
						      .on_connection = metrics_on_connection,
						      .on_input = metrics_on_input,
						      .on_tool_call = on_tool_call,
						      .arg = metrics };
	return metrics;
}

void
metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < METRICS_TENANTS; i++)
		free(metrics->tenant[i].principal);
	for (size_t i = 0; i <= METRICS_TOOLS; i++) {
		free(metrics->tool[i].server);
		free(metrics->tool[i].tool);
	}
	free(metrics);
}

/* ---- as text ---- */

static void
write_executions(const struct metrics *metrics, struct openmetrics *to)
{
	openmetrics_family(to, "executions", "counter", NULL,
			   "Executions that are over, by how they ended.");
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++)
		openmetrics_uint(to, metrics->over[i], "status", outcome_status_name(i), NULL);
	openmetrics_family(to, "limits_hit", "counter", NULL, "Executions that a limit ended.");
	for (int i = OUTCOME_TIMEOUT; i <= OUTCOME_DISK_LIMIT; i++)
		openmetrics_uint(to, metrics->over[i], "limit", outcome_status_name(i), NULL);
	openmetrics_family(to, "executions_refused", "counter", NULL,
			   "Executions that were not let be.");
	openmetrics_uint(to, metrics->refused_by_quota, "why", "quota", NULL);
	openmetrics_uint(to, metrics->refused, "why", "other", NULL);
	openmetrics_one(to, "imports_refused", "counter", NULL,
			"Executions of which the policy refused an import.",
			metrics->imports_refused);
	openmetrics_family(to, "queue_wait_seconds", "histogram", "seconds",
			   "From a call until it runs in a worker.");
	openmetrics_histogram(to, &metrics->waited, NULL, NULL);
	openmetrics_family(to, "execution_seconds", "histogram", "seconds",
			   "How long executions ran, by how they ended.");
	for (int i = 0; i < OUTCOME_STATUS_COUNT; i++)
		if (i == OUTCOME_OK || histogram_count(&metrics->ran[i]) > 0)
			openmetrics_histogram(to, &metrics->ran[i], "status",
					      outcome_status_name(i));
}

/* The samples of a family must stand together, so each family is a walk of its own. */
static void
write_tools(const struct metrics *metrics, struct openmetrics *to)
{
	const struct tool_slot *end = metrics->tool;

	while (end <= metrics->tool + METRICS_TOOLS && end->server)
		end++;
	openmetrics_family(to, "tool_calls", "counter", NULL,
			   "Calls of other servers' tools, by how they ended.");
	for (const struct tool_slot *slot = metrics->tool; slot < end; slot++)
		for (unsigned int how = 0; how < TOOL_ENDS; how++)
			if (slot->ended[how] > 0)
				openmetrics_uint(to, slot->ended[how], "server", slot->server,
						 "tool", slot->tool ? slot->tool : "other",
						 "status", tool_end_name(how), NULL);
	openmetrics_family(to, "tool_call_seconds", "counter", "seconds",
			   "How long these servers took.");
	for (const struct tool_slot *slot = metrics->tool; slot < end; slot++)
		openmetrics_real(to, (double)slot->ms / 1000, "server", slot->server, "tool",
				 slot->tool ? slot->tool : "other", NULL);
	openmetrics_family(to, "tool_call_bytes", "counter", "bytes",
			   "Results that scripts have got.");
	for (const struct tool_slot *slot = metrics->tool; slot < end; slot++)
		openmetrics_real(to, (double)slot->bytes, "server", slot->server, "tool",
				 slot->tool ? slot->tool : "other", NULL);
}

/* As write_tools. */
static void
metrics_write_tenants(const struct metrics *metrics, struct openmetrics *to)
{
	const struct slot others = { (char *)"other", metrics->others, 0 };
	const struct slot *slot[METRICS_TENANTS + 1];
	size_t n = 0;

	for (size_t i = 0; i < METRICS_TENANTS && metrics->tenant[i].principal; i++)
		slot[n++] = &metrics->tenant[i];
	if (metrics->others.executions > 0)
		slot[n++] = &others;
	openmetrics_family(to, "tenant_executions", "counter", NULL,
			   "Executions that are over, by tenant.");
	for (size_t i = 0; i < n; i++)
		openmetrics_uint(to, slot[i]->count.executions, "tenant", slot[i]->principal, NULL);
	openmetrics_family(to, "tenant_cpu_seconds", "counter", "seconds",
			   "Processor time of these.");
	for (size_t i = 0; i < n; i++)
		openmetrics_real(to, (double)slot[i]->count.cpu_ms / 1000, "tenant",
				 slot[i]->principal, NULL);
	openmetrics_family(to, "tenant_limits_hit", "counter", NULL,
			   "Executions that a limit ended, by tenant.");
	for (size_t i = 0; i < n; i++)
		openmetrics_uint(to, slot[i]->count.limits_hit, "tenant", slot[i]->principal, NULL);
	openmetrics_family(to, "tenant_imports_refused", "counter", NULL,
			   "Executions of which the policy refused an import, by tenant.");
	for (size_t i = 0; i < n; i++)
		openmetrics_uint(to, slot[i]->count.imports_refused, "tenant", slot[i]->principal,
				 NULL);
}

void
metrics_write(const struct metrics *metrics, bool tenants, struct openmetrics *to)
{
	write_executions(metrics, to);
	openmetrics_family(to, "egress_connections", "counter", NULL,
			   "Connections out of scripts, by what became of them.");
	for (size_t i = 0; i < VERDICTS_MAX && metrics->connection[i].verdict; i++)
		openmetrics_uint(to, metrics->connection[i].count, "verdict",
				 metrics->connection[i].verdict, NULL);
	openmetrics_family(to, "egress_bytes", "counter", "bytes", "Bytes that these carried.");
	openmetrics_uint(to, metrics->sent, "direction", "sent", NULL);
	openmetrics_uint(to, metrics->received, "direction", "received", NULL);
	openmetrics_one(to, "input_asked", "counter", NULL, "Questions of scripts to their users.",
			metrics->input[INPUT_ASKED]);
	openmetrics_family(to, "input_ended", "counter", NULL, "These, by how they ended.");
	for (int i = INPUT_LINE; i < INPUT_COUNT; i++)
		openmetrics_uint(to, metrics->input[i], "result", engine_input_name(i), NULL);
	write_tools(metrics, to);
	if (tenants)
		metrics_write_tenants(metrics, to);
}
