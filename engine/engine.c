/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: pool, tenants and executions, and the order in which they are
 * made and freed.
 *
 * An execution waits in its tenant's queue until that tenant's share of the pool has a warm worker
 * of its profile. It then runs in this worker, and is answered once. Zygotes make workers in
 * advance. A worker runs one script, or the cells of one session, and is then ended. */
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "engine/dispatch.h"
#include "engine/egress.h"
#include "engine/engine_parts.h"
#include "engine/execution.h"
#include "engine/execution_parts.h"
#include "engine/keeper.h"
#include "engine/learning.h"
#include "engine/pool.h"
#include "engine/ready.h"
#include "engine/renewal.h"
#include "engine/repl_parts.h"
#include "engine/tenant.h"
#include "engine/upstream.h"
#include "engine/worker.h"
#include "engine/zygote.h"
#include "host/helper.h"
#include "host/launcher.h"
#include "host/tasks.h"

#define SHUTDOWN_MOST_MS 1800
#define SAMPLE_MS 20		/* between two looks at what the kernel does not limit */
#define SOCKETS_MS 100		/* the same, if that is only what no controller counts */
#define KEEPING_MOST_MS 5000	/* the time that sessions have, at a shutdown, to come to rest */

static void
each_tenant(struct engine *engine, void (*visit)(struct tenant *tenant))
{
	struct tenant *tenant, *next;

	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		for (tenant = LIST_FIRST(&engine->tenants[i]); tenant != NULL;
		     tenant = next) {
			next = LIST_NEXT(tenant, link);
			visit(tenant);
		}
}

static void
on_quiet(struct engine *engine)
{
	learning_tend(engine);
	ready_tend(engine);
}

static void
look_after(struct tenant *tenant)
{
	ready_look_after(tenant);
	tenant_look_after(tenant);
}

static void
on_housekeeping(evutil_socket_t, short, void *arg)
{
	static const struct timeval second = { 1, 0 };
	struct engine *engine = arg;
	struct repl *repl;

	LIST_FOREACH(repl, &engine->repls, link)
		repl_look_after(repl);
	each_tenant(engine, look_after);
	helpers_look_after();
	if (engine->pool->seeks_strays)
		worker_adopt_strays(engine);
	on_quiet(engine);
	if (engine->n_tenants > 0)
		evtimer_add(&engine->housekeeping, &second);
	pool_pump(engine);
}

static void
on_deliver(evutil_socket_t, short, void *arg)
{
	execution_deliver(arg);
}

/* ---- ready ---- */

static void
on_tell_ready(evutil_socket_t, short, void *arg)
{
	struct engine *engine = arg;
	void (*on_ready)(void *, int, const char *) = engine->on_ready;

	if (engine->ready_error == 0)
		engine->on_ready = NULL;
	if (on_ready != NULL)
		on_ready(engine->on_ready_arg, engine->ready_error, engine->ready_text);
}

/* The default profile's zygote is ready (error 0) or failed. */
static void
note_ready(struct engine *engine, int error, const char *text)
{
	if (engine->ready_known && engine->ready_error == 0)
		return;
	engine->ready_known = true;
	engine->ready_error = error;
	free(engine->ready_text);
	engine->ready_text = xstrdup(text);
	if (engine->on_ready != NULL)
		event_active(&engine->tell_ready, EV_TIMEOUT, 0);
}

void
engine_when_ready(struct engine *engine,
		  void (*on_ready)(void *arg, int error, const char *text), void *arg)
{
	engine->on_ready = on_ready;
	engine->on_ready_arg = arg;
	if (engine->ready_known)
		event_active(&engine->tell_ready, EV_TIMEOUT, 0);
}

/* ---- the end ---- */

static void
on_shutdown_over(evutil_socket_t, short, void *arg)
{
	struct engine *engine = arg;

	if (engine->shut_down)
		return;
	engine->shut_down = true;
	event_del(&engine->shutdown_timer);
	engine->on_shut_down(engine->on_shut_down_arg);
}

/* Is a shutdown complete? */
static void
check_shutdown(struct engine *engine)
{
	if (engine->shutting_down && !engine->shut_down && TAILQ_EMPTY(&engine->due) &&
	    TAILQ_EMPTY(&engine->long_due) &&
	    pool_is_empty(engine))
		event_active(&engine->shutdown_timer, EV_TIMEOUT, 0);
}

