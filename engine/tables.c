/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in: the supervisor.   Owns: nothing. */
#include "engine/tables.h"

#include <sys/sysinfo.h>

#include "engine/engine_parts.h"
#include "engine/share.h"
#include "engine/tenant.h"
#include "engine/worker.h"

#define SOCKETS_LEAST 1024
#define SOCKETS_MOST 16384

struct tables_bounds
tables_bounds(uint64_t machine_bytes, uint32_t tasks)
{
	uint64_t sockets = machine_bytes >> 20;

	if (sockets < SOCKETS_LEAST)
		sockets = SOCKETS_LEAST;
	return (struct tables_bounds){
		.sockets = sockets < SOCKETS_MOST ? (uint32_t)sockets : SOCKETS_MOST,
		.tasks = tasks,
		.pressure_bytes = machine_bytes / 32,
		.share_bytes = machine_bytes / 256,
	};
}

/* Does it take as much as an average worker of its tenant? */
static bool
is_above_average(uint32_t own, uint32_t all, uint32_t workers)
{
	return (uint64_t)own * workers >= all;
}

static bool
fit_sockets(const struct tables_bounds *bounds, const struct tables_sample *s)
{
	uint64_t bytes = (uint64_t)s->tenant_sockets * TABLES_SOCKET_BYTES;

	if ((uint64_t)s->sockets * TABLES_SOCKET_BYTES > s->memory_bytes)
		return false;
	if (s->tenant_sockets <= bounds->sockets &&
	    (s->protocol_bytes <= bounds->pressure_bytes || bytes <= bounds->share_bytes))
		return true;
	return !is_above_average(s->sockets, s->tenant_sockets, s->tenant_workers);
}

enum stop_reason
tables_decide(const struct tables_bounds *bounds, const struct tables_sample *s)
{
	if (!fit_sockets(bounds, s))
		return STOP_SOCKETS;
	return s->tenant_tasks > bounds->tasks &&
	       is_above_average(s->tasks, s->tenant_tasks, s->tenant_workers) ? STOP_TASKS
									      : STOP_NONE;
}

static const struct tables_bounds *
bounds_here(const struct engine *engine)
{
	static struct tables_bounds bounds;
	struct sysinfo info;

	if (bounds.sockets == 0 && sysinfo(&info) == 0)
		bounds = tables_bounds((uint64_t)info.totalram * info.mem_unit,
				       engine->tenant_tasks);
	return &bounds;
}

enum stop_reason
tables_note(struct worker *w, const struct watchdog_usage *usage, uint64_t memory_bytes)
{
	const struct tenant *tenant = w->share->tenant;

	worker_note_tables(w, usage->sockets, usage->tasks);
	return tables_decide(bounds_here(w->engine), &(struct tables_sample){
		.sockets = w->sockets, .tasks = w->tasks,
		.tenant_sockets = tenant->sockets, .tenant_tasks = tenant->tasks,
		.tenant_workers = tenant->workers,
		.protocol_bytes = usage->protocol_bytes, .memory_bytes = memory_bytes,
	});
}
