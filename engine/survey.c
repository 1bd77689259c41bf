/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing; it counts objects of other modules. */
#include "engine/survey.h"

#include <string.h>

#include "base/clock.h"
#include "engine/engine_parts.h"
#include "engine/execution.h"
#include "engine/execution_parts.h"
#include "engine/learning.h"
#include "engine/pool.h"
#include "engine/running.h"
#include "engine/tenant.h"
#include "engine/volume.h"
#include "engine/worker.h"
#include "engine/zygote.h"

static void
count_worker(struct survey_profile *profile, const struct worker *worker)
{
	switch (worker->state) {
	case WORKER_STARTING:
		profile->starting++;
		break;
	case WORKER_WARM:
		profile->warm++;
		break;
	case WORKER_LEASED:
		if (worker->recipe != NULL)
			profile->warm++;
		else
			profile->sessions++;
		break;
	case WORKER_RUNNING:
		profile->running++;
		break;
	case WORKER_SPENT:
		profile->spent++;
		break;
	case WORKER_ENDING:
	case WORKER_STATE_COUNT:
		profile->ending++;
	}
}

static void
list_unlearned(struct survey_profile *profile, const struct zygote *learned)
{
	for (size_t i = 0; i < LEARNABLE_MAX; i++)
		if (zygote_reason(learned, i))
			profile->unlearned[profile->n_unlearned++] = zygote_reason(learned, i);
}

size_t
survey_profiles(const struct engine *engine, struct survey_profile *profile_r)
{
	const struct pool *pool = engine->pool;
	const struct tenant *tenant;
	const struct worker *worker;

	for (unsigned int i = 0; POOL_USUAL(i) < pool->n_kinds; i++) {
		const struct zygote *zygote = pool->profile[POOL_USUAL(i)].zygote;
		const struct learning *learning = &engine->learning[i];

		profile_r[i] = (struct survey_profile){
			.name = engine->config->profile[i].name,
			.ready = zygote_is_ready(zygote),
			.trouble = zygote_trouble(zygote),
			.learned = zygote_learned(pool->profile[POOL_LEARNED(i)].zygote),
			.hits = learning->hits,
			.misses = learning->misses,
		};
		list_unlearned(&profile_r[i], pool->profile[POOL_LEARNED(i)].zygote);
	}
	for (unsigned int i = 0; i < POOL_BUCKETS; i++)
		LIST_FOREACH(worker, &pool->by_serial[i], all_link)
			if (worker->share != NULL)
				count_worker(&profile_r[worker->share->profile->index], worker);
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			for (unsigned int k = 0; k < tenant->n_shares; k++)
				profile_r[k / 2].waiting += tenant->queue.waiting[k] +
							    tenant->share[k].n_opening;
	return pool->n_kinds / 2;
}

/* The processor time that a running execution has used so far, and that was not charged yet.
 * Without a cgroup: up to the last look. */
static uint64_t
used_ms(const struct execution *e)
{
	const struct worker *w = e->worker;
	uint64_t us = 0;

	if (w->leaf == NULL || cgroup_leaf_cpu(w->leaf, &us) < 0 || us < w->cpu_baseline_us)
		return e->facts.cpu_ms - e->usage.charged_ms;
	us = (us - w->cpu_baseline_us) / 1000;
	return us > e->usage.charged_ms ? us - e->usage.charged_ms : 0;
}

static void
survey_look(const struct tenant *tenant, struct survey_tenant *tenant_r)
{
	const struct engine *engine = tenant->engine;
	const struct execution *e;

	*tenant_r = (struct survey_tenant){
		.tenant = tenant,
		.holders = tenant->holders,
		.running = tenant->queue.n_running,
		.queued = tenant->queue.n_waiting,
		.running_max = tenant->queue.running_max,
		.queued_max = tenant->queue.waiting_max,
		.sessions = tenant->repls,
		.workers = tenant->workers,
		.volumes = volumes_count(&tenant->volumes),
	};
	if (tenant->queue.n_running > 0)
		TAILQ_FOREACH(e, &engine->running, link) {
			if (e->tenant != tenant)
				continue;
			tenant_r->cpu_ms += used_ms(e);
			tenant_r->memory_bytes += e->facts.peak_memory_bytes;
		}
	if (engine->memory_counted && tenant->cgroup != NULL)
		cgroup_tenant_memory(tenant->cgroup, &tenant_r->memory_bytes);
}

void
survey_tenants(const struct engine *engine,
	       void (*visit)(void *arg, const struct survey_tenant *tenant), void *arg)
{
	const struct tenant *tenant;
	struct survey_tenant seen;

	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link) {
			survey_look(tenant, &seen);
			visit(arg, &seen);
		}
}

bool
survey_tenant(const struct engine *engine, const char *principal,
	      struct survey_tenant *tenant_r)
{
	const struct tenant *tenant;

	memset(tenant_r, 0, sizeof(*tenant_r));
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			if (strcmp(tenant->principal, principal) == 0) {
				survey_look(tenant, tenant_r);
				return true;
			}
	return false;
}

/* ---- executions ---- */

/* Calls each() for every execution that runs, then for every one that waits. */
static void
each_execution(const struct engine *engine,
	       void (*each)(void *arg, struct execution *execution), void *arg)
{
	const struct tenant *tenant;
	struct sched_item *item;
	struct execution *e;

	TAILQ_FOREACH(e, &engine->running, link)
		each(arg, e);
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			for (unsigned int kind = 0; kind < SCHED_KINDS_MAX; kind++)
				TAILQ_FOREACH(item, &tenant->queue.items[kind], link)
					each(arg, execution_of(item));
}

struct visitor {
	void (*visit)(void *arg, const struct survey_execution *execution);
	void *arg;
	uint64_t now_us;
};

static void
show_execution(void *arg, struct execution *e)
{
	const struct visitor *visitor = arg;
	struct execution_now now = { .cpu_ms = 0 };
	struct survey_execution seen = {
		.id = e->id,
		.principal = e->tenant->principal,
		.profile = e->engine->config->profile[e->profile].name,
		.cell = e->repl != NULL,
		.runs = e->state == EXECUTION_RUNNING,
		.script = e->request.script.at,
		.script_len = e->request.script.len,
		.asked_ms = (visitor->now_us - e->usage.asked_us) / 1000,
	};

	if (e->request.internal)
		return;
	if (execution_uses(e, &now)) {
		seen.cpu_ms = now.cpu_ms;
		seen.memory_bytes = now.memory_bytes;
	}
	visitor->visit(visitor->arg, &seen);
}

void
survey_executions(const struct engine *engine,
		  void (*visit)(void *arg, const struct survey_execution *execution), void *arg)
{
	struct visitor visitor = { visit, arg, clock_us() };

	each_execution(engine, show_execution, &visitor);
}

struct search {
	const char *id;
	struct execution *found;
};

static void
match_execution(void *arg, struct execution *e)
{
	struct search *search = arg;

	if (!e->request.internal && strcmp(e->id, search->id) == 0)
		search->found = e;
}

bool
survey_stop(struct engine *engine, const char *id)
{
	struct search search = { .id = id };

	each_execution(engine, match_execution, &search);
	if (search.found)
		execution_cancel(search.found, CANCEL_BY_OPERATOR);
	return search.found;
}

void
survey_egress(const struct engine *engine, struct egress_state *state_r)
{
	egress_look(engine->egress, state_r);
}
