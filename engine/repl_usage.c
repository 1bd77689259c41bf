/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing.
 * Measures what a session uses, and finds sessions that use processor time while they are idle. */
#include "engine/repl_parts.h"

#include "base/clock.h"
#include "engine/engine_parts.h"
#include "engine/execution_parts.h"
#include "engine/tables.h"
#include "engine/worker.h"

#define FREEZE_AFTER_MS 1000
#define IDLE_CPU_US 1000000	/* an idle session that uses more processor time is ended */

/* ---- between cells ---- */

void
repl_background_begin(struct repl *repl, const struct execution *cell,
		      const struct msg_cell_ended *ended)
{
	bool goes_on = ended->goes_on;

	/* A list of variables changes nothing: threads and processes of the last cell continue
	 * under that cell's terms. */
	if (cell->request.inspect) {
		goes_on = goes_on && repl->background.runs;
	} else {
		repl->background.until_ms = 0;
		repl->background.is_heard = ended->state == CELL_COMMITTED;
	}
	repl->background.runs = goes_on;
	if (!goes_on)
		return;
	repl->background.cpu_us = worker_cpu_us(repl->worker);
	if (cell->request.inspect)
		return;
	repl->background.until_ms = clock_ms() + cell->request.background_ms;
	repl->background.cpu_left_us = cell->limits.cpu_ms * 1000;
}

bool
repl_background_count(struct repl *repl)
{
	uint64_t now_us, used_us;
	bool may = true;

	if (!repl->background.runs || repl->worker == NULL)
		return false;
	now_us = worker_cpu_us(repl->worker);
	used_us = now_us > repl->background.cpu_us ? now_us - repl->background.cpu_us : 0;
	repl->background.cpu_us = now_us;
	if (used_us > repl->background.cpu_left_us)
		may = false;
	repl->background.cpu_left_us -= may ? used_us : repl->background.cpu_left_us;
	used_us += repl->background.untold_us;
	repl->background.untold_us = used_us % 1000;
	return engine_charge(repl->engine, repl->tenant, used_us / 1000) > 0 && may;
}

/* ---- idle ---- */

bool
repl_look(struct repl *repl, uint64_t limit, void (*looked)(void *arg))
{
	struct worker *w = repl->worker;
	struct watchdog_usage usage;

	if (repl->engine->memory_counted)
		return true;
	watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	if (watchdog_memory_since(&w->baseline, &usage) <= limit || w->has_volume) {
		watchdog_look_take(&w->look, &w->baseline, &usage);
		return true;
	}
	return watchdog_look(repl->engine->watchdog, &w->look, w->pid, w->leaf, !repl->frozen,
			     looked, repl);
}

static uint64_t
looked_memory(struct repl *repl)
{
	struct worker *w = repl->worker;
	struct watchdog_usage usage;

	watchdog_measure(w->pid, w->leaf, &w->seen, &usage);
	return watchdog_looked_memory(&w->look, &w->baseline, &usage);
}

bool
repl_fits_memory(struct repl *repl)
{
	return repl->engine->memory_counted || looked_memory(repl) <= repl->memory_bytes;
}

/* Checks whether an idle session, whose processes are stopped, uses processor time. A script can
 * make the kernel continue a stopped process, by a timer whose signal is SIGCONT. False: nothing
 * has run since the last look. */
static bool
look_for_idle_work(struct repl *repl)
{
	uint64_t used_us = worker_cpu_us(repl->worker);
	bool worked;

	if (repl->idle_cpu_us == 0)
		repl->idle_cpu_us = used_us;
	else if (used_us > repl->idle_cpu_us + IDLE_CPU_US)
		repl_end(repl, "it went on using the processor while no cell ran");
	/* A leaf counts in microseconds. */
	worked = repl->worker == NULL || repl->worker->leaf == NULL ||
		 used_us != repl->looked_cpu_us;
	repl->looked_cpu_us = used_us;
	return worked;
}

static void
repl_on_idle_looked(void *arg)
{
	struct repl *repl = arg;

	if (repl_fits_memory(repl))
		return;
	/* Too much memory. The state as it was at the end of the last cell may fit. */
	if (repl->background.runs)
		repl_hold(repl, HOLD_UNDO);
	else
		repl_end(repl, "it took more memory than it may while no cell ran");
}

/* Measures the memory: a process that a cell has left running may have grown between the end of the
 * cell and the moment when it was frozen. False: it is not measured now. */
static bool
look_at_memory(struct repl *repl)
{
	if (watchdog_look_rests(&repl->worker->look))
		return false;
	if (repl_look(repl, repl->memory_bytes, repl_on_idle_looked))
		repl_on_idle_looked(repl);
	return true;
}

/* False: the session was ended. */
static bool
fit_tables(struct repl *repl)
{
	struct watchdog_usage usage;

	watchdog_measure_sockets(repl->worker->pid, &usage);
	usage.tasks = repl->worker->tasks;
	if (tables_note(repl->worker, &usage, repl->memory_bytes) == STOP_NONE)
		return true;
	repl_end(repl, "it had too many sockets while no cell ran");
	return false;
}

void
repl_look_after(struct repl *repl)
{
	if (repl->phase != REPL_IDLE || (!repl->frozen && !fit_tables(repl)))
		return;
	if (repl->background.runs) {
		bool may = repl_background_count(repl);

		/* Stops threads and processes that run between cells, when their time is over. */
		if (!may || clock_ms() >= repl->background.until_ms)
			repl_hold(repl, HOLD_RESTS);
		else
			look_at_memory(repl);
		return;
	}
	if (clock_ms() - repl->idle_since_ms < FREEZE_AFTER_MS)
		return;
	if (repl->frozen) {
		if (!repl->was_looked_at)
			repl->was_looked_at = look_at_memory(repl);
	} else if (repl->adopted && !repl->held) {
		/* An adopted session gets no signal when the supervisor ends: its init has to run,
		 * to see that the socket is closed. So it is not frozen, but held. */
		repl_hold(repl, HOLD_STAYS);
	} else if (repl->worker->leaf != NULL && !repl->held) {
		repl->frozen = cgroup_leaf_freeze(repl->worker->leaf, true) == 0;
		repl->was_looked_at = false;
	} else {
		if (look_for_idle_work(repl) && repl->phase == REPL_IDLE)
			look_at_memory(repl);
	}
}

static uint64_t
memory_of(struct repl *repl)
{
	struct worker *w = repl->worker;
	uint64_t bytes = 0;

	if (w == NULL)
		return 0;
	if (repl->engine->memory_counted)
		return cgroup_leaf_memory(w->leaf, &bytes) == 0 ? bytes + repl_uncounted(repl) : 0;
	/* If this look takes longer, the values of the last one are returned. */
	if (repl->phase == REPL_IDLE && !watchdog_look_rests(&w->look))
		repl_look(repl, 0, repl_on_idle_looked);
	return looked_memory(repl);
}

void
repl_usage(struct repl *repl, struct repl_usage *usage_r)
{
	bool idle = repl->phase == REPL_IDLE && TAILQ_EMPTY(&repl->jobs);

	*usage_r = (struct repl_usage){
		.ended = repl->phase == REPL_ENDED,
		.busy = !idle && repl->phase != REPL_ENDED,
		.frozen = repl_is_frozen(repl),
		.snapshots = repl->snapshots,
		.memory_bytes = memory_of(repl),
		.spare_bytes = repl->spare_bytes,
		.idle_ms = idle ? clock_ms() - repl->idle_since_ms : 0,
	};
}