static void
cancel_waiting(struct tenant *tenant)
{
	struct sched_item *item;

	for (unsigned int i = 0; i < SCHED_KINDS_MAX; i++)
		while ((item = TAILQ_FIRST(&tenant->queue.items[i])) != NULL)
			execution_cancel(execution_of(item), CANCEL_SHUTDOWN);
}

void
engine_keep_sessions(struct engine *engine)
{
	engine->keeps_sessions = true;
}

void
engine_shutdown(struct engine *engine, void (*on_done)(void *arg), void *arg)
{
	unsigned int ms = engine->keeps_sessions ? KEEPING_MOST_MS : SHUTDOWN_MOST_MS;
	const struct timeval most = { ms / 1000, ms % 1000 * 1000 };
	struct execution *e, *next;
	struct repl *repl;

	if (engine->shutting_down)
		return;
	engine->shutting_down = true;
	engine->on_shut_down = on_done;
	engine->on_shut_down_arg = arg;
	evtimer_add(&engine->shutdown_timer, &most);
	for (e = TAILQ_FIRST(&engine->running); e != NULL; e = next) {
		/* A cell whose session is kept continues until init has ended it. */
		next = TAILQ_NEXT(e, link);
		execution_cancel(e, CANCEL_SHUTDOWN);
	}
	each_tenant(engine, cancel_waiting);
	pool_stop(engine);
	if (engine->keeps_sessions)
		LIST_FOREACH(repl, &engine->repls, link)
			repl_turn(repl);
	check_shutdown(engine);
}

static void
forget_waiting(struct tenant *tenant)
{
	struct sched_item *item;

	for (unsigned int i = 0; i < SCHED_KINDS_MAX; i++)
		while ((item = TAILQ_FIRST(&tenant->queue.items[i])) != NULL) {
			sched_queue_remove(&tenant->queue, item);
			execution_free(execution_of(item));
		}
}

static void
forget_tenant(struct tenant *tenant)
{
	tenant->workers = 0;
	tenant_free(tenant);
}

void
engine_free(struct engine *engine)
{
	struct execution *e;
	struct repl *repl;

	if (engine == NULL)
		return;
	engine->shutting_down = true;
	while ((e = TAILQ_FIRST(&engine->running)) != NULL) {
		TAILQ_REMOVE(&engine->running, e, link);
		execution_free(e);
	}
	TAILQ_CONCAT(&engine->due, &engine->long_due, link);
	while ((e = TAILQ_FIRST(&engine->due)) != NULL) {
		TAILQ_REMOVE(&engine->due, e, link);
		execution_free(e);
	}
	each_tenant(engine, forget_waiting);
	while ((repl = LIST_FIRST(&engine->repls)) != NULL)
		repl_free(repl);
	each_tenant(engine, forget_tenant);
	renewal_free(engine->renewal);
	ready_free(engine->ready);
	pool_done(engine);
	egress_free(engine->egress);
	upstream_free(engine->upstream);
	event_del(&engine->housekeeping);
	event_del(&engine->deliver);
	event_del(&engine->tell_ready);
	event_del(&engine->shutdown_timer);
	keeper_free(engine->keeper);
	watchdog_free(engine->watchdog);
	if (engine->children_fd >= 0)
		close(engine->children_fd);
	worker_slots_done(&engine->slots);
	if (engine->options.cgroups != NULL)
		cgroup_root_unwatch(engine->options.cgroups);
	learning_save(engine);
	free(engine->learning);
	free(engine->ready_text);
	free(engine);
}

/* ---- the beginning ---- */

static void
engine_describe_limits(struct engine *engine)
{
	const char *text;

	if (engine->memory_counted && engine->pids_counted)
		text = "memory, processes and time are limited by the kernel "
		       "(cgroup v2)";
	else if (engine->options.cgroups != NULL)
		text = "no memory or pids controller here: memory and processes are "
		       "limited by "
		       "rlimits and a watchdog that samples them";
	else
		text = "no cgroup is available: memory, processes and time are limited "
		       "by "
		       "rlimits and a watchdog that samples them";
	snprintf(engine->text, sizeof(engine->text), "%s%s", text,
		 launcher_slots(engine->options.launcher) > 0 ? "" : "; all workers share one uid");
}

