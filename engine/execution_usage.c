/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Measures what an execution has used: by the kernel's counters where they exist, else by a look
 * at its processes. Sets the deadline for the next look at its clocks. */
#include "engine/execution_usage.h"

#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/running.h"
#include "engine/tables.h"
#include "engine/worker.h"

#define CPU_LOOK_LEAST_MS 10

/* ---- time ---- */

void
execution_start_clock(struct execution *e)
{
	e->usage.start_us = clock_us();
}

bool
execution_has_run(const struct execution *e)
{
	return e->usage.end_us != 0;
}

uint64_t
execution_wall_us(const struct execution *e)
{
	uint64_t now_us = e->usage.end_us != 0 ? e->usage.end_us : clock_us();
	uint64_t excused = waits_excused_us(&e->prompts, now_us) +
			   waits_excused_us(&e->consents, now_us) +
			   waits_excused_us(&e->offers, now_us);
	uint64_t passed = now_us - e->usage.start_us;

	return passed > excused ? passed - excused : 0;
}

uint64_t
execution_waited_us(const struct execution *e)
{
	return e->usage.start_us != 0 ? e->usage.start_us - e->usage.asked_us : 0;
}

uint64_t
execution_ran_us(const struct execution *e)
{
	return e->usage.end_us > e->usage.start_us ? e->usage.end_us - e->usage.start_us : 0;
}

/* ---- memory, processes and processor time ---- */

static void
note_memory(struct execution *e, uint64_t bytes)
{
	if (bytes > e->facts.peak_memory_bytes)
		e->facts.peak_memory_bytes = bytes;
}

/* The values of processes that have ended cannot be sampled any more: the larger one counts. */
static void
note_cpu(struct execution *e, uint64_t us)
{
	if (us > e->facts.cpu_us) {
		e->facts.cpu_us = us;
		e->facts.cpu_ms = us / 1000;
	}
}

/* Notes the tasks and the memory that were measured. False: the memory exceeds the limit, or only
 * seems to, because a page that several processes share counts more than once. Then the memory is
 * not noted. */
static bool
note_usage(struct execution *e, const struct watchdog_usage *usage)
{
	const struct worker *w = e->worker;
	uint64_t memory = watchdog_memory_since(&w->baseline, usage);
	uint32_t others = w->baseline.tasks > 0 ? w->baseline.tasks - 1 : 0;
	uint32_t tasks = usage->tasks > others ? usage->tasks - others : 0;

	if (tasks > e->facts.peak_pids)
		e->facts.peak_pids = tasks;
	if (memory > e->usage.memory_max)
		return false;
	note_memory(e, memory);
	return true;
}

/* The kernel's peak covers the worker's whole life. A cell that did not raise it is charged with
 * the memory in use at its end. */
static uint64_t
memory_peak(const struct execution *e, const struct cgroup_counters *counters)
{
	uint64_t bytes = 0;

	if (e->repl == NULL || counters->memory_peak > e->worker->before.memory_peak)
		return counters->memory_peak;
	cgroup_leaf_memory(e->worker->leaf, &bytes);
	return bytes;
}

static void
usage_count(struct execution *e)
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
	/* Of an execution that has ended well by itself, only the time is counted here. */
	if (w->leaf == NULL || (engine->sampled && !well)) {
		watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
		note_usage(e, &usage);
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
	note_cpu(e, cpu_us > w->cpu_baseline_us ? cpu_us - w->cpu_baseline_us : 0);
}

void
execution_count(struct execution *e)
{
	if (execution_has_run(e))
		return;
	e->usage.end_us = clock_us();
	watchdog_forget(&e->usage.watchdog);
	usage_count(e);
}

uint64_t
execution_cpu_ms(struct execution *e)
{
	struct worker *w = e->worker;
	uint64_t us = worker_cpu_us(w);

	us = us > w->cpu_baseline_us ? us - w->cpu_baseline_us : 0;
	note_cpu(e, us);
	return us / 1000;
}

bool
execution_uses(struct execution *e, struct execution_now *now_r)
{
	if (!e->worker || e->usage.start_us == 0 || execution_has_run(e))
		return false;
	now_r->cpu_ms = execution_cpu_ms(e);
	now_r->memory_bytes = e->facts.peak_memory_bytes;
	if (e->worker->leaf)
		cgroup_leaf_memory(e->worker->leaf, &now_r->memory_bytes);
	return true;
}

bool
execution_fits_memory(struct execution *e)
{
	struct worker *w = e->worker;
	struct watchdog_usage usage;
	uint64_t memory;

	watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	memory = watchdog_looked_memory(&w->look, &w->baseline, &usage);
	note_memory(e, memory);
	return memory <= e->usage.memory_max;
}

enum stop_reason
execution_measure(struct execution *e)
{
	const struct engine *engine = e->engine;
	struct worker *w = e->worker;
	struct watchdog_usage usage;
	enum stop_reason stop;
	bool fits;

	if (!engine->sampled) {
		watchdog_measure_sockets(w->pid, &usage);
		return tables_note(w, &usage, e->usage.memory_max);
	}
	watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	fits = note_usage(e, &usage);
	stop = tables_note(w, &usage, e->usage.memory_max);
	if (stop != STOP_NONE)
		return stop;
	if (!engine->pids_counted && e->facts.peak_pids > e->limits.pids)
		return STOP_PIDS;
	return !engine->memory_counted && !fits ? STOP_MEMORY : STOP_NONE;
}

/* ---- the deadline ---- */

void
execution_set_deadline_ms(struct execution *e, uint64_t ms)
{
	struct timeval delay = { .tv_sec = (time_t)(ms / 1000),
				 .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	evtimer_add(&e->deadline, &delay);
}

uint64_t
execution_charge(struct execution *e)
{
	uint64_t ms = e->facts.cpu_ms - e->usage.charged_ms;

	e->usage.charged_ms = e->facts.cpu_ms;
	return engine_charge(e->engine, e->tenant, ms);
}

enum stop_reason
execution_set_deadline(struct execution *e, uint64_t cpu_used_ms)
{
	static unsigned int processors;
	uint64_t elapsed_ms = execution_wall_us(e) / 1000 + e->facts.late_ms, ms;
	uint64_t wall_left =
		e->limits.wall_ms > elapsed_ms ? e->limits.wall_ms - elapsed_ms : 0;
	uint64_t cpu_left =
		e->limits.cpu_ms > cpu_used_ms ? e->limits.cpu_ms - cpu_used_ms : 0;
	uint64_t quota_left = execution_charge(e);

	if (processors == 0)
		processors = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	/* The rest of the processor time lasts at least this long, even if all processors use
	 * it: for the quota, also if all that the tenant runs does. */
	ms = (cpu_left < quota_left ? cpu_left : quota_left) / processors;
	if (ms < CPU_LOOK_LEAST_MS)
		ms = CPU_LOOK_LEAST_MS;
	wall_left += waits_patience_ms(&e->prompts, clock_us()) +
		     waits_patience_ms(&e->consents, clock_us()) +
		     waits_patience_ms(&e->offers, clock_us());
	if (ms > wall_left)
		ms = wall_left;
	execution_set_deadline_ms(e, ms);
	return cpu_left == 0 ? STOP_CPU : quota_left == 0 ? STOP_QUOTA : STOP_NONE;
}

void
execution_look_at_clocks(struct execution *e)
{
	if (e->stopping == GOES_ON)
		execution_set_deadline(e, execution_cpu_ms(e));
}
