/* Runs in: the supervisor.   Owns: nothing.
 * What an execution has used, by the kernel's counters where there are any and by what is
 * seen of its processes where there are none. */
#include "supervisor/engine/execution_parts.h"

#include "supervisor/engine/cgroup.h"
#include "supervisor/engine/engine_parts.h"
#include "supervisor/engine/worker.h"

/* Returns what memory it uses now. */
static uint64_t
take_usage(struct execution *e, const struct watchdog_usage *usage)
{
	const struct worker *w = e->worker;
	uint64_t memory = watchdog_memory_since(w->pid, w->leaf, &w->baseline, usage,
						e->memory_max);
	uint32_t others = w->baseline.tasks > 0 ? w->baseline.tasks - 1 : 0;
	uint32_t tasks = usage->tasks > others ? usage->tasks - others : 0;

	if (memory > e->facts.peak_memory_bytes)
		e->facts.peak_memory_bytes = memory;
	if (tasks > e->facts.peak_pids)
		e->facts.peak_pids = tasks;
	return memory;
}

/* The kernel's peak is of all the worker's life. A cell that did not raise it has no other
 * than what there is at its end. */
static uint64_t
memory_peak(const struct execution *e, const struct cgroup_counters *counters)
{
	uint64_t bytes = 0;

	if (e->repl == NULL || counters->memory_peak > e->worker->before.memory_peak)
		return counters->memory_peak;
	cgroup_leaf_memory(e->worker->leaf, &bytes);
	return bytes;
}

void
execution_count(struct execution *e)
{
	const struct engine *engine = e->engine;
	struct worker *w = e->worker;
	struct cgroup_counters counters = { 0 };
	struct watchdog_usage usage = { 0 };
	bool well = e->facts.stop == STOP_NONE && e->facts.has_done &&
		    !e->facts.raised && e->facts.done_code == 0;
	uint64_t cpu_us;

	if (w->leaf != NULL)
		cgroup_leaf_counters(w->leaf, !well || e->repl != NULL, &counters);
	/* Of one that ended well by itself there is nothing left to be seen but its
	 * time. */
	if (w->leaf == NULL || (engine->watchdog != NULL && !well)) {
		watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
		take_usage(e, &usage);
	}
	if (engine->memory_counted) {
		e->facts.peak_memory_bytes = memory_peak(e, &counters);
		e->facts.oom_kills = counters.oom_kills - w->before.oom_kills;
	}
	if (engine->pids_counted) {
		e->facts.peak_pids = 0;
		e->facts.pids_hits = counters.pids_hits - w->before.pids_hits;
	}
	cpu_us = w->leaf != NULL ? counters.cpu_us : usage.cpu_us;
	cpu_us = cpu_us > w->cpu_baseline_us ? cpu_us - w->cpu_baseline_us : 0;
	/* Processes that are gone took what was sampled with them. */
	if (cpu_us / 1000 > e->facts.cpu_ms)
		e->facts.cpu_ms = cpu_us / 1000;
}

uint64_t
execution_cpu_ms(struct execution *e)
{
	struct worker *w = e->worker;
	struct watchdog_usage usage = { 0 };
	uint64_t us = 0;

	if (w->leaf != NULL) {
		cgroup_leaf_cpu(w->leaf, &us);
	} else {
		watchdog_measure(w->pid, NULL, &w->seen, &usage);
		us = usage.cpu_us;
	}
	us = us > w->cpu_baseline_us ? us - w->cpu_baseline_us : 0;
	if (us / 1000 > e->facts.cpu_ms)
		e->facts.cpu_ms = us / 1000;
	return us / 1000;
}

void
execution_check(struct execution *e)
{
	const struct engine *engine = e->engine;
	struct worker *w = e->worker;
	struct watchdog_usage usage;

	watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	take_usage(e, &usage);
	if (!engine->memory_counted &&
	    e->facts.peak_memory_bytes > e->memory_max)
		execution_stop(e, STOP_MEMORY);
	else if (!engine->pids_counted && e->facts.peak_pids > e->limits.pids)
		execution_stop(e, STOP_PIDS);
}

bool
execution_fits_memory(struct execution *e)
{
	struct watchdog_usage usage;

	watchdog_measure(e->worker->pid, e->worker->leaf, &e->worker->seen, &usage);
	return take_usage(e, &usage) <= e->memory_max;
}