static int
set_up(struct engine *engine)
{
	const struct limits *standard = &engine->config->limits.standard;
	const struct cgroup_controllers *have;
	uint32_t slots = launcher_slots(engine->options.launcher), strangers;

	TAILQ_INIT(&engine->due);
	TAILQ_INIT(&engine->long_due);
	TAILQ_INIT(&engine->running);
	LIST_INIT(&engine->repls);
	evtimer_assign(&engine->housekeeping, engine->base, on_housekeeping, engine);
	evtimer_assign(&engine->deliver, engine->base, on_deliver, engine);
	evtimer_assign(&engine->tell_ready, engine->base, on_tell_ready, engine);
	evtimer_assign(&engine->shutdown_timer, engine->base, on_shutdown_over, engine);
	/* The last ids belong to two processes that are not workers: the proxy, and the client of
	 * other servers' tools. */
	strangers = slots > 2 && engine->config->n_tools > 0 ? 2 : slots > 1 ? 1 : 0;
	worker_slots_init(&engine->slots, slots - strangers);
	engine->egress = egress_new(&(struct egress_options){
		.base = engine->base, .launcher = engine->options.launcher,
		.config = engine->config, .observer = engine->options.observer,
	});
	if (engine->egress == NULL)
		return -ENOMEM;
	if (engine->config->n_tools > 0)
		engine->upstream = upstream_new(&(struct upstream_options){
			.base = engine->base, .launcher = engine->options.launcher,
			.config = engine->config,
		});
	engine->standard = (struct cgroup_limits){
		.memory_bytes = standard->memory_bytes, .pids = standard->pids + 1,
		.cpu_percent = engine->config->limits.cpu_percent,
	};
	if (engine->options.cgroups != NULL) {
		have = cgroup_root_controllers(engine->options.cgroups);
		engine->memory_counted = have->memory;
		engine->pids_counted = have->pids;
	}
	engine->sampled = !engine->memory_counted || !engine->pids_counted;
	engine->watchdog = watchdog_new(engine->base, engine->sampled ? SAMPLE_MS : SOCKETS_MS);
	engine->tenant_tasks = tasks_bounds(tasks_machine(), UINT64_MAX).tenant;
	engine_describe_limits(engine);
	return engine->options.cgroups != NULL
	       ? cgroup_root_watch(engine->options.cgroups, engine->base) : 0;
}

static int
set_up_keeper(struct engine *engine)
{
	const struct keeper_options options = {
		.base = engine->base,
		.launcher = engine->options.launcher,
		.wants_volumes = engine->config->workspace.volume,
	};

	return keeper_new(&options, &engine->keeper);
}

static bool
may_stay(const struct worker *w)
{
	return w->repl != NULL && repl_may_stay(w->repl);
}

static unsigned int
count_staying(const struct engine *engine)
{
	const struct repl *repl;
	unsigned int n = 0;

	LIST_FOREACH(repl, &engine->repls, link)
		n += repl_is_still(repl);
	return n;
}

static const struct pool_hooks hooks = {
	.on_ready = note_ready,
	.on_change = check_shutdown,
	.on_quiet = on_quiet,
	.make_room = ready_make_room,
	.forget_ready = ready_forget_of,
	.on_unlearned = learning_failed,
	.dispatch = dispatch_workers,
	.start_cells = dispatch_cells,
	.refuse = dispatch_refuse,
	.fall_back = dispatch_fall_back,
	.adopt_strays = worker_adopt_strays,
	.forget_strays = worker_forget_strays,
	.may_stay = may_stay,
	.count_staying = count_staying,
};

static void
on_host_changed(void *arg)
{
	pool_renew_zygotes(arg);
}

/* Starts to watch the host's files. Without this, scripts see a change only after the zygote's next
 * renewal (zygote_seconds). */
static void
set_up_renewal(struct engine *engine)
{
	int r = renewal_new(engine->base, engine->config, on_host_changed, engine,
			    &engine->renewal);

	if (r < 0)
		log_line(LOG_NOTICE, "host-unwatched", "err=%s", strerrorname_np(-r));
}

int
engine_new(const struct engine_options *options, struct engine **engine_r)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int r;

	if (engine == NULL)
		return -ENOMEM;
	engine->options = *options;
	engine->base = options->base;
	engine->config = options->config;
	engine->cells = &repl_stage;
	engine->learning = xcalloc(CONFIG_PROFILES_MAX, sizeof(*engine->learning));
	learning_load(engine);
	engine->ready = ready_new(engine);
	engine->children_fd = worker_open_children();
	r = set_up(engine);
	if (r == 0)
		r = pool_init(engine, &hooks);
	if (r == 0 && config_has_keeper(engine->config))
		r = set_up_keeper(engine);
	if (r == 0)
		set_up_renewal(engine);
	if (r < 0) {
		engine_free(engine);
		return r;
	}
	*engine_r = engine;
	return 0;
}

void
engine_take_profile(struct engine *engine, unsigned int profile)
{
	struct tenant *tenant;

	ready_forget(engine, NULL, NULL);
	if (POOL_USUAL(profile) < engine->pool->n_kinds) {
		pool_change_profile(engine, profile);
		return;
	}
	xassert(pool_add_profile(engine) == 0);
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			tenant_add_shares(tenant);
}

void
engine_adopt_strays(struct engine *engine)
{
	worker_adopt_strays(engine);
}

void
engine_renew_credentials(struct engine *engine)
{
	upstream_renew_credentials(engine->upstream);
	egress_renew_credentials(engine->egress);
}

struct upstream *
engine_upstream(const struct engine *engine)
{
	return engine->upstream;
}

struct keeper *
engine_keeper(const struct engine *engine)
{
	return engine->keeper;
}

static bool
queue_uses(const struct tenant *tenant, const char *environment)
{
	struct sched_item *item;

	for (unsigned int i = 0; i < tenant->n_shares; i++)
		TAILQ_FOREACH(item, &tenant->queue.items[i], link)
			if (strcmp(execution_of(item)->request.environment, environment) == 0)
				return true;
	return false;
}

bool
engine_uses(const struct engine *engine, const char *environment)
{
	const struct execution *e;
	const struct tenant *tenant;
	const struct repl *repl;

	TAILQ_FOREACH(e, &engine->running, link)
		if (strcmp(e->request.environment, environment) == 0 ||
		    (e->worker != NULL && strcmp(e->worker->made_ready, environment) == 0))
			return true;
	LIST_FOREACH(repl, &engine->repls, link)
		if (strcmp(repl->environment, environment) == 0)
			return true;
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			if (queue_uses(tenant, environment))
				return true;
	return false;
}

void
engine_enforcement(const struct engine *engine, struct engine_enforcement *how_r)
{
	const struct cgroup_root *cgroups = engine->options.cgroups;

	*how_r = (struct engine_enforcement){
		.cgroups = cgroups != NULL,
		.memory_controller = engine->memory_counted,
		.pids_controller = engine->pids_counted,
		.cpu_controller =
			cgroups != NULL && cgroup_root_controllers(cgroups)->cpu,
		.landlock = engine->pool->n_kinds > 0 &&
			    zygote_landlock_abi(engine->pool->profile[0].zygote) > 0,
		.own_uids = launcher_slots(engine->options.launcher) > 0,
		.text = engine->text,
	};
}

const char *
engine_packages(const struct engine *engine)
{
	return engine->pool->n_kinds > 0 ? zygote_packages(engine->pool->profile[0].zygote) : "";
}

const char *
engine_platform(const struct engine *engine)
{
	return engine->pool->n_kinds > 0 ? zygote_platform(engine->pool->profile[0].zygote) : "";
}

const char *
engine_extension(const struct engine *engine)
{
	return engine->pool->n_kinds > 0 ? zygote_extension(engine->pool->profile[0].zygote) : "";
}

uint64_t
engine_generation(const struct engine *engine, const char *profile)
{
	const struct config_profile *found = config_find_profile(engine->config, profile);

	return found == NULL ? 0
		: zygote_generation(engine->pool->profile[POOL_USUAL(
			found - engine->config->profile)].zygote);
}

void
engine_count(const struct engine *engine, struct engine_counts *counts_r)
{
	struct engine_counts counts = {
		.workers = engine->pool->n_workers,
		.warm = engine->pool->n_warm,
		.running = engine->n_running,
		.tenants = engine->n_tenants,
		.executions = engine->executions,
	};
	const struct tenant *tenant;

	for (unsigned int i = 0; i < engine->pool->n_kinds; i += 2)
		counts.zygotes_ready += zygote_is_ready(engine->pool->profile[i].zygote);
	for (unsigned int i = 0; i < TENANT_BUCKETS; i++)
		LIST_FOREACH(tenant, &engine->tenants[i], link)
			counts.queued += tenant->queue.n_waiting;
	*counts_r = counts;
}

void
engine_tell_input(const struct engine *engine, enum engine_input what)
{
	const struct engine_observer *observer = engine->options.observer;

	if (observer != NULL && observer->on_input != NULL)
		observer->on_input(observer->arg, what);
}
